"""What a dataset says of its own windows: whether it can all be true at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

# Repetitions times seconds each must fit into the window; both are rounded by what a beat lasts.
_FITS = 1.05
_LONGEST_WARMUP_RATIO = 0.1
_SHORTEST_WARMUP_SECONDS = 0.02
_ESTIMATORS = {"quiet", "wall", "cpu"}


def contradictions(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences about windows that cannot have been as they are written down. rows: of campaigns, with their
    window_id."""
    windows: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("window_id"):
            windows.setdefault(str(row["window_id"]), []).append(row)
    found = []
    for name, members in windows.items():
        found += [f"window {name}: {text}" for text in _of_window(members)]
    return found


def _of_window(members: list[dict[str, Any]]) -> list[str]:
    found = []
    names = Counter(row["workload"] for row in members)
    for row in members:
        if Counter([row["workload"], *(row["corunners"] or ())]) != names:
            found.append(f"{row['workload']} has other co-runners than the window has members")
            break
    found += [
        f"its members differ in {what}"
        for what in ("platform", "measured_at", "window_seconds")
        if len({str(row.get(what)) for row in members}) > 1
    ]
    for row in members:
        if row["status"] != "ok":
            continue
        seconds, late = row.get("window_seconds"), row.get("lateness_seconds")
        if late is not None and seconds is not None:
            allowed = max(_SHORTEST_WARMUP_SECONDS, _LONGEST_WARMUP_RATIO * seconds)
            if late > allowed:
                found.append(f"{row['workload']} started {late:.3f} s late and counts")
        if seconds is None or row.get("estimator") not in _ESTIMATORS:
            continue
        if row["repetitions"] * row["runtime_seconds"] > _FITS * seconds:
            text = f"{row['repetitions']:.1f} of {row['runtime_seconds']:.3g} s each"
            found.append(f"{row['workload']} did {text} in {seconds:.3g} s")
    return found
