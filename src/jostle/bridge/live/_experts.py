"""What recorded runs did a while after they had shown such samples: regressions, each on the run so far.

Each says of every recorded moment, by a fit on other runs, what was to be expected after it: a mean, or
quantiles. Moments of which the same is expected are alike for a forecast, whatever their past samples were
(prognostic scores: Hansen, Biometrika 95, 2008), and what they did next, moved from the quantiles expected
there to those expected here, is what this run may do next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np

LAGS = (0, 1, 2, 3, 4, 5, 6, 9, 13, 18, 25, 35, 50, 80, 150)  # samples ago, ends of blocks
SPANS = (3, 9, 27)
RECENT = 27  # samples whose extremes are told beside those of the whole run so far
BLOCKS = (*pairwise(LAGS), *((0, span) for span in SPANS))
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of quantile regression
STEPS, NEAR_ZERO = 25, 1e-3
MANY = 8  # components: with more, only the forest is quick enough
FOLDS = 4
TREES: dict[str, Any] = {"n_estimators": 50, "min_samples_leaf": 5}
KNOWN = 9  # samples: a run of which nothing is known for longer shows nothing
Predict = Callable[[np.ndarray], np.ndarray]  # (n, p) to (n, d, levels)
Fit = Callable[[np.ndarray, np.ndarray], Predict]


class Past:
    """Ranks (R, s, d) of runs, NaN where not known, to take what was shown until a moment from."""

    def __init__(self, ranks: np.ndarray) -> None:
        self.values, known = ranks, np.isfinite(ranks)
        # (R, s) whether anything is, of the last samples.
        shows = np.asarray(known.any(axis=2))
        self.is_known = shows.copy()
        for ago in range(1, min(KNOWN, shows.shape[1])):
            self.is_known[:, ago:] |= shows[:, :-ago]
        self._sums, self._counts = (
            np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0), (0, 0)))
            for values in (np.where(known, ranks, 0.0), known.astype(float))
        )
        self._extremes = []
        for pick in (np.fmax, np.fmin):
            self._extremes.append(pick.accumulate(ranks, axis=1))
            recent = ranks.copy()
            for ago in range(1, RECENT):
                recent[:, ago:] = pick(recent[:, ago:], ranks[:, :-ago])
            self._extremes.append(recent)

    def shown(
        self, runs: np.ndarray, moments: np.ndarray, length: int, more: Sequence[np.ndarray] = ()
    ) -> np.ndarray:
        """(m, p) means of blocks of the past, each of all d components, NaN where nothing is known; `more`
        (m, d) each, if any; last the time, of all runs' length."""
        parts = []
        for first, last in BLOCKS:
            # What is before the run began repeats its first samples.
            high = np.maximum(moments + 1 - first, 1)
            low = np.minimum(np.maximum(moments + 1 - last, 0), high - 1)
            total = self._sums[runs, high] - self._sums[runs, low]
            number = self._counts[runs, high] - self._counts[runs, low]
            parts.append(
                np.divide(total, number, out=np.full_like(total, np.nan), where=number > 0.5)
            )
        # What is not known is taken from the block beside it, the older one first.
        for number in (*range(len(parts) - 2, -1, -1), *range(1, len(parts))):
            beside = parts[number + 1] if number + 1 < len(parts) else parts[number - 1]
            beside = np.where(np.isfinite(beside), beside, parts[number - 1])
            parts[number] = np.where(np.isfinite(parts[number]), parts[number], beside)
        parts += [one[runs, moments] for one in self._extremes]
        return np.concatenate([*parts, *more, moments[:, None] / max(length - 1, 1)], axis=1)


def newest(d: int) -> list[int]:
    """Columns of what `Past.shown` says of the last samples: the newest, and the means of three and nine."""
    return [d * block + c for block in (0, len(LAGS) - 1, len(LAGS)) for c in range(d)]


