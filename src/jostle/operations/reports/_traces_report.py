"""Recorded traces as a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.report import Report

if TYPE_CHECKING:
    from jostle.collect import Assessment
    from jostle.data import Trace, Traces

# Exact ones before those that hardware counted.
_PROGRESS = ("instructions", "perf_instructions")


def traces_report(
    traces: Traces,
    output: Path,
    files: Sequence[Path],
    assessed: Sequence[Assessment] = (),
    notes: Sequence[str] = (),
) -> Report:
    """Report what was recorded, in a line for each run. assessed: every attempt, in order."""
    rows, lines = [_row(one) for one in traces], []
    for row in rows:
        beside = f" beside {' + '.join(row['corunners'])}" if row["corunners"] else " alone"
        took = f"{row['runtime_seconds']:.3f} s" if row["runtime_seconds"] else "no end"
        done = f", {row['instructions']:.4g} instructions" if row["instructions"] else ""
        lines.append(f"{row['workload']}{beside}: {took}, {row['samples']} samples{done}")
    remarks = list(notes)
    if rejected := [one for one in assessed if one.reason is not None]:
        # Attempts of a window follow one another: the last is disturbed only where all were.
        left = sum(
            one.reason is not None and (n + 1 == len(assessed) or assessed[n + 1].attempt == 0)
            for n, one in enumerate(assessed)
        )
        remarks.append(
            f"{len(rejected)} of {len(assessed)} attempts were disturbed ({rejected[-1].reason}); "
            f"{left} windows were at every attempt, of these the least disturbed is kept"
        )
    if missing := sorted({name for row in rows for name in row["not_available"]}):
        remarks.append(f"not available on this host: {', '.join(missing)}")
    document = {
        "schema": "trace/v1",
        "dataset": str(output),
        "files": [str(file) for file in files],
        "runs": rows,
        "attempts": [vars(one) for one in assessed],
    }
    return Report(document, lines, notes=remarks)


def _row(one: Trace) -> dict[str, Any]:
    import numpy as np

    counted = {name: float(np.nansum(values)) for name, values in one.counters.items()}
    known = sorted(name for name, v in one.counters.items() if np.isfinite(v).any())
    seconds, slowdown = one.runtime_seconds, one.core_slowdown_ratio
    return {
        "run_id": one.run_id,
        "core": one.core,
        "workload": one.workload,
        "platform": one.platform,
        "corunners": list(one.corunners),
        "window_id": one.window_id,
        "runtime_seconds": None if np.isnan(seconds) else seconds,
        "core_slowdown_ratio": None if np.isnan(slowdown) else slowdown,
        "samples": len(one),
        "instructions": next((counted[n] for n in _PROGRESS if n in known), None),
        "available": known,
        "not_available": sorted(set(one.counters) - set(known)),
    }
