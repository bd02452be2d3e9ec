"""Linear regression and support vector regression on the features of bags, to stand beside the trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.bag import Bag
from jostle.errors import MissingExtra
from jostle.runs import Colocations
from studies.rivals.rival import Rival, RivalAnswers

if TYPE_CHECKING:
    from jostle.methods import Data, Prepared
    from jostle.progress import Progress

LEAST = 0.05  # of the time alone, as for trees
_RIDGES = np.logspace(-3, 4, 15)  # of which leaving one run out chooses
_COST, _TUBE = 10.0, 0.05  # of SVR, whose target has unit spread


@dataclass(frozen=True)
class FeatureRegression(Rival):
    """kind: linear, or svr (radial basis functions). target, cpu_platform: as of Bag."""

    kind: str
    target: str
    cpu_platform: str | None = None

    name: ClassVar[str] = "feature_regression"

    def prepare(self, data: Data) -> Prepared:
        return self._bag.prepare(data)

    @property
    def _bag(self) -> Bag:
        return Bag(learner="tree", depth=1, target=self.target, cpu_platform=self.cpu_platform)

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _RegressionAnswers:
        """On what Bag makes of the runs beside others; what is unknown counts as the mean. Raises
        MissingExtra without scikit-learn."""
        try:
            from sklearn.linear_model import RidgeCV
            from sklearn.svm import SVR
        except ModuleNotFoundError:
            raise MissingExtra("scikit-learn", "evaluate") from None
        described = self._bag.fit(prepared, seed=seed)
        runs = prepared.together()
        query = runs.colocations
        solo = _solo(described, query)
        taken = (query.number_of_corunners > 0) & np.isfinite(solo)
        places = [query.platform_names.index(n) for n in described.input_platforms]
        taken &= ~np.isin(query.platform, places)
        x, solo, seconds = (
            described.features(query.take(taken)),
            solo[taken],
            runs.runtime_seconds[taken],
        )
        trees = described.trees
        assert trees is not None  # they stand alone here
        known = np.where(x == trees.unknown, np.nan, x)
        with np.errstate(invalid="ignore"):
            typical = np.nan_to_num(np.nanmean(known, axis=0))
        x = np.where(np.isnan(known), typical, known)
        spread = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
        y = {"slowdown": np.log(seconds / solo), "extra": seconds - solo}.get(self.target, seconds)
        middle, unit = float(y.mean()), float(y.std()) or 1.0
        weight = 1 / seconds**2 if self.target == "extra" else np.ones(len(y))
        learner: Any = RidgeCV(_RIDGES) if self.kind == "linear" else SVR(C=_COST, epsilon=_TUBE)
        learner.fit((x - typical) / spread, (y - middle) / unit, weight / weight.mean())
        scales = (typical, spread, middle, unit)
        return _RegressionAnswers(self.target, described, learner, scales)


@dataclass(frozen=True, eq=False)
class _RegressionAnswers(RivalAnswers):
    target: str
    described: Any
    learner: Any
    scales: tuple[np.ndarray, np.ndarray, float, float]

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; alone those measured."""
        solo = _solo(self.described, query)
        beside = np.flatnonzero(query.number_of_corunners > 0)
        if not len(beside):
            return solo
        typical, spread, middle, unit = self.scales
        x = self.described.features(query.take(beside))
        x = np.where(x == self.described.trees.unknown, typical, x)
        y = middle + unit * self.learner.predict((x - typical) / spread)
        own = solo[beside]
        results = {"slowdown": own * np.exp(np.clip(y, -30, 30)), "extra": own + y}.get(
            self.target, y
        )
        seconds = solo.copy()
        seconds[beside] = np.maximum(results, LEAST * own)
        return seconds


def _solo(described: Any, query: Colocations) -> np.ndarray:
    """(n,) s alone."""
    names = query.to_columns()
    place = {name: names[name] for name in ("workload", "platform")}
    return described.predict(Colocations.from_columns(**place, corunners=[[]] * len(query)))
