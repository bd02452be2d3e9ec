"""What is in a set of runs, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jostle.data.runs._runs import Runs
from jostle.data.store._import_doubts import doubts, medians, polished
from jostle.data.store._window_consistency import impossible_rows
from jostle.data.tables.arrow_compute import pc

_EXAMPLES = 5
# A co-runner can warm a cache, but hardly halves a runtime; and runtimes follow workload + platform
# in logarithms within a factor of a few, so 20 is a slip of a unit or of a name.
_FASTER = 0.5
_OFF_FIT = 20.0


@dataclass(frozen=True)
class Suspicion:
    """Runs that look wrong in one way. count: how many; meaning: what it may mean; run_ids: the
    first few."""

    count: int
    meaning: str
    run_ids: tuple[str, ...]


@dataclass(frozen=True)
class ChangingCompany:
    """Counts of runs whose co-runners change. runs: with more than one stretch. stretches: of all runs, in
    the mean. longest_ratio: of those runs the share of the time that the longest stretch lasted, in the mean.
    steady_ratio: of all runs those that kept one company for 95% of their time."""

    runs: int
    stretches: float
    longest_ratio: float
    steady_ratio: float


@dataclass(frozen=True)
class RunsSummary:
    """Result of :func:`summarise`. Only runs with status ok count beyond `status`.

    corunners: runs by number of co-runners. solo_cells: pairs of workload and platform measured
    alone; coverage_ratio: of all pairs that could be. connected_parts: groups of workloads and
    platforms that share no solo run with one another: runtimes in two of them cannot be
    compared, so 1 is good. repeats: pairs of consecutive windows with the same co-location;
    repeatability_*_ratio: |log ratio| of their runtimes, None without repeats. changing: what is known of
    runs whose company changed, None without any; they count nowhere as alone nor as repeats. doubts:
    sentences, where names or units may not be what was meant.
    """

    runs: int
    status: dict[str, int]
    campaigns: dict[str, int]
    corunners: dict[int, int]
    workloads: int
    platforms: int
    solo_cells: int
    coverage_ratio: float | None
    connected_parts: int
    colocations: int
    windows: int
    shortest_seconds: float | None
    longest_seconds: float | None
    repeats: int
    repeatability_median_ratio: float | None
    repeatability_p90_ratio: float | None
    suspicious: dict[str, Suspicion]
    doubts: tuple[str, ...] = ()
    changing: ChangingCompany | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the document `runs-summary/v1`."""
        corunners = {str(number): count for number, count in self.corunners.items()}
        return {"schema": "runs-summary/v1", **asdict(self), "corunners": corunners}


def summarise(runs: Runs) -> RunsSummary:
    """Return counts, coverage, repeatability and suspicious values of the runs."""
    ok = runs.ok()
    colocations = ok.colocations
    seconds = ok.runtime_seconds
    steady = ok.is_steady
    alone = (colocations.number_of_corunners == 0) & steady & ~ok.unknown_corunners
    key = (
        colocations.platform.astype(np.int64) * (len(colocations.workload_names) + 1)
        + colocations.workload
    )
    cells, first = np.unique(key[alone], return_index=True)
    workloads, platforms = len(colocations.workload_names), len(colocations.platform_names)
    at = np.flatnonzero(alone)[first]
    differences = _repeats(colocations.group[steady], ok.window[steady], np.log(seconds[steady]))
    return RunsSummary(
        runs=len(runs),
        status=_counts(runs.table.column("status")),
        campaigns=_counts(ok.table.column("campaign")),
        corunners={
            int(number): int(count)
            for number, count in enumerate(np.bincount(colocations.number_of_corunners))
            if count
        },
        workloads=workloads,
        platforms=platforms,
        solo_cells=len(cells),
        coverage_ratio=len(cells) / (workloads * platforms) if workloads else None,
        connected_parts=_parts(colocations.workload[at], colocations.platform[at]),
        colocations=len(np.unique(colocations.group)),
        windows=len(np.unique(ok.window)),
        shortest_seconds=float(seconds.min()) if len(seconds) else None,
        longest_seconds=float(seconds.max()) if len(seconds) else None,
        repeats=len(differences),
        repeatability_median_ratio=_quantile(differences, 0.5),
        repeatability_p90_ratio=_quantile(differences, 0.9),
        suspicious={**_suspicious(ok, key, alone), "impossible_windows": _impossible(runs)},
        doubts=doubts(runs),
        changing=_changing(ok),
    )


