"""The linear-scaling baseline: log runtime = workload + platform, fitted on runs without co-runners.

Source: Pitot (MLSys 2025), Sec. 3.2: a two-way additive model. Effects are shrunken a little towards
the overall mean (alternating means with `shrinkage` added to every count), so that a name seen once does
not take its one measurement at face value: by default by the evidence, as much as what two-way effects
leave is of how far names lie apart (an empirical Bayes estimate: Efron and Morris 1973). Where the
bipartite graph of workloads and platforms falls into several connected components, nothing ties their
scales together: the components are reported, so that no caller answers across them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

TOLERANCE = 1e-9
MOST_SWEEPS = 2000
# In runs, by the evidence, which a first fit with FIRST_PULL gives.
MOST_PULL, LEAST_PULL = 0.3, 1e-3
FIRST_PULL = 0.01
USUAL_REST = 0.1  # variance of the log runtime beyond both effects, where the data cannot say


@dataclass(frozen=True)
class Baseline:
    """Linear-scaling baseline of log runtimes.

    workload: (number of workloads,), platform: (number of platforms,), in log seconds; a name without a run
    has the mean effect. workload_component, platform_component: number of the connected component, -1 for a
    name without a run.
    """

    workload: np.ndarray
    platform: np.ndarray
    workload_component: np.ndarray
    platform_component: np.ndarray

    @property
    def number_of_components(self) -> int:
        """Number of parts that share no name with each other."""
        return int(self.workload_component.max(initial=-1)) + 1


def fit_baseline(
    workload: np.ndarray,
    platform: np.ndarray,
    log_runtime: np.ndarray,
    number_of_workloads: int,
    number_of_platforms: int,
    *,
    shrinkage: float | tuple[np.ndarray, np.ndarray] | None = None,
    towards: tuple[np.ndarray, np.ndarray] | None = None,
) -> Baseline:
    """Fit by alternating shrunken means.

    workload, platform: (n,) integer codes; log_runtime: (n,) natural log of seconds. shrinkage: what is
    added to every count, or one value for each workload and for each platform; by default by the evidence,
    at most 0.3. towards: (log seconds of the
    workloads, of the platforms), what effects are shrunken to, and what a name without a run has; by
    default the overall mean.
    """
    if shrinkage is None:
        sizes = number_of_workloads, number_of_platforms
        usual = fit_baseline(
            workload, platform, log_runtime, *sizes, shrinkage=FIRST_PULL, towards=towards
        )
        shrinkage = _pulls(workload, platform, log_runtime, usual)
    workload_component, platform_component = connected_components(
        workload, platform, number_of_workloads, number_of_platforms
    )
    mean = float(log_runtime.mean()) if len(log_runtime) else 0.0
    centred = log_runtime - mean
    to_w, to_p = np.zeros(number_of_workloads), np.zeros(number_of_platforms)
    if towards is not None:
        to_w, to_p = towards[0] - mean, towards[1]
    pull_w, pull_p = shrinkage if isinstance(shrinkage, tuple) else (shrinkage, shrinkage)
    count_w = np.bincount(workload, minlength=number_of_workloads) + pull_w
    count_p = np.bincount(platform, minlength=number_of_platforms) + pull_p
    seen_w, seen_p = workload_component >= 0, platform_component >= 0
    of_w, of_p = workload_component[seen_w], platform_component[seen_p]
    parts = int(of_w.max(initial=-1)) + 1
    pull_w, pull_p = (
        np.broadcast_to(pull, size)
        for pull, size in ((pull_w, number_of_workloads), (pull_p, number_of_platforms))
    )
    stiff = np.bincount(of_w, pull_w[seen_w], parts) + np.bincount(of_p, pull_p[seen_p], parts)
    stiff = np.where(stiff > 0, stiff, np.inf)
    effect_w = np.zeros(number_of_workloads)
    effect_p = np.zeros(number_of_platforms)
    for _ in range(MOST_SWEEPS):
        sum_w = np.bincount(workload, centred - effect_p[platform], number_of_workloads)
        new_w = (sum_w + pull_w * to_w) / count_w
        sum_p = np.bincount(platform, centred - new_w[workload], number_of_platforms)
        new_p = (sum_p + pull_p * to_p) / count_p
        # What all workloads of a component have more and its platforms less is best found at once.
        more = np.bincount(of_p, (pull_p * (new_p - to_p))[seen_p], parts)
        shift = (more - np.bincount(of_w, (pull_w * (new_w - to_w))[seen_w], parts)) / stiff
        new_w[seen_w] += shift[of_w]
        new_p[seen_p] -= shift[of_p]
        change = max(
            np.abs(new_w - effect_w).max(initial=0.0), np.abs(new_p - effect_p).max(initial=0.0)
        )
        effect_w, effect_p = new_w, new_p
        if change < TOLERANCE:
            break
    return Baseline(effect_w + mean, effect_p, workload_component, platform_component)


def _pulls(
    workload: np.ndarray, platform: np.ndarray, log_runtime: np.ndarray, baseline: Baseline
) -> tuple[np.ndarray, np.ndarray]:
    """Compute what to add to the counts of the workloads and of the platforms, by a first fit."""
    rest = rest_of(workload, platform, log_runtime, baseline)
    rest = rest if np.isfinite(rest) else USUAL_REST
    pulls = []
    for values, codes in ((baseline.workload, workload), (baseline.platform, platform)):
        distinct = values[np.unique(codes)]
        apart = float(distinct.var()) if len(distinct) > 1 else 0.0
        pull = np.clip(rest / max(apart, 1e-9), LEAST_PULL, MOST_PULL)
        pulls.append(np.full(len(values), pull))
    return pulls[0], pulls[1]


def rest_of(
    workload: np.ndarray, platform: np.ndarray, log_runtime: np.ndarray, baseline: Baseline
) -> float:
    """Variance of the mean log runtime of a workload on a platform beyond both effects; NaN where there are
    no more of these means than effects."""
    cell = workload.astype(np.int64) * len(baseline.platform) + platform
    cells, inverse, repeats = np.unique(cell, return_inverse=True, return_counts=True)
    error = log_runtime - baseline.workload[workload] - baseline.platform[platform]
    error = np.bincount(inverse.reshape(-1), error) / np.maximum(repeats, 1)
    spare = len(cells) - len(np.unique(workload)) - len(np.unique(platform)) + 1
    return float(error @ error) / spare if spare > 0 else float("nan")


def connected_components(
    workload: np.ndarray, platform: np.ndarray, number_of_workloads: int, number_of_platforms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the components of the bipartite graph that the runs span, by propagating the smallest label.

    Returns the component of every workload and of every platform, -1 where there is no run.
    """
    label_w = np.arange(number_of_workloads)
    label_p = np.full(number_of_platforms, number_of_workloads)
    edges = np.unique(workload.astype(np.int64) * number_of_platforms + platform)
    edge_w, edge_p = edges // max(number_of_platforms, 1), edges % max(number_of_platforms, 1)
    while True:
        before = label_w.copy()
        np.minimum.at(label_p, edge_p, label_w[edge_w])
        np.minimum.at(label_w, edge_w, label_p[edge_p])
        # A label is itself a workload: jumping to that workload's own label halves the path length.
        label_w = label_w[label_w]
        if np.array_equal(before, label_w):
            break
    seen_w = np.zeros(number_of_workloads, bool)
    seen_w[edge_w] = True
    seen_p = np.zeros(number_of_platforms, bool)
    seen_p[edge_p] = True
    roots, numbers = np.unique(label_w[seen_w], return_inverse=True)
    component_w = np.full(number_of_workloads, -1)
    component_w[seen_w] = numbers
    component_p = np.full(number_of_platforms, -1)
    component_p[seen_p] = np.searchsorted(roots, label_p[seen_p])
    return component_w, component_p
