"""What jobs of a log took beyond what was told of them, by what shows when they are told.

The law of rates errs in ways that repeat: on a name that has taken longer and longer, on a busy node, where
others are about to end. The log of actual over told is a sum of effects of the name, of the name on the
platform, of what shows and its slopes by name, and of the name's trend up to the end of the log; all shrunk,
their variances estimated from the data.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.mixed_effects import Block, MixedEffects, fit_mixed_effects
from jostle._base.tensors import Serializable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostle.models.timelines._timelines import Timelines

FEWEST = 50  # answers about jobs as they began, from which it is learned
FOLDS = 5
FARTHEST = 4.0  # standard deviations of a sign, past which it tells no more
MOST = 1.0  # log units by which what is left may be corrected
MIDDLE, LATEST = -0.5, 0.0  # ages of the log, from -1 where it begins


@dataclass(frozen=True)
class Signs:
    """Signs of how far off answers are, as n questions are told. workload, platform: (n,) codes, -1 unknown.
    number: (n,) co-runners now. now, told: (n,) seconds beside those throughout, and of what is told.
    elapsed: (n,) seconds. age: (n,) of the log, from -1 where it begins to 0 where it ends."""

    workload: np.ndarray
    platform: np.ndarray
    number: np.ndarray
    now: np.ndarray
    told: np.ndarray
    elapsed: np.ndarray
    age: np.ndarray

    @classmethod
    def of(
        cls,
        asked: Timelines,
        log_times: np.ndarray,
        told: np.ndarray,
        names: Any,
        age: Any = LATEST,
    ) -> Signs:
        """Collect them of questions. log_times: as of asked.progress. told: (n,) seconds. names: workloads
        and platforms. age: (n,), or of all."""
        now = asked.now
        workload, platform, _ = asked.colocations.take(now).recode(*names)
        number = asked.colocations.number_of_corunners[now].astype(float)
        age = np.broadcast_to(np.asarray(age, float), told.shape)
        return cls(
            workload, platform, number, np.exp(log_times[now]), told, asked.elapsed_seconds, age
        )

    def take(self, rows: np.ndarray) -> Signs:
        """Keep these rows."""
        return Signs(*(getattr(self, one.name)[rows] for one in fields(self)))

    @staticmethod
    def concatenate(parts: Sequence[Signs]) -> Signs:
        """Concatenate, in order."""
        return Signs(
            *(np.concatenate([getattr(p, one.name) for p in parts]) for one in fields(Signs))
        )

    def columns(self) -> np.ndarray:
        """Return (n, 3) numbers that the correction turns on."""
        return np.column_stack([self.number, np.log(self.told / self.now), np.log(self.told)])


@dataclass(frozen=True)
class ToldCorrection(Serializable):
    """A correction that is learned from answers about jobs as they began. centre: () of the log ratios. mean,
    spread: (3,) of what shows. effects: of each block."""

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    centre: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    effects: MixedEffects

    @classmethod
    def fit(
        cls, signs: Signs, error: np.ndarray, run: np.ndarray, names: Any
    ) -> tuple[ToldCorrection, np.ndarray] | None:
        """Learn from those of n answers that were given as jobs began. error: (n,) log actual over told. run:
        (n,) codes. Returns (the correction, (n,) what those that have not seen the run say of each answer);
        None where such are too few or not closer."""
        begun = signs.elapsed == 0
        if begun.sum() < FEWEST:
            return None
        whole = cls._fitted(signs.take(begun), error[begun], names, None)
        crossed, different = np.zeros(len(error)), np.unique(run, return_inverse=True)
        order = np.random.default_rng(0).permutation(len(different[0])) % FOLDS
        fold = order[different[1].reshape(-1)]
        for number in range(FOLDS):
            held, rest = fold == number, np.flatnonzero(begun & (fold != number))
            part = cls._fitted(signs.take(rest), error[rest], names, whole.effects)
            crossed[held] = part.log_ratio(signs.take(held))
        before, after = np.abs(error[begun]), np.abs(error[begun] - crossed[begun])
        return (whole, crossed) if after.mean() < before.mean() else None

    @classmethod
    def _fitted(
        cls, signs: Signs, error: np.ndarray, names: Any, like: MixedEffects | None
    ) -> ToldCorrection:
        columns, centre = signs.columns(), np.array(np.median(error))
        none = MixedEffects({}, {}, {}, np.ones(1))
        known = tuple(names[0]), tuple(names[1])
        out = cls(*known, centre, columns.mean(0), columns.std(0) + 1e-9, none)
        effects = fit_mixed_effects(out._design(signs), error - centre, like=like)
        return replace(out, effects=effects)

    def _design(self, signs: Signs) -> dict[str, Block]:
        z = np.clip((signs.columns() - self.mean) / self.spread, -FARTHEST, FARTHEST)
        (n, k), w, p = z.shape, len(self.workload_names), len(self.platform_names)
        name, where = signs.workload, signs.platform
        slopes = np.where(name[:, None] < 0, -1, name[:, None] * k + np.arange(k))
        return {
            "name": Block.of(name, w),
            "cell": Block.of(np.where((name < 0) | (where < 0), -1, name * p + where), w * p),
            "sign": Block.columns(z),
            "slope": Block(np.repeat(np.arange(n), k), slopes.ravel(), z.ravel(), w * k),
            "trend": Block.of(name, w, signs.age),
        }

    def log_ratio(self, signs: Signs) -> np.ndarray:
        """Return the (n,) log factor of the seconds that are left."""
        found = self.centre + self.effects.predict(self._design(signs), len(signs.told))
        return np.clip(found, -MOST, MOST)

    def corrected(
        self, asked: Timelines, log_times: np.ndarray, told: np.ndarray, moved: np.ndarray
    ) -> np.ndarray:
        """Correct what is told of open questions; what a count of the run's own tells stays. moved: (n,)
        bool, names whose drift since the middle of the log is followed already. Returns (n,) seconds."""
        rows = np.flatnonzero(asked.is_open & np.isnan(asked.done_ratio) & np.isfinite(told))
        names = self.workload_names, self.platform_names
        signs = Signs.of(asked, log_times, told, names, np.where(moved, MIDDLE, LATEST)).take(rows)
        out = told.copy()
        out[rows] = after(signs, self.log_ratio(signs))
        return out


def after(signs: Signs, log_ratio: np.ndarray) -> np.ndarray:
    """Apply a correction to what is left. Returns (n,) seconds."""
    return signs.elapsed + (signs.told - signs.elapsed) * np.exp(log_ratio)
