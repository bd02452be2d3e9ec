"""How far each answer is believed, by kind of question and number of co-runners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.learn.ensemble._folds import FEW_SETS, KINDS, NEW_NAME, NEW_SET
from jostle.learn.ensemble._rules_learner import TURNS_ALONE
from jostle.learn.rules._interference_tests import (
    chance_of_identity,
    chance_of_shift,
    either,
    is_within_noise,
    tells_nothing,
)
from jostle.learn.rules._shrunk_weights import (
    FEWEST_TO_WEIGH,
    greedy_weights,
    relative_error,
    trust_in_units,
    weights_of_unseen,
    without_light,
)
from jostle.learn.rules._simple_rules import NO_SLOWDOWN

if TYPE_CHECKING:
    from jostle.learn.ensemble._training_data import CanonicalRuns

KNOWN_NAMES = (NEW_SET, FEW_SETS)
# Where too few sets are there to weigh anything by: the first of these of which any is there.
USUAL = (
    ("simulation",),
    ("mixture 1",),
    ("level of turns", "effects of turns"),
    ("level", "effects"),
)
# Times the least error, up to which an answer goes on, and the weight from which it does.
CLOSE, WORTH_TRYING = 1.03, 0.05


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
        return trust_in_units(self.units)

    def weighed(self, seed: int, prior: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """See weights_of_unseen."""
        return weights_of_unseen(self.answer, self.log_slowdown, self.unit, seed, prior)

    def weights_beside(
        self, others: np.ndarray, share: float, seed: int, prior: np.ndarray | float
    ) -> np.ndarray:
        """(k,) this share their own, and others' for the rest and where few were left out."""
        if self.units < FEWEST_TO_WEIGH:
            return others
        return share * self.weighed(seed, prior)[0] + (1 - share) * others

    @staticmethod
    def concatenate(parts: list[Trial]) -> Trial:
        """All of them, of the same answers. At least one part."""
        joined = {
            name: np.concatenate([vars(part)[name] for part in parts], axis=-1)
            for name in vars(parts[0])
        }
        return Trial(**joined)


def is_of_nothing(labels: tuple[str, ...]) -> bool:
    """Whether nothing answers that was learned from runs beside others."""
    return labels in ((NO_SLOWDOWN,), (TURNS_ALONE,))


def of_nothing(labels: tuple[str, ...]) -> str:
    """Which answers where runs tell of no interference: turns on shared cores, or 1."""
    return TURNS_ALONE if TURNS_ALONE in labels else NO_SLOWDOWN


def usual_weights(labels: tuple[str, ...]) -> np.ndarray:
    """(k,) where nothing can be tried."""
    named = next((names for names in USUAL if set(names) & set(labels)), ())
    usual = np.array([float(label in named) for label in labels])
    return usual / usual.sum() if usual.any() else np.full(len(labels), 1 / max(len(labels), 1))


def interference_of(campaign: CanonicalRuns, seed: int) -> tuple[float, bool]:
    """(how often chance alone makes what is asked about differ so much from runs alone, or by who is beside;
    whether all runs, those beside stressors, too, are as runs alone scatter)."""
    shown = campaign.take(~campaign.is_input)
    chance = either(
        chance_of_shift(shown.cell, shown.log_runtime, shown.beside, seed),
        chance_of_identity(campaign.rows, campaign.sets(True)[campaign.is_learned], seed),
    )
    alone, rows = campaign.degree == 0, campaign.every_row
    of_all = chance_of_shift(campaign.cell, campaign.log_runtime, ~alone, seed)
    some = rows.take(~alone & np.isfinite(rows.log_slowdown))
    of_alone = campaign.cell[alone], campaign.log_runtime[alone]
    return chance, is_within_noise(some, *of_alone, either(chance, of_all))


def weights_of(
    labels: tuple[str, ...],
    trial: Trial,
    most: int,
    chance: float,
    seed: int,
    prior: np.ndarray | float = 1.0,
    is_noise: bool = False,
) -> np.ndarray:
    """(kinds, most + 1, k) weights of sum 1. is_noise: of is_within_noise, believed where few sets are known.
    chance: of chance_of_shift. prior: (k,) how far each is believed
    before any set was left out."""
    nothing = np.array([float(label == of_nothing(labels)) for label in labels])
    known, every = trial.of(*KNOWN_NAMES), trial.of(*KNOWN_NAMES, NEW_NAME)
    # Of few runs, most of what is left out leaves a name as new: what few sets cannot tell, that does.
    how = seed, prior
    if is_noise and nothing.any() and known.units < FEWEST_TO_WEIGH:
        return np.tile(nothing, (len(KINDS), most + 1, 1))
    pooled = every.weights_beside(usual_weights(labels), 1.0, *how)
    if known.units >= FEWEST_TO_WEIGH:
        weight, gain = known.weighed(*how)
        if nothing.any() and tells_nothing(
            chance, gain, known.log_slowdown, known.unit, known.target
        ):
            return np.tile(nothing, (len(KINDS), most + 1, 1))
        pooled = known.trust * weight + (1 - known.trust) * pooled
    out = np.tile(pooled, (len(KINDS), most + 1, 1))
    for kind in KINDS:
        mine = trial.of(kind)
        share = 1.0 if kind == NEW_NAME else mine.trust
        out[kind] = own = mine.weights_beside(pooled, share, *how)
        degrees = np.unique(mine.degree).tolist()
        for degree in degrees if len(degrees) > 1 else []:
            part = mine.take(np.flatnonzero(mine.degree == degree))
            out[kind, degree] = part.weights_beside(own, part.trust, *how)
    return without_light(out)


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
        kept |= (weight > WORTH_TRYING) | (error <= CLOSE * error.min())
    if not kept.any():
        return set(labels)
    return {label for label, one in zip(labels, kept, strict=True) if one or label in plain}
