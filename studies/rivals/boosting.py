"""Gradient boosting: the thing a user would try first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.errors import MissingExtra
from studies.rivals.linear import additive_effects
from studies.rivals.rival import Rival, RivalAnswers
from studies.rivals.vocabulary import Vocabulary

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Colocations
    from jostle.learn import Prepared

ENCODING_SHRINKAGE = 5.0  # runs that the overall mean weighs beside a name's own


@dataclass(frozen=True)
class GradientBoosting(Rival):
    """Histogram gradient boosting of what additive effects leave, on features and target encodings.

    iterations: most trees; boosting stops earlier where the validation runs say so. leaves,
    learning_rate: as in scikit-learn.
    """

    iterations: int = 600
    learning_rate: float = 0.1
    leaves: int = 63

    name: ClassVar[str] = "gradient_boosting"

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _BoostingAnswers:
        """Raises NotEnoughRuns, and MissingExtra without scikit-learn."""
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "evaluate") from None
        runs, validation = prepared.runs, prepared.validation
        table = _BoostingInputs(prepared)
        inputs, base = table.of(runs.colocations)
        settings: dict[str, Any] = {"early_stopping": len(validation) > 0}  # stubs say only text
        trees = HistGradientBoostingRegressor(
            max_iter=self.iterations,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            n_iter_no_change=20,
            random_state=seed,
            **settings,
        )
        held = {}
        if len(validation):
            held_inputs, held_base = table.of(validation.colocations)
            held = {"X_val": held_inputs, "y_val": np.log(validation.runtime_seconds) - held_base}
        trees.fit(inputs, np.log(runs.runtime_seconds) - base, **held)
        return _BoostingAnswers(table, trees)


@dataclass(frozen=True, eq=False)
class _BoostingAnswers(RivalAnswers):
    table: _BoostingInputs
    trees: Any

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds."""
        if len(query) == 0:
            return np.zeros(0)
        inputs, base = self.table.of(query)
        return np.exp(base + self.trees.predict(inputs))


class _BoostingInputs:
    """Columns for trees: the names' features, their additive effects, and how much slower than those
    runs with co-runners were, by target, platform and co-runner (shrunken means)."""

    def __init__(self, prepared: Prepared) -> None:
        runs = prepared.runs
        self.vocabulary = v = Vocabulary.of(prepared)
        self.workload = v.workload_matrix
        self.platform = v.platform_matrix
        solo = runs.take(runs.colocations.number_of_corunners == 0)
        self.effects = additive_effects(v, solo if len(solo) else runs)
        workload, platform, corunner = v.codes(runs.colocations)
        left = np.log(runs.runtime_seconds)
        left = left - self.effects.workload[workload] - self.effects.platform[platform]
        row = np.repeat(np.arange(len(runs)), runs.colocations.number_of_corunners)
        beside = np.unique(row)
        mean = float(left[beside].mean()) if len(beside) else 0.0
        sizes = (len(v.workload_names), len(v.platform_names))

        def encoded(codes: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
            count = np.bincount(codes, minlength=size) + ENCODING_SHRINKAGE
            return mean + np.bincount(codes, values - mean, size) / count

        self.target_slowdown = encoded(workload[beside], left[beside], sizes[0])
        self.platform_slowdown = encoded(platform[beside], left[beside], sizes[1])
        self.corunner_slowdown = encoded(corunner, left[row], sizes[0])

    def of(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(inputs (n, d) float32, additive log seconds (n,))."""
        workload, platform, corunner = self.vocabulary.codes(colocations)
        count = colocations.number_of_corunners
        n = len(colocations)
        row = np.repeat(np.arange(n), count)
        effect_w, effect_p = self.effects.workload[workload], self.effects.platform[platform]
        pressed = np.bincount(row, self.corunner_slowdown[corunner], n)
        heavy = np.bincount(row, self.effects.workload[corunner], n) / np.maximum(count, 1)
        features = np.zeros((n, self.workload.shape[1]))
        for place in range(int(count.max(initial=0))):
            here = np.flatnonzero(count > place)
            features[here] += self.workload[corunner[colocations.corunner_offsets[here] + place]]
        own = [
            effect_w,
            effect_p,
            count,
            np.where(count > 0, self.target_slowdown[workload], 0.0),
            np.where(count > 0, self.platform_slowdown[platform], 0.0),
            pressed,
            heavy,
        ]
        blocks = [np.column_stack(own), self.workload[workload], self.platform[platform], features]
        return np.concatenate(blocks, axis=1).astype(np.float32), effect_w + effect_p
