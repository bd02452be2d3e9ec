"""What recorded runs did a while after they had shown such samples: a regression, to find donors by.

Two moments are alike for a forecast where what comes next is alike, not where every past sample was:
donors are matched by what a regression expects of them (prognostic scores: Hansen, Biometrika 95, 2008). It
is ridge regression on random Fourier features (Rahimi and Recht, NIPS 2007) of the ranks of the last samples,
finer for the near past and coarser for the far, and of the time; every run is predicted by a fit on others.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

LAGS = (0, 1, 2, 3, 4, 5, 6, 9, 13, 18, 25, 35, 50, 80, 150)  # samples ago, ends of blocks
SPANS = (3, 9, 27)
WAVES, WIDTH, RIDGE = 300, 2.0, 3.0
MOST_MOMENTS = 12_000  # moments that are learned from, and that may be donors
FOLDS = 4


class Past:
    """Ranks (R, s, d) of runs, NaN where not known, to take what was shown until a moment from."""

    def __init__(self, ranks: np.ndarray) -> None:
        known = np.isfinite(ranks)
        self._sums, self._counts = (
            np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0), (0, 0)))
            for values in (np.where(known, ranks, 0.0), known.astype(float))
        )

    def shown(self, runs: np.ndarray, moments: np.ndarray, times: np.ndarray) -> np.ndarray:
        """(m, p) means of blocks of the past, NaN where none of a block is known, and the times (m,)."""
        blocks = [*pairwise(LAGS), *((0, span) for span in SPANS)]
        parts = []
        for first, last in blocks:
            # What is before the run began repeats its first samples.
            high = np.maximum(moments + 1 - first, 1)
            low = np.minimum(np.maximum(moments + 1 - last, 0), high - 1)
            total = self._sums[runs, high] - self._sums[runs, low]
            number = self._counts[runs, high] - self._counts[runs, low]
            parts.append(
                np.divide(total, number, out=np.full_like(total, np.nan), where=number > 0.5)
            )
        return np.concatenate([*parts, times[:, None]], axis=1)


class Prognosis:
    """Expected outcomes of moments. runs, moments: (m,) those kept, expected: (m, d) of them, each without
    its own run.

    Made from pasts of recorded runs and their outcomes (R, s - ahead, d), where able (R, s - ahead), of s
    times in all (length).
    """

    def __init__(
        self,
        past: Past,
        outcome: np.ndarray,
        able: np.ndarray,
        length: int,
        random: np.random.Generator,
    ) -> None:
        runs, moments = np.nonzero(able)
        if len(runs) > MOST_MOMENTS:
            sample = np.sort(random.choice(len(runs), MOST_MOMENTS, replace=False))
            runs, moments = runs[sample], moments[sample]
        self.runs, self.moments = runs, moments
        self._length = length
        shown = past.shown(runs, moments, self._times(moments))
        known = np.isfinite(shown)
        count = np.maximum(known.sum(axis=0), 1)
        filled = np.where(known, shown, 0.0)
        self._middle = filled.sum(axis=0) / count
        spread = np.sqrt((np.where(known, filled - self._middle, 0.0) ** 2).sum(axis=0) / count)
        self._unit = 1 / np.maximum(spread, 1e-6)
        size = shown.shape[1]
        self._waves = random.standard_normal((size, WAVES)) * (WIDTH / np.sqrt(size))
        self._shifts = random.uniform(0, 2 * np.pi, WAVES)
        truth = outcome[runs, moments]
        folds = runs % FOLDS
        columns = self._columns(shown)
        parts = [np.flatnonzero(folds == fold) for fold in range(FOLDS)]
        squares = [columns[part].T @ columns[part] for part in parts]
        products = [columns[part].T @ truth[part] for part in parts]
        square, product = sum(squares), sum(products)
        ridge = RIDGE * np.eye(columns.shape[1])
        self._weights = [
            np.linalg.solve(square - own + ridge, product - mine)
            for own, mine in zip(squares, products, strict=True)
        ]
        self.expected = np.empty(truth.shape)
        for part, weights in zip(parts, self._weights, strict=True):
            self.expected[part] = columns[part] @ weights

    def of(self, past: Past, run: int, moment: int) -> np.ndarray:
        """(d,) what is expected after a moment of a run: of a recorded run by a fit without it, of the live
        one (run -1, the only one of its past) by all fits together."""
        place = np.array([moment])
        shown = past.shown(np.array([max(run, 0)]), place, self._times(place))
        columns = self._columns(shown)[0]
        if run >= 0:
            return columns @ self._weights[run % FOLDS]
        return columns @ np.mean(self._weights, axis=0)

    def _times(self, moments: np.ndarray) -> np.ndarray:
        return moments / max(self._length - 1, 1)

    def _columns(self, shown: np.ndarray) -> np.ndarray:
        """(m, p) as (m, waves + p + 1): what is not known is taken as usual."""
        z = np.where(np.isfinite(shown), (shown - self._middle) * self._unit, 0.0)
        waves = np.cos(z @ self._waves + self._shifts) * (3 * np.sqrt(2 / WAVES))
        return np.concatenate([waves, z / np.sqrt(z.shape[1]), np.ones((len(z), 1))], axis=1)
