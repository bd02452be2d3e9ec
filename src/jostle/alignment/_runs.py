"""Traced runs as runs, with the run_ids and windows of their traces."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from jostle.errors import NotEnoughRuns
from jostle.runs import Runs

if TYPE_CHECKING:
    from jostle.traces import Traces


def traced_runs(traces: Traces, leave_out: Collection[str] = ()) -> Runs:
    """The traced runs that ended, without those of the run_ids left out.

    Raises NotEnoughRuns where none is left.
    """
    rows = [
        row
        for row in traces.traced.to_pylist()
        if row["run_id"] not in leave_out and not math.isnan(row["runtime_seconds"] or math.nan)
    ]
    if not rows:
        raise NotEnoughRuns(
            "no traced run beside others has a runtime",
            fix="Trace programs that end, side by side.",
        )
    return Runs.from_columns(
        workload=[row["workload"] for row in rows],
        platform=[row["platform"] for row in rows],
        corunners=[row["corunners"] or [] for row in rows],
        runtime_seconds=[row["runtime_seconds"] for row in rows],
        run_id=[row["run_id"] for row in rows],
        window_id=[row["window_id"] or row["run_id"] for row in rows],
    )
