"""What a new predictor has to beat: linear scaling, gradient boosting, and methods blind to co-runners.

Each is a value object with the `fit` that `jostle.models.fit` calls, so that the same splits, calibration
and metrics apply to all. Sources: linear scaling, Pitot (MLSys 2025), App. B.1; discarding and ignoring
runs with co-runners, Sec. 5.2; gradient boosting is the thing a user would try first. The neural
baselines of App. B.4 are in `_baselines_neural`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import MissingExtra, NotEnoughRuns, UsageError
from jostle.methods import learn

if TYPE_CHECKING:
    from jostle.methods import Baseline
    from jostle.runs import Colocations, Runs

TREATMENTS = ("discard", "ignore")
ENCODING_SHRINKAGE = 5.0  # runs that the overall mean weighs beside a name's own


@dataclass(frozen=True)
class Blind:
    """Any method kept from seeing co-runners. treatment: `discard` learns from the runs alone only,
    `ignore` takes every run for one alone. Either answers as if nothing ran beside."""

    method: Any
    treatment: str

    name = "blind"

    def __post_init__(self) -> None:
        if self.treatment not in TREATMENTS:
            raise UsageError(
                f"unknown treatment {self.treatment!r}", fix=f"One of {', '.join(TREATMENTS)}."
            )

    def fit(self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Any = None) -> Any:
        """Raises NotEnoughRuns where `discard` leaves nothing."""
        if self.treatment == "discard":
            runs, validation = alone(runs), alone(validation)
        inner = learn(
            self.method,
            without_corunners(runs),
            validation=without_corunners(validation),
            seed=seed,
            progress=progress,
        )
        return _BlindPredictor(inner)


class _BlindPredictor:
    """Asks the inner predictor for the same co-locations without their co-runners."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def predict(self, colocations: Colocations) -> np.ndarray:
        return self.inner.predict(strip(colocations))

    def candidates(
        self, colocations: Colocations
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        from jostle.bounds import candidates_of

        return tuple(candidates_of(self.inner, strip(colocations)))  # type: ignore[return-value]


def alone(runs: Runs) -> Runs:
    """The runs without co-runners. Raises NotEnoughRuns where there are none."""
    inside = runs.colocations.number_of_corunners == 0
    if not inside.any():
        raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
    return runs.take(inside)


def without_corunners(runs: Runs) -> Runs:
    """The same runs with their co-runners taken off the record."""
    import pyarrow as pa

    from jostle.runs import Runs

    table = runs.table
    place = table.column_names.index("corunners")
    field = table.schema.field(place)
    empty = pa.array([[]] * len(table), field.type)
    table = table.set_column(place, field, empty)
    return Runs(table, runs.workload_features, runs.platform_features, checked=True)


def strip(colocations: Colocations) -> Colocations:
    """The same workloads on the same platforms, alone."""
    from jostle.runs import Colocations

    return Colocations(
        colocations.workload_names,
        colocations.platform_names,
        colocations.workload,
        colocations.platform,
        np.zeros(len(colocations) + 1, np.int64),
        np.zeros(0, np.int32),
    )


@dataclass(frozen=True)
class LinearScaling:
    """log runtime = workload + platform, least squares on the runs alone; blind to co-runners."""

    name = "linear_scaling"

    def fit(self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Any = None) -> Any:
        """validation and seed change nothing. Raises NotEnoughRuns."""
        vocabulary = Vocabulary.of(runs, validation)
        return _LinearPredictor(vocabulary, additive_effects(vocabulary, alone(runs.ok())))


class _LinearPredictor:
    def __init__(self, vocabulary: Vocabulary, baseline: Baseline) -> None:
        self.vocabulary = vocabulary
        self.baseline = baseline

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where no chain of runs connects workload and platform."""
        workload, platform, _ = self.vocabulary.codes(colocations)
        b = self.baseline
        out = np.exp(b.workload[workload] + b.platform[platform])
        known = (workload >= 0) & (platform >= 0) & (b.workload_component[workload] >= 0)
        known &= b.workload_component[workload] == b.platform_component[platform]
        return np.where(known, out, np.nan)


@dataclass(frozen=True)
class GradientBoosting:
    """Histogram gradient boosting of what additive effects leave, on features and target encodings.

    iterations: most trees; boosting stops earlier where the validation runs say so. leaves,
    learning_rate: as in scikit-learn.
    """

    iterations: int = 600
    learning_rate: float = 0.1
    leaves: int = 63

    name = "gradient_boosting"

    def fit(self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Any = None) -> Any:
        """Raises NotEnoughRuns, and MissingExtra without scikit-learn."""
        try:
            from sklearn.ensemble import HistGradientBoostingRegressor
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "evaluate") from None
        runs, validation = runs.ok(), validation.ok()
        table = _BoostingInputs(runs, validation)
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
        return _BoostingPredictor(table, trees)


class _BoostingPredictor:
    def __init__(self, table: _BoostingInputs, trees: Any) -> None:
        self.table = table
        self.trees = trees

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds."""
        if len(colocations) == 0:
            return np.zeros(0)
        inputs, base = self.table.of(colocations)
        return np.exp(base + self.trees.predict(inputs))


class _BoostingInputs:
    """Columns for trees: the names' features, their additive effects, and how much slower than those
    runs with co-runners were, by target, platform and co-runner (shrunken means)."""

    def __init__(self, runs: Runs, validation: Runs) -> None:
        self.vocabulary = v = Vocabulary.of(runs, validation)
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


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All names that runs, validation or feature tables mention, sorted, with their features.

    workload_matrix (w, d), platform_matrix (p, e): see feature_matrix.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload_matrix: np.ndarray
    platform_matrix: np.ndarray

    @classmethod
    def of(cls, runs: Runs, validation: Runs) -> Vocabulary:
        parts = (runs.colocations, validation.colocations)
        workloads = set().union(*(part.workload_names for part in parts))
        platforms = set().union(*(part.platform_names for part in parts))
        workload_rows, workload_table = runs.features_of("workload")
        platform_rows, platform_table = runs.features_of("platform")
        workload_names = tuple(sorted(workloads.union(workload_rows)))
        platform_names = tuple(sorted(platforms.union(platform_rows)))
        return cls(
            workload_names,
            platform_names,
            feature_matrix(workload_names, workload_rows, workload_table),
            feature_matrix(platform_names, platform_rows, platform_table),
        )

    def codes(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(workload, platform, co-runner) codes; -1 for a name it does not have."""
        return colocations.recode(self.workload_names, self.platform_names)


def additive_effects(vocabulary: Vocabulary, runs: Runs) -> Baseline:
    """The linear-scaling baseline of these runs, hardly shrunken (App. B.1 has plain means)."""
    from jostle.methods import fit_baseline

    workload, platform, _ = vocabulary.codes(runs.colocations)
    return fit_baseline(
        workload,
        platform,
        np.log(runs.runtime_seconds),
        len(vocabulary.workload_names),
        len(vocabulary.platform_names),
        shrinkage=1e-6,
    )


def feature_matrix(names: tuple[str, ...], rows: tuple[str, ...], table: Any) -> np.ndarray:
    """(names, d) float64: numbers z-scored (through log1p where not negative and past 1000), text and
    boolean columns one-hot, missing at the mean; constants vanish. rows: names of the table's rows."""
    if table is None:
        return np.zeros((len(names), 0))
    import pyarrow as pa

    position = {name: row for row, name in enumerate(rows)}
    row = np.array([position.get(name, -1) for name in names])
    columns = []
    for column in table.columns:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
            values = np.where(row < 0, np.nan, values[row])
            known = values[np.isfinite(values)]
            if len(known) and known.min() >= 0 and known.max() > 1000:
                values = np.log1p(values)
            columns.append(values)
            continue
        texts = column.to_pylist()
        here = [texts[r] if r >= 0 else None for r in row]
        levels = sorted({str(text) for text in here if text is not None})
        if 1 < len(levels) <= len(names) // 2:
            columns += [np.array([float(str(t) == level) for t in here]) for level in levels]
    scaled = []
    for values in columns:
        known = values[np.isfinite(values)]
        if len(known) and known.std() > 1e-9:
            scaled.append(np.nan_to_num((values - known.mean()) / known.std(), posinf=0, neginf=0))
    return np.column_stack(scaled) if scaled else np.zeros((len(names), 0))
