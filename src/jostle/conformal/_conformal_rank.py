"""Which of the ordered scores is the bound: the conformal rank, plain and of weighted runs.

Source: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, split conformal
prediction: of n exchangeable calibration scores and one new one, the new one is at most the
ceil((n+1) * confidence)-th smallest with probability at least `confidence`. When that rank exceeds n
no finite bound is valid.

Runs measured together are not exchangeable one by one, but their windows are. Then a run of a new
window stays under a threshold with probability at least `confidence` if the threshold leaves out at
most the share (1 - confidence) of the total weight, where each of the N windows weighs the same, and
so does the new one, all of whose runs count as misses. With one run a window this is the rank above.

With few windows of several runs that keeps up to 2 / (N + 1) more than asked for (Lee, Barber and
Willett 2023, *Distribution-free inference with hierarchical data*), the more the less the runs of a
window are alike. Where one run of each window, drawn without looking at the scores, stands for it (Dunn,
Wasserman and Ramdas 2022, *Distribution-free prediction sets for two-layer hierarchical models*), the
first rank above holds for a run drawn from a new window, however alike its runs are:
ceil((N + 1) * confidence) / (N + 1) are kept.
"""

from __future__ import annotations

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.conformal._constants import LARGEST, SUMS_ROUND


def conformal_rank(n: int, confidence: float) -> int:
    """Compute ceil((n + 1) * confidence), exactly; a rank above n means that the bound is infinite."""
    share = exact_confidence(confidence)
    return -(-(n + 1) * share.numerator // share.denominator)


def window_weights(window: np.ndarray, units: float | None = None) -> tuple[np.ndarray, float]:
    """Compute (weight (n,) of every run, total weight of all windows and a new one).

    Each window weighs 1, shared out over its runs. units: as how many all windows count beside the new one,
    by default as many as there are.
    """
    _, inverse, counts = np.unique(window, return_inverse=True, return_counts=True)
    n = len(counts)
    return (1 / counts)[inverse.reshape(-1)], n + (1.0 if units is None else n / units)


def effective_number(score: np.ndarray, group: np.ndarray) -> float:
    """Estimate how many independent scores tell as much as these, of groups whose scores are alike.

    The geometric mean of the number of groups, as if all scores of a group were one, and of the scores over
    their design effect (Kish 1965), 1 + (size - 1) * correlation within a group of which scores are among the
    largest; few groups tell of that correlation but roughly.
    """
    if not len(score):
        return 0.0
    _, code, size = np.unique(group, return_inverse=True, return_counts=True)
    code, groups, n = code.reshape(-1), len(size), len(score)
    if groups < 3 or groups == n:
        return groups
    independent = n
    for level in LARGEST:
        late = (score >= np.quantile(score, level, method="lower")).astype(float)
        mean = np.bincount(code, late) / size
        within = float((size * mean * (1 - mean)).sum()) / (n - groups)
        between = float((size * (mean - late.mean()) ** 2).sum()) / (groups - 1)
        apart = max((between - within) * (groups - 1) / (n - (size**2).sum() / n), 0.0)
        alike = apart / (apart + within) if apart + within > 0 else 1.0
        independent = min(independent, float((size / (1 + (size - 1) * alike)).sum()))
    return float(np.sqrt(max(independent, groups) * groups))


def one_run_of_each(window: np.ndarray) -> np.ndarray:
    """Draw one run of each window at random, always the same, whatever the scores. Returns (windows,) rows,
    ascending."""
    drawn = np.random.default_rng(0).permutation(len(window))
    return np.sort(drawn[np.unique(window[drawn], return_index=True)[1]])


def rank_by_weight(cumulative: np.ndarray, total: float, confidence: float) -> int:
    """Return the 1-based rank of the threshold among scores in ascending order.

    cumulative: (n,) running sum of the sorted scores' weights; total: with the new window's weight.
    Returns n + 1 where no finite threshold is valid.
    """
    # Sums round: what is short of the share by less than that has reached it.
    needed = total * float(exact_confidence(confidence)) * (1 - SUMS_ROUND)
    return int(np.searchsorted(cumulative, needed)) + 1
