"""What stressors showed, put together: time is lost as a product of how one suffers and how others press.

    log slowdown = sum over stressors k, l of w[k, l] * suffers[k] * presses[l],    w >= 0

suffers[k] is the log slowdown of the stretch beside stressor k, presses[l] that of stressor l beside the
co-runners' stretches. Few weights that cannot fall below 0 need few programs to learn from. With one stressor
this is the idea of Mars et al., "Bubble-Up" (MICRO 2011), phase by phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows
from jostle.learn.learners.counters.solo._probed import LOST, TAKEN
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS

MOST_TAKEN = 0.95  # of a stressor's time
RIDGE = 1e-4  # of the mean square of a feature
ROUNDS = 2  # of fits again, in which runs are weighed by the errors of the one before


def probe_counters(names: Sequence[str]) -> tuple[str, ...]:
    """Those that the mixture needs, instructions first; empty where there are none."""
    counters = [name for name in names if name.startswith((LOST, TAKEN))]
    both = all(any(name.startswith(prefix) for name in counters) for prefix in (LOST, TAKEN))
    return (INSTRUCTIONS, *counters) if both else ()


@dataclass(frozen=True, eq=False)
class ProbedMixture:
    """lost, taken: places of their counters among the rates. weights: (lost, taken). limits: as of the other
    learners."""

    lost: np.ndarray
    taken: np.ndarray
    weights: np.ndarray
    limits: tuple[float, float]

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) of (n, d) rates."""
        suffers, presses = _logs(own[:, self.lost], others[:, self.taken])
        ratio = np.exp(((suffers @ self.weights) * presses).sum(axis=1))
        return np.where((others > 0).any(axis=1), np.clip(ratio, *self.limits), 1.0)


def _logs(lost: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log slowdowns of the stretch beside each stressor, and of each stressor beside the others."""
    return np.log1p(np.maximum(lost, 0.0)), -np.log1p(-np.clip(taken, 0.0, MOST_TAKEN))


def fit_mixture(rows: AlignedRows, limits: tuple[float, float]) -> ProbedMixture:
    """Of rows with counters of probes."""
    from scipy.optimize import nnls

    lost, taken = (
        np.array([i for i, name in enumerate(rows.counters) if name.startswith(prefix)], np.int64)
        for prefix in (LOST, TAKEN)
    )
    suffers, presses = _logs(rows.own[:, lost], rows.others[:, taken])
    x = (suffers[:, :, None] * presses[:, None, :]).reshape(len(rows), -1)
    y = np.log(np.clip(rows.slowdown, *limits))
    size = np.sqrt(np.mean(x**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    x, of_run, run = x / size, np.ones(int(rows.run_index.max()) + 1), rows.run_index
    solo = rows.solo_seconds / rows.solo_seconds.mean()
    weights = np.zeros(x.shape[1])
    for number in range(1 + ROUNDS):
        weight = np.sqrt(solo * of_run[run])
        gram = (x * weight[:, None]).T @ (x * weight[:, None])
        gram += RIDGE * len(rows) * np.eye(len(gram))
        # The normal equations by their root: as many rows as there are weights.
        root = np.linalg.cholesky(gram).T
        aim = np.linalg.solve(root.T, (x * weight[:, None]).T @ (y * weight))
        weights = nnls(root, aim)[0]
        if number < ROUNDS:
            error = np.abs(np.expm1(rows.run_logs(x @ weights) - rows.run_logs()))
            of_run = 1.0 / np.maximum(error, max(float(np.median(error)), 1e-3))
            of_run = of_run / of_run.mean()
    return ProbedMixture(lost, taken, (weights / size).reshape(len(lost), len(taken)), limits)