def _changing(ok: Runs) -> ChangingCompany | None:
    if bool(ok.is_steady.all()):
        return None
    parts = ok.stretches
    longest = parts.seconds[parts.longest] / ok.runtime_seconds
    return ChangingCompany(
        int((~ok.is_steady).sum()),
        float(parts.counts.mean()),
        float(longest[~ok.is_steady].mean()),
        float((longest >= 0.95).mean()),
    )


def _counts(column: Any) -> dict[str, int]:
    pairs = pc.value_counts(column).to_pylist()
    return {str(pair["values"] or ""): pair["counts"] for pair in pairs}


def _quantile(values: np.ndarray, share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None


def _repeats(group: np.ndarray, window: np.ndarray, log_seconds: np.ndarray) -> np.ndarray:
    """Return (pairs,) |log ratio| of each window to the one before it of the same co-location.

    Rows of one window are not repeats: they were measured together; their mean counts.
    """
    if not len(group):
        return np.zeros(0)
    key = group * (np.int64(window.max()) + 1) + window
    keys, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    mean = np.bincount(inverse, log_seconds) / np.bincount(inverse)
    order = np.lexsort((first, group[first]))
    together = np.diff(group[first][order]) == 0
    return np.abs(np.diff(mean[order]))[together] if len(keys) > 1 else np.zeros(0)


def _parts(workload: np.ndarray, platform: np.ndarray) -> int:
    """Return the number of connected components of the graph whose edges are the solo cells."""
    if not len(workload):
        return 0
    label_w = np.arange(int(workload.max()) + 1)
    label_p = np.full(int(platform.max()) + 1, len(label_w))
    while True:  # the smallest label spreads along edges until nothing changes
        np.minimum.at(label_p, platform, label_w[workload])
        before = label_w.copy()
        np.minimum.at(label_w, workload, label_p[platform])
        if np.array_equal(before, label_w):
            return len(np.unique(label_w[np.unique(workload)]))


def _suspicious(ok: Runs, key: np.ndarray, alone: np.ndarray) -> dict[str, Suspicion]:
    seconds, colocations = ok.runtime_seconds, ok.colocations
    run_id = ok.table.column("run_id")

    def suspicion(rows: np.ndarray, meaning: str) -> Suspicion:
        return Suspicion(len(rows), meaning, tuple(run_id.take(rows[:_EXAMPLES]).to_pylist()))

    none = np.zeros(0, np.int64)
    number = np.unique(seconds, return_inverse=True)[1].reshape(-1) if len(ok) else none
    exact = colocations.group * (len(ok) + 1) + number
    copies = _later(exact)
    others = np.setdiff1d(_later(number), copies, assume_unique=True)

    usual = np.full(int(key.max(initial=-1)) + 1, np.nan)
    cells, median = medians(key[alone], seconds[alone])
    usual[cells] = median
    faster = ~alone & (seconds < _FASTER * usual[key])

    log_usual = np.log(median)
    base = len(colocations.workload_names) + 1
    residual = polished(cells // base, cells % base, log_usual)
    off = np.zeros(len(usual))
    off[cells] = np.abs(residual)
    far = alone & (off[key] > math.log(_OFF_FIT))
    return {
        "copies": suspicion(
            copies,
            "the same co-location with the same runtime to the last digit as an earlier run: "
            "copied rows, or a clock that is too coarse",
        ),
        "equal_runtimes": suspicion(
            others,
            "the same runtime to the last digit as an earlier run of another co-location: "
            "rounded, or a value filled in",
        ),
        "faster_than_alone": suspicion(
            np.flatnonzero(faster),
            f"beside co-runners in less than {_FASTER} of the median runtime alone: "
            "a changed machine, or a name mixed up",
        ),
        "far_from_fit": suspicion(
            np.flatnonzero(far),
            f"alone, and more than {_OFF_FIT:g} times off what workload and platform suggest: "
            "a wrong unit, a program that ended early, or one so short that starting it is all",
        ),
    }


def _impossible(runs: Runs) -> Suspicion:
    rows = impossible_rows(runs)
    ids = runs.table.column("run_id").take(rows[:_EXAMPLES]).to_pylist()
    meaning = (
        "a window's rows are not those its co-runners say, or did more than fits into it: rows were lost, "
        "changed by hand or set aside"
    )
    return Suspicion(len(rows), meaning, tuple(ids))


def _later(codes: np.ndarray) -> np.ndarray:
    """Return rows whose code stood in an earlier row."""
    first = np.unique(codes, return_index=True)[1]
    later = np.ones(len(codes), bool)
    later[first] = False
    return np.flatnonzero(later)
