"""Boosting on target encodings: what is mostly done with names that are too many for columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.errors import needing_extras
from jostle.evaluate.rivals._beside import Beside, RuleAnswers
from jostle.evaluate.rivals._rival import Rival
from jostle.methods import Prepared
from jostle.progress import Progress
from jostle.rules import SlowdownRows, looked_up

FOLDS = 5
SHRINKAGE = 2.0  # runs that the overall mean weighs beside a name's own


@dataclass(frozen=True)
class EncodedBoosting(Rival):
    """Gradient boosting of the log slowdown on shrunken means by target, co-runner, platform and their
    pairs, made out of fold. trees, depth, learning_rate: as in scikit-learn."""

    trees: int = 150
    depth: int = 4
    learning_rate: float = 0.1

    name: ClassVar[str] = "encoded_boosting"

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> RuleAnswers:
        """Raises NotEnoughRuns without runs alone, and MissingExtra without scikit-learn."""
        with needing_extras():
            from sklearn.ensemble import GradientBoostingRegressor
        data = Beside.of(prepared)
        rows, y, solo = data.rows, data.rows.log_slowdown, data.log_solo
        if len(y) < FOLDS:
            mean = float(y.mean()) if len(y) else 0.0
            return RuleAnswers(data.names, solo, lambda query: np.full(len(query), mean))
        fold = np.random.default_rng(seed).permutation(np.arange(len(y)) % FOLDS)
        x: Any = None
        for part in range(FOLDS):
            held = fold == part
            encoded = _columns(rows.take(~held), y[~held], solo)(rows.take(held))
            x = np.zeros((len(y), encoded.shape[1])) if x is None else x
            x[held] = encoded
        model = GradientBoostingRegressor(
            loss="huber",
            n_estimators=self.trees,
            max_depth=self.depth,
            learning_rate=self.learning_rate,
            subsample=0.7,
            min_samples_leaf=3,
            random_state=seed,
        ).fit(x, y)
        columns = _columns(rows, y, solo)
        return RuleAnswers(data.names, solo, lambda query: model.predict(columns(query)))


def _columns(
    rows: SlowdownRows, y: np.ndarray, solo: np.ndarray
) -> Callable[[SlowdownRows], np.ndarray]:
    """What encodes rows by the means of these: (n, 10)."""
    w, overall = solo.shape[1], float(y.mean())
    tables = []
    for name in ("platform", "target", "corunner", "here", "beside here", "pair"):
        key, values = _key(rows, name, w), y[rows.row]
        names, at = np.unique(key, return_inverse=True)
        count = np.bincount(at)
        shrunken = np.bincount(at, values - overall) / (count + SHRINKAGE)
        tables.append((name, names, overall + shrunken))

    def of(query: SlowdownRows) -> np.ndarray:
        def encoded(table: Any, turned: bool = False) -> np.ndarray:
            name, names, means = table
            key = _key(query, name, w, turned)
            return query.mean(looked_up(names, means, key, overall))

        log_solo = np.nan_to_num(solo).ravel()
        return np.column_stack(
            [
                *(encoded(table) for table in tables),
                encoded(tables[5], turned=True),
                encoded(tables[3], turned=True),
                encoded(tables[4], turned=True),
                log_solo[query.target],
                query.mean(log_solo[query.corunner]),
                query.degree,
            ]
        )

    return of


def _key(rows: SlowdownRows, name: str, w: int, turned: bool = False) -> np.ndarray:
    """(m,) numbers by which a mean is taken. turned: with target and co-runner exchanged."""
    here, beside = rows.target[rows.row], rows.corunner
    if turned:
        here, beside = beside, here
    return {
        "platform": here // w,
        "target": here % w,
        "corunner": beside % w,
        "here": here,
        "beside here": beside,
        "pair": (here % w) * w + beside % w,
    }[name]
