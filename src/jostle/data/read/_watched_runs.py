"""Windows of a service's series as runs, too: times, peaks of memory, covariates such as its load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jostle.data.read._imported_runs import Imported
from jostle.data.read._series import Series
from jostle.data.runs._runs import Runs
from jostle.data.traces._traces import Trace, Traces, is_level
from jostle.errors import BadData, require_known

# Levels that are a process's memory, the first that there is.
_MEMORY = (
    *("container_memory_working_set_bytes", "container_memory_rss", "container_memory_usage_bytes"),
    *("process_resident_memory_bytes", "resident_bytes", "rss_bytes", "real_bytes", "mem"),
)
_YEAR = 366 * 86400.0  # times below this count from a start that nobody tells


def everywhere(series: Sequence[Series], covariates: Mapping[str, str]) -> list[Series]:
    """Give each instance the covariates of the whole service. covariates: {name: name of its series}. Raises
    UnknownName for a series that is not there."""
    for name in covariates.values():
        require_known("series", name, {one.name for one in series})
    shared = [one for one in series if one.name in covariates.values() and not one.instance]
    places = {one.instance for one in series if one.instance}
    if not places or not shared:
        return list(series)
    rest = [one for one in series if one not in shared]
    return rest + [replace(one, instance=place) for place in sorted(places) for one in shared]


def watched_runs(
    traces: Traces,
    begins: Mapping[str, float],
    covariates: Mapping[str, str],
    where: str,
    *,
    knows_corunners: bool,
) -> Imported:
    """Make a run of each whole trace, and leave covariates out of the traces. begins: seconds since 1970 by
    run_id. Raises BadData where no trace is whole."""
    every = list(traces)
    whole = [one for one in every if np.isfinite(one.runtime_seconds)]
    if not whole:
        raise BadData(
            "no run is whole, and covariates are of whole runs",
            where=where,
            fix="Say by `cut` or `requests` what a run is.",
        )
    names = {
        name: next((c for c in traces.counters if _plain(c) == s), s)
        for name, s in covariates.items()
    }
    memory = {_plain(c).lower(): c for c in traces.counters if is_level(c)}
    peak = next((memory[name] for name in _MEMORY if name in memory), None)
    columns: dict[str, Any] = {name: [_mean(one, c) for one in whole] for name, c in names.items()}
    if peak is not None:
        columns["peak_memory_bytes"] = [_most(one, peak) for one in whole]
    if min(begins[one.run_id] for one in whole) > _YEAR:
        columns["measured_at"] = [datetime.fromtimestamp(begins[o.run_id], UTC) for o in whole]
    if not knows_corunners:
        columns["unknown_corunners"] = [True] * len(whole)
    runs = Runs.from_columns(
        workload=[one.workload for one in whole],
        platform=[one.platform for one in whole],
        corunners=[list(one.corunners) for one in whole],
        runtime_seconds=[one.runtime_seconds for one in whole],
        run_id=[one.run_id for one in whole],
        window_id=[one.run_id for one in whole],
        **columns,
        covariates=tuple(names),
    )
    understood = [
        f"covariate {name}: the mean {'level' if is_level(c) else 'rate a second'} of {_plain(c)}"
        for name, c in names.items()
    ]
    understood += [f"peaks of memory: of {_plain(peak)}"] if peak else []
    if not knows_corunners:
        understood.append("who ran beside is not known: name them by `beside`, or say none")
    kept = [
        replace(one, counters={n: v for n, v in one.counters.items() if n not in names.values()})
        for one in every
    ]
    left = Traces.from_traces([one for one in kept if one.counters])
    skipped = len(every) - len(whole)
    return Imported(runs, where, skipped=skipped, understood=tuple(understood), traces=left)


def _plain(counter: str) -> str:
    return counter.removesuffix("_level")


def _mean(one: Trace, counter: str) -> float | None:
    """Average a level, or a rate a second, over the time that is known; None where nothing is."""
    values, lengths = one.counters.get(counter), one.interval_seconds
    if values is None or not (known := np.isfinite(values)).any():
        return None
    total = (values * lengths if is_level(counter) else values)[known].sum()
    return float(total / lengths[known].sum())


def _most(one: Trace, counter: str) -> float | None:
    values = one.counters.get(counter)
    return None if values is None or np.isnan(values).all() else float(np.nanmax(values))
