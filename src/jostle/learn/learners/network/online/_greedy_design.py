"""Which runs would tell most: the greedy choice by the expected fall of the predictions' variance.

With the embeddings of a name normal around where they stand (see _steps), a run's log runtime has variance
s^2 + sum J P J^T over the names in it, P what the runs of each left open, and a run r lowers that of what is
asked by (J_a P J_r)^2 over its own (sequential A-optimal design: Chaloner and Verdinelli 1995, Bayesian
experimental design). Names are taken as independent of each other. A
candidate's worth hardly ever grows as others are chosen, so that only the one that leads is looked at anew
(Minoux 1978, accelerated greedy).
"""

from __future__ import annotations

from dataclasses import replace
from heapq import heapify, heappop, heapreplace

import numpy as np

from jostle.data import Colocations
from jostle.learn.contract._coded_runs import KeptRuns
from jostle.learn.learners.network._codes import Codes
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network.online._prior import Groundwork, Side
from jostle.learn.learners.network.online._prior_statistics import KINDS, NOISE, groundwork_of
from jostle.learn.learners.network.online._slopes import PLATFORM, WORKLOAD, Slopes, slopes_of

Row = tuple[int, float]


def suggested(
    fitted: FittedFactorization,
    kept: KeptRuns,
    candidates: Colocations,
    asked: Colocations,
    most: int,
    seed: int,
) -> tuple[float, list[Row]]:
    """Choose at most so many candidates one after the other, each the one that lowers the doubt most, none
    twice. Returns (doubt about what is asked now, [(row of the candidates, doubt after it and all before
    it)]). A doubt is a standard deviation in log seconds."""
    work = fitted.groundwork
    if work is None:
        work = groundwork_of(fitted, kept, kept.take(np.zeros(0, np.int64)), seed)
    codes = [fitted.codes(one) for one in (candidates, asked, kept.colocations)]
    choice = _Choice(fitted, work, codes[0], codes[1], codes[2])
    before = choice.doubt()
    rows: list[Row] = []
    fall = choice.falls()
    leading = [(-gain, row) for row, gain in enumerate(fall.tolist()) if gain > 0]
    heapify(leading)
    while leading and len(rows) < most:
        row = leading[0][1]
        gain = choice.fall(row)
        if gain <= 0:
            heappop(leading)
        elif len(leading) > 1 and gain < -min(leading[1:3])[0]:
            heapreplace(leading, (-gain, row))
        else:
            heappop(leading)
            choice.take(row)
            rows.append((row, choice.doubt()))
    return before, rows


class _Name:
    """What is known of one name. known: (q, q) covariance. wanted: (q, q) sum of J^T J of what is asked."""

    def __init__(self, known: np.ndarray, wanted: np.ndarray) -> None:
        self.known, self.wanted = known, wanted
        self.doubt = float((known * wanted).sum())
        self.whole = known @ wanted @ known

    def learn(self, slope: np.ndarray, variance: float) -> None:
        """Take in a run of this slope (q,) and variance."""
        toward = self.known @ slope
        self.known = self.known - np.outer(toward, toward) / variance
        self.doubt = float((self.known * self.wanted).sum())
        self.whole = self.known @ self.wanted @ self.known