def in_own_units(shown: np.ndarray, d: int) -> list[np.ndarray]:
    """[(m, d), …] blocks of what was shown, from the run's own newest sample on, in units of how far it went:
    runs that do the same at other sizes are alike there."""
    body = shown[:, :-1].reshape(len(shown), -1, d)
    unit = body[:, : len(LAGS) - 1].std(axis=1)
    unit = np.where(unit > 1e-9 * np.abs(body[:, 0]), unit, np.inf)
    return [(body[:, block] - body[:, 0]) / unit for block in range(1, body.shape[1])]


class Expectation:
    """expected: (m, d, levels) of recorded moments, each by a fit without its own run."""

    def __init__(self, fit: Fit, shown: np.ndarray, outcome: np.ndarray, runs: np.ndarray) -> None:
        folds = runs % FOLDS
        every = [fit(shown[folds != fold], outcome[folds != fold]) for fold in range(FOLDS)]
        self._fits = every
        self.expected = self.of(shown, runs)

    def of(self, shown: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """(n, d, levels) after moments of recorded runs; of others (-1) by all fits together."""
        parts = {fold: runs % FOLDS == fold for fold in range(FOLDS)}
        if (runs < 0).all():
            return np.mean([fit(shown) for fit in self._fits], axis=0)
        first = self._fits[0](shown[:1])
        out = np.empty((len(shown), *first.shape[1:]))
        for fold, part in parts.items():
            if part.any():
                out[part] = self._fits[fold](shown[part])
        return out


class ForestKernel:
    """A forest that sorts moments by what they did next: those that it sorts together are alike (quantile
    regression forests: Meinshausen, J. Machine Learning Research 7, 2006). Fitted as `Expectation` is."""

    def __init__(self, shown: np.ndarray, outcome: np.ndarray, runs: np.ndarray) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        # Of so many columns the best is taken at each split.
        how: dict[str, Any] = TREES | {"max_features": 0.4 if outcome.shape[1] <= MANY else "sqrt"}
        self._folds, self._each = runs % FOLDS, []
        for fold in range(FOLDS):
            learned = self._folds != fold
            trees = ExtraTreesRegressor(random_state=fold, **how)
            self._each.append(trees.fit(shown[learned], outcome[learned].squeeze()))
        # What a forest learned from: (FOLDS, n, trees) their leaves, -1 of all others.
        self._leaves = np.stack([self._sorted(one, shown) for one in self._each])
        self._leaves[self._folds, np.arange(len(shown))] = -1

    def leaves(self, shown: np.ndarray, runs: np.ndarray) -> np.ndarray:
        """(n, FOLDS, trees) of moments; -2 by forests that learned from the run."""
        every = np.stack([self._sorted(one, shown) for one in self._each], axis=1)
        is_known = (runs[:, None] >= 0) & (runs[:, None] % FOLDS != np.arange(FOLDS))
        every[is_known] = -2
        return every

    @staticmethod
    def _sorted(forest: Any, shown: np.ndarray) -> np.ndarray:
        """(n, trees) leaves. Of one moment the forest's own `apply` takes longer to hand out than to find."""
        narrow = np.ascontiguousarray(shown, np.float32)
        return np.stack([tree.tree_.apply(narrow) for tree in forest.estimators_], axis=1)

    def weights(self, own: np.ndarray) -> np.ndarray:
        """(n,) of the moments learned from, sum 1, for one with such leaves (FOLDS, trees)."""
        total = np.zeros(self._leaves.shape[1])
        asked = np.flatnonzero(own[:, 0] != -2)
        for fold in asked.tolist():
            same = self._leaves[fold] == own[fold]
            total += (same / same.sum(axis=0)).mean(axis=1)
        return total / len(asked)


def has_trees() -> bool:
    """Whether scikit-learn is installed."""
    return find_spec("sklearn") is not None


def line(x: np.ndarray, y: np.ndarray) -> Predict:
    """Means, straight in the columns (what rises goes on rising, what swings swings back); of rows whose
    outcome is known."""
    known = np.isfinite(y).all(axis=1)
    unit = _Unit(x)
    table = np.concatenate([unit.of(x[known]), np.ones((known.sum(), 1))], axis=1)
    gram = table.T @ table + 1e-3 * max(known.sum(), 1) * np.eye(table.shape[1])
    weights = np.linalg.solve(gram, table.T @ y[known])
    return lambda shown: (unit.of(shown) @ weights[:-1] + weights[-1])[..., None]


def fits(components: int) -> dict[str, Fit]:
    """The regressions that there are, by name; of many components they would take too long."""
    every: dict[str, Fit] = {}
    if components <= MANY:
        every["quantiles"] = lambda x, y: _by_component(x, y, _quantiles)
    if components <= MANY and has_trees():
        every["boosting"] = lambda x, y: _by_component(x, y, _boosting)
    return every


def moved(outcome: np.ndarray, there: np.ndarray, here: np.ndarray) -> np.ndarray:
    """(m, d) outcomes moved from the quantiles expected there (m, d, levels) to those here (d, levels):
    piecewise straight, and beyond the outermost by as much as these."""
    low = (outcome[..., None] > there).sum(axis=2) - 1
    inside = (low >= 0) & (low < there.shape[2] - 1)
    low = np.clip(low, 0, there.shape[2] - 1)
    high = np.minimum(low + 1, there.shape[2] - 1)
    columns = np.arange(len(here))[None, :]
    a, b = (np.take_along_axis(there, at[..., None], axis=2)[..., 0] for at in (low, high))
    part = np.where(inside, (outcome - a) / np.maximum(b - a, 1e-12), 0.0)
    start, end = here[columns, low], here[columns, high]
    return np.where(inside, start + part * (end - start), outcome - a + start)


class _Unit:
    """Columns (n, p) as so many deviations from their means; what is not known is taken as usual."""

    def __init__(self, shown: np.ndarray) -> None:
        known = np.isfinite(shown)
        count = np.maximum(known.sum(axis=0), 1)
        self._middle = np.where(known, shown, 0.0).sum(axis=0) / count
        away = np.where(known, shown - self._middle, 0.0)
        self._unit = 1 / np.maximum(np.sqrt((away**2).sum(axis=0) / count), 1e-6)

    def of(self, shown: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(shown), (shown - self._middle) * self._unit, 0.0)


def _by_component(
    x: np.ndarray, y: np.ndarray, fit: Callable[[np.ndarray, np.ndarray], Predict]
) -> Predict:
    """Each component by its own past, the newest of all others and the time."""
    d = y.shape[1]
    own = [np.unique([*range(d), *range(c, x.shape[1] - 1, d), x.shape[1] - 1]) for c in range(d)]
    each = [fit(x[:, columns], y[:, c]) for c, columns in enumerate(own)]
    return lambda shown: np.stack(
        [one(shown[:, columns]) for one, columns in zip(each, own, strict=True)], axis=1
    )


def _quantiles(x: np.ndarray, y: np.ndarray) -> Predict:
    """Quantiles, straight in the columns (Koenker and Bassett, Econometrica 46, 1978), by majorizing (Hunter
    and Lange, J. Computational and Graphical Statistics 9, 2000); where they cross they are put in order."""
    unit = _Unit(x)

    def columns(shown: np.ndarray) -> np.ndarray:
        z = unit.of(shown)
        return np.concatenate([z, np.ones((len(z), 1))], axis=1)

    table = columns(x)
    ridge = 1e-3 * len(x) * np.eye(table.shape[1])
    start = np.linalg.solve(table.T @ table + ridge, table.T @ y)
    every = []
    for level in LEVELS:
        weights = start
        for _ in range(STEPS):
            near = table / (NEAR_ZERO + np.abs(y - table @ weights))[:, None]
            aim = near.T @ y + (2 * level - 1) * table.sum(axis=0)
            weights = np.linalg.solve(near.T @ table + ridge, aim)
        every.append(weights)
    return lambda shown: np.sort(columns(shown) @ np.stack(every, axis=1), axis=1)


def _boosting(x: np.ndarray, y: np.ndarray) -> Predict:
    """Means, by boosted trees."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    how: dict[str, Any] = {"early_stopping": False}  # stubs say only text
    trees = HistGradientBoostingRegressor(
        max_iter=80, learning_rate=0.08, max_leaf_nodes=15, random_state=0, **how
    )
    trees.fit(x, y)
    return lambda shown: trees.predict(shown)[:, None]
