"""The linear-scaling baseline of a model: levels of workloads and platforms, with their features as prior.

One run says little about a name: what it took above the others is also how well this workload suits that
platform. So a name's level is what its features say of it, corrected by its runs as far as those are worth
more (an empirical Bayes estimate: Efron and Morris 1973). A name without a run has what its features say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.training._encoded_features import Features
from jostle.learn.training._linear_baseline import (
    Baseline,
    connected_components,
    fit_baseline,
    rest_of,
)

USUAL_PULL = 0.3  # in runs, where the data cannot say, at most
USUAL_REST = 0.1  # variance of the log runtime beyond both effects, there
PULLS = (1e-3, 10.0)  # least and most runs that an effect is shrunken by
FEWEST_NAMES = 8  # with runs, to judge by how well features tell a level


def baseline_of(
    workload: np.ndarray,
    platform: np.ndarray,
    alone: np.ndarray,
    log_runtime: np.ndarray,
    workload_features: Features,
    platform_features: Features,
) -> tuple[Baseline, tuple[str, ...]]:
    """Fitted on runs alone (a mask); a name that never ran alone is placed by its runs with co-runners,
    and one that never ran at all by its features."""
    notes = []
    n_workloads, n_platforms = len(workload_features.numeric), len(platform_features.numeric)
    used = alone
    if not used.any():
        notes.append("no run is without co-runners: the baseline stands on runs with co-runners")
    alone_w = np.bincount(workload[used], minlength=n_workloads)
    alone_p = np.bincount(platform[used], minlength=n_platforms)
    used = used | (alone_w[workload] == 0) | (alone_p[platform] == 0)
    baseline = _with_features(
        workload[used], platform[used], log_runtime[used], workload_features, platform_features
    )
    everything = connected_components(workload, platform, n_workloads, n_platforms)
    components = []
    for names, features in zip(everything, (workload_features, platform_features), strict=True):
        names = names.copy()
        if features.numeric.shape[1] and (names >= 0).any():
            names[names < 0] = 0  # features stand in for runs
        components.append(names)
    component_w, component_p = components
    # Lone names without features stay apart from everything, their own kind of disconnected.
    component_p = np.where(component_p < 0, -2, component_p)
    baseline = Baseline(baseline.workload, baseline.platform, component_w, component_p)
    if baseline.number_of_components > 1:
        notes.append(
            f"the runs fall into {baseline.number_of_components} parts that share no workload and no "
            "platform; there is no answer across them"
        )
    return baseline, tuple(notes)


@dataclass(frozen=True)
class _Prior:
    """level: (names,) log seconds that features tell. pull: how many runs that is worth."""

    level: np.ndarray
    pull: float


def _with_features(
    workload: np.ndarray,
    platform: np.ndarray,
    log_runtime: np.ndarray,
    workload_features: Features,
    platform_features: Features,
) -> Baseline:
    """Levels by least squares first; from them what features tell, and the levels anew."""
    sizes = len(workload_features.numeric), len(platform_features.numeric)
    plain = fit_baseline(workload, platform, log_runtime, *sizes)
    if not len(log_runtime):
        return plain
    cells = np.unique(workload.astype(np.int64) * sizes[1] + platform)
    noise = rest_of(workload, platform, log_runtime, plain)
    pulls, priors = [], []
    for values, codes, runs_of, features in (
        (plain.workload, cells // sizes[1], workload, workload_features),
        (plain.platform, cells % sizes[1], platform, platform_features),
    ):
        different = np.bincount(codes, minlength=len(values))
        prior = _prior(values, different, noise, features.numeric.astype(np.float64))
        # Repeats of a workload on one platform tell no more of its level than one run there.
        runs = np.bincount(runs_of, minlength=len(values))
        pulls.append(prior.pull * np.maximum(runs, 1) / np.maximum(different, 1))
        priors.append(prior.level)
    return fit_baseline(
        workload, platform, log_runtime, *sizes, shrinkage=tuple(pulls), towards=tuple(priors)
    )


def _prior(values: np.ndarray, cells: np.ndarray, noise: float, x: np.ndarray) -> _Prior:
    """values: (n,) levels; cells: (n,) co-locations each rests on, 0 for a name without a run."""
    known = cells > 0
    if not known.any():
        return _Prior(values, USUAL_PULL)
    weight = cells[known] / (cells[known] + 1.0)
    level, left_out = _ridge(x[known], values[known], weight, x)
    if known.sum() < FEWEST_NAMES or not np.isfinite(noise):
        noise = noise if np.isfinite(noise) else USUAL_REST
        apart = float(np.average((values[known] - level[known]) ** 2, weights=weight))
        return _Prior(level, float(np.clip(noise / max(apart, 1e-9), PULLS[0], USUAL_PULL)))
    between = np.average((values[known] - left_out) ** 2, weights=weight)
    between -= np.average(noise / cells[known], weights=weight)
    pull = np.clip(noise / max(between, 1e-9), *PULLS)
    return _Prior(level, float(pull))


def _ridge(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, ask: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of y on x, weighted: (answers at `ask`, answers at x each without its own y). The
    penalty grows with the columns."""
    centre = np.average(y, weights=weight)
    gram = (x.T * weight) @ x + max(1.0, 0.1 * len(x)) * np.eye(x.shape[1])
    solved = np.linalg.solve(gram, x.T * weight)
    own = np.minimum(np.einsum("nk,kn->n", x, solved) + weight / weight.sum(), 0.99)
    fitted = centre + x @ (solved @ (y - centre))
    return centre + ask @ (solved @ (y - centre)), y - (y - fitted) / (1 - own)
