"""A fitted bag model, answered by NumPy alone."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bag._features import Described
from jostle.bag._trees import Trees

if TYPE_CHECKING:
    from jostle.runs import Colocations

LEAST = 0.05  # of the solo runtime: no answer is shorter


class FittedBag:
    """Predicts seconds beside others from features by trees; seconds alone are those measured. Immutable.

    workload_names, platform_names: the names it knows, sorted. feature_names: columns of `features`, in the
    order of the trees' feature numbers.
    """

    def __init__(
        self,
        learner: str,
        target: str,
        workload_names: tuple[str, ...],
        platform_names: tuple[str, ...],
        described: Described,
        kept: np.ndarray,
        unknown: np.ndarray,
        trees: Trees,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.learner, self.target = learner, target
        self.workload_names, self.platform_names = workload_names, platform_names
        self.described, self.trees = described, trees
        self.kept, self.unknown = kept, unknown
        self.notes = notes

    @property
    def input_platforms(self) -> tuple[str, ...]:
        """Platforms on which nothing beside others is answered: the CPU's, if there is one."""
        return () if self.described.cpu < 0 else (self.platform_names[self.described.cpu],)

    @property
    def feature_names(self) -> tuple[str, ...]:
        every = self.described.feature_names()
        named = {f"platform_{i}": f"platform={name}" for i, name in enumerate(self.platform_names)}
        return tuple(str(named.get(every[at], every[at])) for at in self.kept.tolist())

    @property
    def feature_groups(self) -> tuple[str, ...]:
        every = self.described.feature_groups()
        return tuple(every[at] for at in self.kept)

    def features(self, colocations: Colocations) -> np.ndarray:
        """(n, features) float64: what the trees ask about; unknown numbers lie under all known ones.

        Raises UnknownName for a name that the model has never met.
        """
        codes = colocations.codes_in(self.workload_names, self.platform_names)
        rows = self.described.rows(colocations, codes)[:, self.kept]
        return np.where(np.isnan(rows), self.unknown, rows)

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where the workload never ran alone on the platform, and beside others on the CPU
        platform, whose runs are what features are made of."""
        return np.exp(self._log_seconds(colocations)[1])

    def candidates(
        self, colocations: Colocations
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Ways to bound: the prediction with the same offset everywhere, or one that grows with the
        slowdown. Returns names, centres (2, n) in log seconds, scales (2, n)."""
        log_solo, centre = self._log_seconds(colocations)
        scale = np.stack([np.ones(len(centre)), 0.02 + np.abs(centre - log_solo)])
        return ("same everywhere", "with the slowdown"), np.stack([centre, centre]), scale

    def _log_seconds(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """((n,) alone, (n,) as asked), both log seconds."""
        workload, platform, _ = colocations.codes_in(self.workload_names, self.platform_names)
        log_solo = self.described.log_solo[platform, workload]
        out = log_solo.copy()
        beside = np.flatnonzero(colocations.number_of_corunners > 0)
        if len(beside):
            answer = self.trees.predict(self.features(colocations.take(beside)))
            found = log_runtime_of(
                answer, log_solo[beside], self.target, float(self.described.time_scale)
            )
            out[beside] = np.where(platform[beside] == self.described.cpu, np.nan, found)
        return log_solo, out

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays = {f"tree_{name}": value for name, value in vars(self.trees).items()}
        said: dict[str, Any] = {}
        for name, value in vars(self.described).items():
            if isinstance(value, np.ndarray):
                arrays[f"described_{name}"] = value
            else:
                said[name] = list(value) if isinstance(value, tuple) else value
        arrays |= {"kept": self.kept, "unknown": self.unknown}
        return {name: np.asarray(value, order="C") for name, value in arrays.items()}, {
            "learner": self.learner,
            "target": self.target,
            "workload_names": list(self.workload_names),
            "platform_names": list(self.platform_names),
            "described": said,
            "notes": list(self.notes),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], said: dict[str, Any]) -> FittedBag:
        described: dict[str, Any] = {
            field.name: arrays[f"described_{field.name}"]
            if f"described_{field.name}" in arrays
            else said["described"].get(field.name, field.default)
            for field in fields(Described)
        }
        for name in ("columns", "groups"):
            described[name] = tuple(described[name])
        return cls(
            said["learner"],
            said["target"],
            tuple(said["workload_names"]),
            tuple(said["platform_names"]),
            Described(**described),
            arrays["kept"],
            arrays["unknown"],
            Trees(**{field.name: arrays[f"tree_{field.name}"] for field in fields(Trees)}),
            tuple(said["notes"]),
        )


def target_of(
    log_runtime: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """(n,) what the trees learn, from log seconds."""
    if target == "slowdown":
        return log_runtime - log_solo
    seconds = np.exp(log_runtime)
    return (seconds if target == "runtime" else seconds - np.exp(log_solo)) / time_scale


def log_runtime_of(
    answer: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """(n,) log seconds from what the trees answer; the inverse of target_of."""
    if target == "slowdown":
        return log_solo + answer
    seconds = answer * time_scale
    if target == "extra":
        seconds = np.exp(log_solo) + seconds
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(seconds, LEAST * np.exp(log_solo)))
