"""The linear-scaling baseline: log runtime = workload + platform, fitted on runs without co-runners.

Source: Pitot (MLSys 2025), Sec. 3.2: a two-way additive model. Effects are shrunken a little towards
the overall mean (ridge regression with the penalty `shrinkage`), so that a name seen once does
not take its one measurement at face value: by default by the evidence, as much as what two-way effects
leave is of how far names lie apart (an empirical Bayes estimate: Efron and Morris 1973). Where the
bipartite graph of workloads and platforms falls into several connected components, nothing ties their
scales together: the components are reported, so that no caller answers across them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

TOLERANCE = 1e-13  # relative, of the least squares
MOST_STEPS = 2000  # of the least squares
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
    """Fit by least squares, shrunken.

    workload, platform: (n,) integer codes; log_runtime: (n,) natural log of seconds. shrinkage: what is
    added to every count, or one value for each workload and for each platform; by default by the evidence,
    at most 0.3. towards: (log seconds of the
    workloads, of the platforms), what effects are shrunken to, and what a name without a run has; by
    default the overall mean.
    """
    from scipy.sparse import diags, vstack
    from scipy.sparse.linalg import lsqr

    sizes = number_of_workloads, number_of_platforms
    if shrinkage is None:
        usual = fit_baseline(
            workload, platform, log_runtime, *sizes, shrinkage=FIRST_PULL, towards=towards
        )
        shrinkage = _pulls(workload, platform, log_runtime, usual)
    pulls = shrinkage if isinstance(shrinkage, tuple) else (shrinkage, shrinkage)
    pull = np.concatenate([np.broadcast_to(p, n) for p, n in zip(pulls, sizes, strict=True)])
    mean = float(log_runtime.mean()) if len(log_runtime) else 0.0
    start = np.repeat([mean, 0.0], sizes) if towards is None else np.concatenate(towards)
    x = _incidence(workload, platform, *sizes)
    rows = vstack([x, diags(np.sqrt(pull))])
    y = np.concatenate([log_runtime - x @ start, np.zeros(len(pull))])
    effect = start + lsqr(rows, y, atol=TOLERANCE, btol=TOLERANCE, iter_lim=MOST_STEPS)[0]
    of_workloads, of_platforms = np.split(effect, sizes[:1])
    components = connected_components(workload, platform, *sizes)
    return Baseline(of_workloads, of_platforms, *components)


def _incidence(workload: np.ndarray, platform: np.ndarray, workloads: int, platforms: int) -> Any:
    """Make a sparse matrix (n, workloads + platforms), 1 for the names of each run."""
    from scipy.sparse import csr_matrix

    n = len(workload)
    at = np.tile(np.arange(n), 2), np.concatenate([workload, platform.astype(np.int64) + workloads])
    return csr_matrix((np.ones(2 * n), at), shape=(n, workloads + platforms))


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
    """Find the components of the bipartite graph that the runs span.

    Returns the component of every workload and of every platform, -1 where there is no run.
    """
    from scipy.sparse.csgraph import connected_components as components_of

    x = _incidence(workload, platform, number_of_workloads, number_of_platforms)
    _, label = components_of(x.T @ x, directed=False)
    seen = np.asarray(x.sum(axis=0)).ravel() > 0
    out = np.full(len(label), -1)
    out[seen] = np.unique(label[seen], return_inverse=True)[1].reshape(-1)
    first, second = np.split(out, [number_of_workloads])
    return first, second
