"""Which runs would tell most: the greedy choice by the expected fall of the predictions' variance.

With the embeddings of a name normal around where they stand (see _steps), a run's log runtime has variance
s^2 + sum J P J^T over the names in it, and a run r lowers that of what is asked by (J_a P J_r)^2 over its own
(sequential A-optimal design: Chaloner and Verdinelli 1995, Bayesian experimental design). Names are taken as
independent of each other.
"""

from __future__ import annotations

import numpy as np

from jostle.factorization._codes import Codes
from jostle.factorization._fitted import FittedFactorization
from jostle.factorization.online._groundwork import KINDS, NOISE, groundwork_of
from jostle.factorization.online._prior import Groundwork
from jostle.factorization.online._slopes import PLATFORM, WORKLOAD, Slopes, slopes_of
from jostle.methods import KeptRuns
from jostle.runs import Colocations

Row = tuple[int, float]


def suggested(
    fitted: FittedFactorization,
    kept: KeptRuns,
    candidates: Colocations,
    asked: Colocations,
    most: int,
    seed: int,
) -> tuple[float, list[Row]]:
    """(usual doubt of what is asked now, (row of the candidates, that doubt after it and all before it) of at
    most so many, the one that tells most first, none twice). Doubts are standard deviations, log seconds."""
    work = None if fitted.online is None else fitted.online.groundwork
    if work is None:
        work = groundwork_of(fitted, kept, kept.take(np.zeros(0, np.int64)), seed)
    choice = _Choice(fitted, work, fitted.codes(candidates), fitted.codes(asked))
    before = choice.doubt()
    found: list[Row] = []
    while len(found) < most and len(candidates):
        row = choice.best()
        if row is None:
            break
        choice.take(row)
        found.append((row, choice.doubt()))
    return before, found


class _Choice:
    """What is known of each name, and what each candidate would add."""

    def __init__(
        self, fitted: FittedFactorization, work: Groundwork, candidates: Codes, asked: Codes
    ) -> None:
        self.slopes: dict[str, Slopes] = {}
        self.known: dict[str, dict[int, np.ndarray]] = {}
        self.wanted: dict[str, dict[int, np.ndarray]] = {}
        self.asked = len(asked)
        self.answered = np.isfinite(fitted.predict_log(candidates))
        e, form = fitted.embeddings, fitted.reading
        coded = {WORKLOAD: candidates.platform, PLATFORM: candidates.workload}
        noise = np.zeros(len(candidates))
        for kind, other in zip(KINDS, reversed(KINDS), strict=True):
            side, q = work.sides[kind], len(work.sides[kind].prior.basis)
            weights = (fitted.network_weight(candidates), fitted.network_weight(asked))
            self.slopes[kind] = slopes_of(e, form, candidates, weights[0], kind, side.prior.basis)
            mine = slopes_of(e, form, asked, weights[1], kind, side.prior.basis)
            names = np.union1d(self.slopes[kind].name, mine.name).tolist()
            self.known[kind] = {
                name: np.linalg.inv(np.eye(q) + side.runs[name] * side.information)
                for name in names
            }
            self.wanted[kind] = {
                name: mine.slopes[mine.name == name].T @ mine.slopes[mine.name == name]
                for name in names
            }
            noise += (NOISE * np.minimum(work.sides[other].usual, 1.0)[coded[kind]]) ** 2 / 2
        self.noise = noise

    def doubt(self) -> float:
        """The usual standard deviation of what is asked, in log seconds."""
        total = sum(
            float(np.trace(self.known[kind][name] @ wanted))
            for kind in KINDS
            for name, wanted in self.wanted[kind].items()
        )
        return float(np.sqrt(max(total, 0.0) / max(self.asked, 1)))

    def best(self) -> int | None:
        """The candidate that lowers it most; None where none does."""
        variance, gain = self.noise.copy(), np.zeros(len(self.noise))
        for kind in KINDS:
            s = self.slopes[kind]
            for name in np.unique(s.name).tolist():
                at = s.name == name
                j, known = s.slopes[at], self.known[kind][name]
                np.add.at(variance, s.row[at], np.einsum("kq,qr,kr->k", j, known, j))
                whole = known @ self.wanted[kind][name] @ known
                np.add.at(gain, s.row[at], np.einsum("kq,qr,kr->k", j, whole, j))
        fall = np.where(self.answered, gain / variance, 0.0)
        place = int(np.argmax(fall))
        return place if fall[place] > 0 else None

    def take(self, row: int) -> None:
        """As if this candidate had been measured."""
        mine = [(kind, self.slopes[kind]) for kind in KINDS]
        parts = [
            (kind, int(name), j)
            for kind, s in mine
            for name, j in zip(s.name[s.row == row], s.slopes[s.row == row], strict=True)
        ]
        self.answered[row] = False
        variance = self.noise[row] + sum(
            float(j @ self.known[kind][name] @ j) for kind, name, j in parts
        )
        for kind, name, j in parts:
            toward = self.known[kind][name] @ j
            self.known[kind][name] = self.known[kind][name] - np.outer(toward, toward) / variance
