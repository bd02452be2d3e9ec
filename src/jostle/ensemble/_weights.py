"""How far each answer is believed, by kind of question and number of co-runners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.ensemble._folds import FEW_SETS, KINDS, NEW_NAME, NEW_SET
from jostle.rules import (
    NO_SLOWDOWN,
    greedy_weights,
    is_noise,
    plainly_another_time,
    relative_error,
    steadied_weights,
)

KNOWN_NAMES = (NEW_SET, FEW_SETS)
USUAL = ("level", "effects")  # where too few sets are there to weigh anything by
FEWEST_TO_WEIGH = 4  # sets, or names
SHARPNESS = 8.0  # of weights by the answers' own errors, of very many units
HALF_TRUSTED = 24  # sets with so many co-runners, at which their own weights decide half
# How far answers from profiles are believed before any set was left out, over answers from runs alone: what
# profiles say was not learned from the few sets that are known.
OF_PROFILES = 5.0
FEW = 12  # sets, under which a test of noise tells too little
LEAST_WEIGHT = 0.02
CLOSE = 1.08  # times the least error, up to which an answer goes on


@dataclass(frozen=True)
class Trial:
    """Answers about t rows left out. answer: (k, t) log slowdowns; log_slowdown: (t,) measured; unit: (t,)
    what was left out as one; kind, degree: (t,). place: (t,) which runs of the campaign these are. target:
    (t,) cells."""

    answer: np.ndarray
    log_slowdown: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    degree: np.ndarray
    place: np.ndarray
    target: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: np.ndarray) -> Trial:
        rest = {name: value[index] for name, value in vars(self).items() if name != "answer"}
        return Trial(answer=self.answer[:, index], **rest)

    def of(self, *kinds: int) -> Trial:
        """Those of these kinds."""
        return self.take(np.flatnonzero(np.isin(self.kind, kinds)))

    @property
    def units(self) -> int:
        """How many were left out."""
        return len(np.unique(self.unit))

    @property
    def trust(self) -> float:
        """In weights of their own."""
        return self.units / (self.units + HALF_TRUSTED)

    def steadied(self, weight: np.ndarray, prior: np.ndarray | float) -> np.ndarray:
        """(k,) drawn towards those of the answers' own errors, which few units tell apart the less."""
        about = self.answer, self.log_slowdown, self.units, SHARPNESS * self.trust
        return steadied_weights(weight, *about, prior)

    @staticmethod
    def concatenate(parts: list[Trial]) -> Trial:
        """All of them, of the same answers. At least one part."""
        joined = {
            name: np.concatenate([vars(part)[name] for part in parts], axis=-1)
            for name in vars(parts[0])
        }
        return Trial(**joined)


def usual_weights(labels: tuple[str, ...]) -> np.ndarray:
    """(k,) where nothing can be tried."""
    usual = np.array([float(label in USUAL) for label in labels])
    return usual / usual.sum() if usual.any() else np.full(len(labels), 1 / max(len(labels), 1))


def weights_of(
    labels: tuple[str, ...],
    trial: Trial,
    most: int,
    chance: float,
    seed: int,
    prior: np.ndarray | float = 1.0,
) -> np.ndarray:
    """(kinds, most + 1, k) weights of sum 1. chance: of chance_of_shift. prior: (k,) how far each is believed
    before any set was left out."""
    nothing = np.array([float(label == NO_SLOWDOWN) for label in labels])
    known, every = trial.of(*KNOWN_NAMES), trial.of(*KNOWN_NAMES, NEW_NAME)
    # Of few runs, most of what is left out leaves a name as new: what few sets cannot tell, that does.
    pooled = usual_weights(labels)
    if every.units >= FEWEST_TO_WEIGH:
        pooled = _weighed(every, seed, prior)
    if known.units >= FEWEST_TO_WEIGH:
        weight, unseen = greedy_weights(known.answer, known.log_slowdown, known.unit, seed)
        gain = relative_error(-known.log_slowdown) - unseen
        noise = is_noise(chance, gain, known.unit)
        if noise and known.units < FEW and np.isnan(chance):
            noise = not plainly_another_time(known.log_slowdown, known.target)
        if noise:
            return np.tile(nothing, (len(KINDS), most + 1, 1))
        pooled = known.trust * known.steadied(weight, prior) + (1 - known.trust) * pooled
    out = np.tile(pooled, (len(KINDS), most + 1, 1))
    for kind in KINDS:
        mine, own = trial.of(kind), pooled
        if mine.units >= FEWEST_TO_WEIGH:
            trust = 1.0 if kind == NEW_NAME else mine.trust
            own = trust * _weighed(mine, seed, prior) + (1 - trust) * pooled
        out[kind] = own
        degrees = np.unique(mine.degree).tolist()
        for degree in degrees if len(degrees) > 1 else []:
            part = mine.take(np.flatnonzero(mine.degree == degree))
            if part.units >= FEWEST_TO_WEIGH:
                out[kind, degree] = (
                    part.trust * _weighed(part, seed, prior) + (1 - part.trust) * own
                )
    out[out < LEAST_WEIGHT] = 0.0
    return out / out.sum(-1, keepdims=True)


def _weighed(trial: Trial, seed: int, prior: np.ndarray | float) -> np.ndarray:
    weight, _ = greedy_weights(trial.answer, trial.log_slowdown, trial.unit, seed)
    return trial.steadied(weight, prior)


def promising(
    labels: tuple[str, ...],
    trial: Trial,
    seed: int,
    plain: frozenset[str],
    left: np.ndarray | float = 1.0,
) -> set[str]:
    """Those that may still matter after the first of the folds: with some weight, or hardly worse than the
    best; plain ones cost nothing and stay. left: (k,) of each error, at best, with all the rows there are."""
    kept = np.zeros(len(labels), bool)
    for mine in (trial.of(*KNOWN_NAMES), trial.of(NEW_NAME)):
        if mine.units < FEWEST_TO_WEIGH:
            continue
        error = left * relative_error(mine.answer - mine.log_slowdown).mean(1)
        weight, _ = greedy_weights(mine.answer, mine.log_slowdown, mine.unit, seed)
        kept |= (weight > LEAST_WEIGHT) | (error <= CLOSE * error.min())
    if not kept.any():
        return set(labels)
    return {label for label, one in zip(labels, kept, strict=True) if one or label in plain}
