"""Bounds that people try first: quantiles by name and platform, and of boosted trees."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from jostle.conformal import conformal_rank
from jostle.data import Colocations, Runs
from jostle.errors import MissingExtra, NotEnoughRuns

MOST_ROWS = 50_000  # that trees learn from, taken evenly


@dataclass(frozen=True, eq=False)
class NameQuantiles:
    """The median and the conformal quantile of a name on a platform; of the name alone if runs there are too
    few for the confidence.

    asked: (n,) co-locations of runs. seconds: (n,) what those took.
    """

    asked: Colocations
    seconds: np.ndarray

    @classmethod
    def of(cls, runs: Runs, seed: int) -> NameQuantiles:
        """Learn from runs in any order."""
        return cls(runs.colocations, runs.runtime_seconds)

    def predict_and_bound(
        self, asked: Colocations, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answer co-locations. Returns ((m,) seconds, (m,) bounds, infinite if runs are too few)."""
        own = self.asked
        codes = np.column_stack(asked.recode(own.workload_names, own.platform_names)[:2])
        kinds, kind = np.unique(codes, axis=0, return_inverse=True)
        typical, most = np.empty(len(kinds)), np.full(len(kinds), np.inf)
        for row, (name, platform) in enumerate(kinds.tolist()):
            mine = own.workload == name
            there = mine & (own.platform == platform)
            is_enough = conformal_rank(int(there.sum()), confidence) <= there.sum()
            some = np.sort(self.seconds[there if is_enough else mine])
            typical[row] = np.median(some if len(some) else self.seconds)
            if (rank := conformal_rank(len(some), confidence)) <= len(some):
                most[row] = some[rank - 1]
        return typical[kind.reshape(-1)], most[kind.reshape(-1)]


@dataclass(frozen=True, eq=False)
class BoostedQuantiles:
    """Quantile regression by boosted trees, conformalised on runs that the trees did not learn from.

    Inputs are the usual time of the name and of the platform, how many of each name are beside it, and
    numeric covariates.

    By LightGBM if it is installed, else by scikit-learn's histogram gradient boosting.

    asked, seconds: as of `NameQuantiles`. held: (n,) bool, the runs to conformalise on.

    Raises NotEnoughRuns if there is nothing to learn from, MissingExtra without a library.
    """

    asked: Colocations
    seconds: np.ndarray
    held: np.ndarray
    _learned: dict[float, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if not find_spec("lightgbm") and not find_spec("sklearn"):
            raise MissingExtra("scikit-learn", "fit")
        if (learned := int((~self.held).sum())) < 2:
            raise NotEnoughRuns(f"{learned} runs are too few for trees", fix="Measure more.")

    @classmethod
    def of(cls, runs: Runs, seed: int) -> BoostedQuantiles:
        """Learn from runs in any order, of which a random fifth is held back."""
        held = np.random.default_rng(seed).permutation(len(runs)) < len(runs) // 5
        return cls(runs.colocations, runs.runtime_seconds, held)

    def predict_and_bound(
        self, asked: Colocations, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Answer co-locations. Returns ((m,) seconds, (m,) bounds, infinite if runs are too few)."""
        if confidence not in self._learned:
            self._learned[confidence] = self._learn(confidence)
        inputs, median, high, over = self._learned[confidence]
        columns = inputs(asked)
        return np.exp(median.predict(columns)), np.exp(high.predict(columns) + over)

    def _learn(self, confidence: float) -> tuple[Any, ...]:
        """Learn. Returns (what makes columns of co-locations, trees of the median, trees of the bound, what
        is added to their log seconds)."""
        rows, held = np.flatnonzero(~self.held), np.flatnonzero(self.held)
        rows = rows[:: -(-len(rows) // MOST_ROWS)]
        train, log = self.asked.take(rows), np.log(self.seconds)
        names = train.workload_names, train.platform_names
        usual = [
            _medians(code, log[rows], len(known))
            for code, known in zip((train.workload, train.platform), names, strict=True)
        ]

        def inputs(some: Colocations) -> np.ndarray:
            *codes, corunner = some.recode(*names)
            number = some.number_of_corunners
            beside = np.zeros((len(some), len(names[0]) + 1), np.float32)  # the last: unknown names
            np.add.at(beside, (np.repeat(np.arange(len(some)), number), corunner), 1)
            columns = [table[code] for table, code in zip(usual, codes, strict=True)]
            columns += [one for one in some.covariates.values() if one.dtype.kind == "f"]
            return np.column_stack([number, *columns, beside])

        median, high = (_trees(level) for level in (0.5, confidence))
        for trees in (median, high):
            trees.fit(inputs(train), log[rows])
        scores = np.sort(log[held] - high.predict(inputs(self.asked.take(held))))
        rank = conformal_rank(len(scores), confidence)
        over = scores[rank - 1] if rank <= len(scores) else np.inf
        return inputs, median, high, over


def quantile_rivals() -> dict[str, type[NameQuantiles] | type[BoostedQuantiles]]:
    """Name each by what it does and the library that does the work."""
    library = "LightGBM" if find_spec("lightgbm") else "scikit-learn's boosted trees"
    title = f"conformalised quantiles of {library}"
    return {"quantile by name and platform": NameQuantiles, title: BoostedQuantiles}


def _medians(code: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Take the median of each code's values, or of all values if it has none. Returns (size + 1,)."""
    table = np.full(size + 1, np.median(values))
    for one in np.unique(code).tolist():
        table[one] = np.median(values[code == one])
    return table


def _trees(level: float) -> Any:
    """Make trees for a quantile."""
    if find_spec("lightgbm"):
        return import_module("lightgbm").LGBMRegressor(
            objective="quantile", alpha=level, n_estimators=200, learning_rate=0.05,
            min_child_samples=10, n_jobs=1, verbose=-1,
        )  # fmt: skip
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=200, learning_rate=0.05, min_samples_leaf=10
    )
