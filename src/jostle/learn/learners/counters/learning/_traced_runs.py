"""Runs that traces tell of: those traced beside others, those beside stressors, and those of rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.learn.learners.counters.solo._probed import is_stressor
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS

if TYPE_CHECKING:
    from jostle.data import Runs, Traces
    from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows, Member
    from jostle.learn.learners.counters.solo._solo_counters import Solos


def traced_runs(traces: Traces, leave_out: Collection[str] = ()) -> Runs:
    """List the traced runs that ended, without those of the run_ids left out.

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
    return _runs([(row, row["runtime_seconds"]) for row in rows])


def probe_runs(traces: Traces, wanted: Sequence[str]) -> Runs | None:
    """Make runs beside stressors and of stressors, None where there are none: a stressor has no end, so its
    time is that of as much as it executes alone in one second. wanted: names or patterns."""
    speed: dict[str, float] = {}
    alone: dict[tuple[str, str], list[float]] = {}
    for t in traces:
        if is_stressor(t.workload, wanted):
            speed[t.run_id] = float(np.nansum(t[INSTRUCTIONS])) / float(t.time_seconds[-1])
            if t.solo:
                alone.setdefault((t.platform, t.workload), []).append(speed[t.run_id])
    rows = []
    for row in traces.traced.to_pylist():
        names = (row["workload"], *(row["corunners"] or []))
        seconds = row["runtime_seconds"] or math.nan
        if row["run_id"] in speed:
            usual = alone.get((row["platform"], row["workload"]), [math.nan])
            seconds = float(np.median(usual)) / max(speed[row["run_id"]], 1e-9)
        if any(is_stressor(name, wanted) for name in names) and 0 < seconds < math.inf:
            rows.append((row, seconds))
    return _runs(rows) if rows else None


def _runs(rows: Sequence[tuple[dict, float]]) -> Runs:
    from jostle.data import Runs

    return Runs.from_columns(
        workload=[row["workload"] for row, _ in rows],
        platform=[row["platform"] for row, _ in rows],
        corunners=[row["corunners"] or [] for row, _ in rows],
        runtime_seconds=[seconds for _, seconds in rows],
        run_id=[row["run_id"] for row, _ in rows],
        window_id=[row["window_id"] or row["run_id"] for row, _ in rows],
    )


def runs_of_rows(
    rows: AlignedRows, solos: Solos, probing: Runs | None
) -> tuple[Runs, list[Member]]:
    """Return (the workloads alone, the runs that have rows, as long as these say, and those beside stressors;
    who ran in the first ones, in their order)."""
    from jostle.data import Runs

    alone: dict[tuple[str, str], float] = {}
    for solo in solos.all:
        alone.setdefault((solo.platform, solo.workload), solo.duration_seconds)
    members: list[Member] = [(p, w, ()) for p, w in alone]
    seconds = list(alone.values())
    for number, log in zip(np.unique(rows.run).tolist(), rows.run_logs(), strict=True):
        platform, name, others = rows.members[number]
        members.append((platform, name, others))
        seconds.append(alone[platform, name] * math.exp(log))
    runs = Runs.from_columns(
        workload=[name for _, name, _ in members],
        platform=[platform for platform, _, _ in members],
        corunners=[list(others) for *_, others in members],
        runtime_seconds=seconds,
    )
    return runs if probing is None else Runs.concatenate([runs, probing]), members
