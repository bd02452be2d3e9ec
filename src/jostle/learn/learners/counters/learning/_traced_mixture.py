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
from jostle.learn.learners.stressors._stressor_mixture import coupling_of

RIDGE = 1e-4  # of the mean square of a product: there are many more rows than weights
MOST_TAKEN = 0.95  # of a stressor's time


def probe_counters(names: Sequence[str]) -> tuple[str, ...]:
    """Name the counters that the mixture needs, instructions first; none if some are missing."""
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
        """Predict (n,) slowdowns from (n, d) rates."""
        suffers, presses = _logs(own[:, self.lost], others[:, self.taken])
        ratio = np.exp(((suffers @ self.weights) * presses).sum(axis=1))
        return np.where((others > 0).any(axis=1), np.clip(ratio, *self.limits), 1.0)


def _logs(lost: np.ndarray, taken: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log slowdowns of the stretch beside each stressor, and of each stressor beside the others."""
    return np.log1p(np.maximum(lost, 0.0)), -np.log1p(-np.clip(taken, 0.0, MOST_TAKEN))


def fit_mixture(rows: AlignedRows, limits: tuple[float, float]) -> ProbedMixture:
    """Learn from rows with counters of probes; runs are weighed by how far their whole times are off."""
    lost, taken = (
        np.array([i for i, name in enumerate(rows.counters) if name.startswith(prefix)], np.int64)
        for prefix in (LOST, TAKEN)
    )
    run = rows.run_index

    def errors_of(log_slowdown: np.ndarray) -> np.ndarray:
        return np.abs(np.expm1(rows.run_logs(log_slowdown) - rows.run_logs()))[run]

    weights = coupling_of(
        *_logs(rows.own[:, lost], rows.others[:, taken]),
        np.log(np.clip(rows.slowdown, *limits)),
        rows.solo_seconds / rows.solo_seconds.mean(),
        errors_of,
        RIDGE,
    )
    return ProbedMixture(lost, taken, weights, limits)
