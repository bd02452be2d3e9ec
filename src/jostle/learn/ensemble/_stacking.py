"""How far each answer is believed, by kind of question and number of co-runners."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from jostle.learn.ensemble._base_learner import NO_SLOWDOWN, TURNS_ALONE
from jostle.learn.ensemble._folds import FEW_SETS, KINDS, NEW_NAME, NEW_SET
from jostle.learn.ensemble._shrunk_weights import (
    FEWEST_TO_WEIGH,
    greedy_weights,
    prune_small_weights,
    shrinkage_weight,
    stacking_weights,
)
from jostle.learn.training._relative_error import relative_error

KNOWN_NAMES = (NEW_SET, FEW_SETS)
# Times the least error, up to which an answer goes on, and the weight from which it does.
CLOSE, WORTH_TRYING = 1.03, 0.05


@dataclass(frozen=True)
class OutOfFoldPredictions:
    """Predictions of t rows left out. answer: (k, t) log slowdowns; log_slowdown: (t,) measured; unit: (t,)
    codes, equal for rows left out together; kind, degree: (t,). place: (t,) row numbers in the campaign."""

    answer: np.ndarray
    log_slowdown: np.ndarray
    unit: np.ndarray
    kind: np.ndarray
    degree: np.ndarray
    place: np.ndarray

    def __len__(self) -> int:
        return len(self.place)

    def take(self, index: np.ndarray) -> OutOfFoldPredictions:
        rest = {name: value[index] for name, value in vars(self).items() if name != "answer"}
        return OutOfFoldPredictions(answer=self.answer[:, index], **rest)

    def of(self, *kinds: int) -> OutOfFoldPredictions:
        """Keep the rows of these kinds of questions."""
        return self.take(np.flatnonzero(np.isin(self.kind, kinds)))

    @property
    def units(self) -> int:
        """Number of units: sets or names left out together."""
        return len(np.unique(self.unit))

    @property
    def trust(self) -> float:
        """Weight of this kind's own weights, from 0 to 1: units / (units + 24)."""
        return shrinkage_weight(self.units)

    def weighed(self, seed: int, prior: np.ndarray | float) -> np.ndarray:
        """See stacking_weights."""
        return stacking_weights(self.answer, self.log_slowdown, self.unit, seed, prior)

    def shrink_towards(
        self, others: np.ndarray, share: float, seed: int, prior: np.ndarray | float
    ) -> np.ndarray:
        """Mix own weights (this share) with others', (k,); only others' if few units were left out."""
        if self.units < FEWEST_TO_WEIGH:
            return others
        return share * self.weighed(seed, prior) + (1 - share) * others

    @staticmethod
    def concatenate(parts: list[OutOfFoldPredictions]) -> OutOfFoldPredictions:
        """Concatenate rows of the same answers. parts: at least one."""
        joined = {
            name: np.concatenate([vars(part)[name] for part in parts], axis=-1)
            for name in vars(parts[0])
        }
        return OutOfFoldPredictions(**joined)


def is_of_nothing(labels: tuple[str, ...]) -> bool:
    """Tell whether no answer was learned from runs beside others."""
    return labels in ((NO_SLOWDOWN,), (TURNS_ALONE,))


def usual_weights(labels: tuple[str, ...], rank: Mapping[str, int]) -> np.ndarray:
    """Return the (k,) weights that apply if nothing can be tried. rank: of answers, the least first."""
    least = min((rank[label] for label in labels if label in rank), default=-1)
    usual = np.array([float(rank.get(label) == least) for label in labels])
    return usual / usual.sum() if usual.any() else np.full(len(labels), 1 / max(len(labels), 1))


def weights_of(
    usual: np.ndarray,
    trial: OutOfFoldPredictions,
    most: int,
    seed: int,
    prior: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Learn (kinds, most + 1, k) weights, of sum 1 over k. usual: (k,) those that apply if nothing can be
    tried. prior: (k,) weight of each answer before any set was left out."""
    known, every = trial.of(*KNOWN_NAMES), trial.of(*KNOWN_NAMES, NEW_NAME)
    # Of few runs, most of what is left out leaves a name as new: what few sets cannot tell, that does.
    how = seed, prior
    pooled = every.shrink_towards(usual, 1.0, *how)
    if known.units >= FEWEST_TO_WEIGH:
        pooled = known.trust * known.weighed(*how) + (1 - known.trust) * pooled
    out = np.tile(pooled, (len(KINDS), most + 1, 1))
    for kind in KINDS:
        mine = trial.of(kind)
        share = 1.0 if kind == NEW_NAME else mine.trust
        out[kind] = own = mine.shrink_towards(pooled, share, *how)
        degrees = np.unique(mine.degree).tolist()
        for degree in degrees if len(degrees) > 1 else []:
            part = mine.take(np.flatnonzero(mine.degree == degree))
            out[kind, degree] = part.shrink_towards(own, part.trust, *how)
    return prune_small_weights(out)


def surviving_learners(
    labels: tuple[str, ...],
    trial: OutOfFoldPredictions,
    seed: int,
    plain: Collection[str],
    left: np.ndarray | float = 1.0,
) -> set[str]:
    """Keep the labels that may still matter after some folds: with weight, or hardly worse than the best;
    plain ones cost nothing and stay. left: (k,) share of each error that is left, at best, on all rows."""
    kept = np.zeros(len(labels), bool)
    for mine in (trial.of(*KNOWN_NAMES), trial.of(NEW_NAME)):
        if mine.units < FEWEST_TO_WEIGH:
            continue
        error = left * relative_error(mine.answer - mine.log_slowdown).mean(1)
        weight = greedy_weights(mine.answer, mine.log_slowdown, mine.unit, seed)
        kept |= (weight > WORTH_TRYING) | (error <= CLOSE * error.min())
    if not kept.any():
        return set(labels)
    return {label for label, one in zip(labels, kept, strict=True) if one or label in plain}
