"""What a run showed so far, and a forest that sorts such moments by what recorded runs did after them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from jostle.errors import MissingExtra

LAGS = (0, 1, 2, 3, 4, 5, 6, 9, 13, 18, 25, 35, 50, 80, 150)  # samples ago, ends of blocks
SPANS = (3, 9, 27)
RECENT = 27  # samples whose extremes are told beside those of the whole run so far
BLOCKS = (*pairwise(LAGS), *((0, span) for span in SPANS))
TREES, LEAF = 200, 5
MANY = 8  # components: with more, fewer columns are tried at each split
KNOWN = 9  # samples: a run of which nothing is known for longer shows nothing


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

    def shown(self, runs: np.ndarray, moments: np.ndarray, length: int) -> np.ndarray:
        """Return (m, p) means of blocks of the past, then extremes, each of all d components, NaN where
        nothing is known; last the time, as a share of all runs' length."""
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
        return np.concatenate([*parts, moments[:, None] / max(length - 1, 1)], axis=1)


class ForestOfMoments:
    """Moments sorted by what recorded runs did next: those that it sorts together are alike (quantile
    regression forests: Meinshausen, J. Machine Learning Research 7, 2006)."""

    def __init__(self, shown: np.ndarray, outcome: np.ndarray, seed: int) -> None:
        """shown: (n, p) of recorded moments. outcome: (n, d) ranks a while later. Raises MissingExtra."""
        try:
            from sklearn.ensemble import ExtraTreesRegressor
        except ImportError:
            raise MissingExtra("scikit-learn", "fit") from None
        how: dict[str, Any] = {"max_features": 1.0 if outcome.shape[1] <= MANY else "sqrt"}
        self._forest = ExtraTreesRegressor(
            n_estimators=TREES, min_samples_leaf=LEAF, random_state=seed % 2**32, **how
        )
        self._forest.fit(shown, outcome.squeeze(axis=1) if outcome.shape[1] == 1 else outcome)
        self._leaves = self._sorted(shown)

    def weights(self, shown: np.ndarray) -> np.ndarray:
        """Return (n,) of the moments learned from, sum 1, for one moment that showed this (p,)."""
        same = self._leaves == self._sorted(shown[None])
        return (same / same.sum(axis=0)).mean(axis=1)

    def _sorted(self, shown: np.ndarray) -> np.ndarray:
        """Return (n, trees) leaves. Of one moment the forest's own `apply` takes longer to hand out than
        to find."""
        narrow = np.ascontiguousarray(shown, np.float32)
        trees = self._forest.estimators_
        return np.stack([tree.tree_.apply(narrow) for tree in trees], axis=1)