class _Choice:
    """What is known of each name and cell, and what each candidate would add."""

    def __init__(
        self,
        fitted: FittedFactorization,
        work: Groundwork,
        candidates: Codes,
        asked: Codes,
        learned: Codes,
    ) -> None:
        self.asked = len(asked)
        self.names: dict[str, dict[int, _Name]] = {}
        self.slopes: dict[str, Slopes] = {}
        self.starts: dict[str, np.ndarray] = {}
        e, form = fitted.embeddings, fitted.reading
        for kind in KINDS:
            side = work.sides[kind]
            slopes = slopes_of(e, form, candidates, kind, side.prior.basis)
            mine = slopes_of(e, form, asked, kind, side.prior.basis)
            order = np.argsort(slopes.row, kind="stable")
            slopes = replace(
                slopes, slopes=slopes.slopes[order], name=slopes.name[order], row=slopes.row[order]
            )
            self.slopes[kind] = slopes
            self.starts[kind] = np.searchsorted(slopes.row, np.arange(len(candidates) + 1))
            before = slopes_of(e, form, learned, kind, side.prior.basis)
            noise = _noise(work, learned.workload, learned.platform)
            self.names[kind] = _names(slopes, mine, before, noise, side)
        self.noise = _noise(work, candidates.workload, candidates.platform)
        # What has no answer would have to be measured for another reason.
        self.answered = np.isfinite(fitted.predict_log(candidates))

    def doubt(self) -> float:
        """Compute the root mean square of the standard deviations of what is asked, in log seconds."""
        total = sum(name.doubt for names in self.names.values() for name in names.values())
        return float(np.sqrt(max(total, 0.0) / max(self.asked, 1)))

    def falls(self) -> np.ndarray:
        """Compute by how much each candidate lowers the summed variance of what is asked, (candidates,)."""
        variance, gain = self.noise.copy(), np.zeros(len(self.noise))
        for kind, s in self.slopes.items():
            order = np.argsort(s.name, kind="stable")
            for part in np.split(order, np.flatnonzero(np.diff(s.name[order])) + 1):
                if not len(part):
                    continue
                name, j = self.names[kind][int(s.name[part[0]])], s.slopes[part]
                np.add.at(variance, s.row[part], ((j @ name.known) * j).sum(1))
                np.add.at(gain, s.row[part], ((j @ name.whole) * j).sum(1))
        return np.where(self.answered, gain / np.maximum(variance, 1e-300), 0.0)

    def fall(self, row: int) -> float:
        """Compute the same as `falls` for one candidate, given what has been chosen by now."""
        variance, gain = float(self.noise[row]), 0.0
        for name, j in self._parts(row):
            variance += float(j @ name.known @ j)
            gain += float(j @ name.whole @ j)
        return gain / max(variance, 1e-300)

    def take(self, row: int) -> None:
        """Take in this candidate as if it had been measured."""
        parts, variance = self._parts(row), float(self.noise[row])
        variance = max(variance + sum(float(j @ one.known @ j) for one, j in parts), 1e-300)
        for one, j in parts:
            one.learn(j, variance)

    def _parts(self, row: int) -> list[tuple[_Name, np.ndarray]]:
        """List for each name in a candidate (what is known of it, its slope)."""
        return [
            (self.names[kind][int(s.name[at])], s.slopes[at])
            for kind, s in self.slopes.items()
            for at in range(self.starts[kind][row], self.starts[kind][row + 1])
        ]


def _names(
    candidates: Slopes, asked: Slopes, learned: Slopes, noise: np.ndarray, side: Side
) -> dict[int, _Name]:
    """noise: variances of the runs learned. Of those that were not kept the usual is believed."""
    q = len(side.prior.basis)
    by_code = {}
    order = np.argsort(learned.name, kind="stable")
    names = np.union1d(candidates.name, asked.name)
    ends = [np.searchsorted(learned.name[order], names, at) for at in ("left", "right")]
    for name, start, end in zip(names.tolist(), *ends, strict=True):
        mine = asked.slopes[asked.name == name]
        its = order[start:end]
        told = learned.slopes[its].T @ (learned.slopes[its] / noise[learned.row[its], None])
        told += max(side.runs[name] - len(its), 0.0) * side.information
        by_code[name] = _Name(np.linalg.inv(np.eye(q) + told), mine.T @ mine)
    return by_code


def _noise(work: Groundwork, workload: np.ndarray, platform: np.ndarray) -> np.ndarray:
    """Compute the variance of a run in log seconds, given its names, (n,). A name of which no run showed it
    has the median of the others: its distance from what is expected is not noise."""
    total = np.zeros(len(workload))
    for kind, coded in ((WORKLOAD, workload), (PLATFORM, platform)):
        side = work.sides[kind]
        shown = side.usual != side.unknown
        usual = np.where(shown, side.usual, np.median(side.usual[shown] if shown.any() else 1.0))
        total += (NOISE * np.minimum(usual, 1.0)[coded]) ** 2 / 2
    return total
