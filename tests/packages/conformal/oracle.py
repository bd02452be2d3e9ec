"""Bounds once more, run by run in plain Python and whole fractions: slow, and as docs/bounds.md tells it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

FINITE = ("guaranteed", "guaranteed_pooled", "held_out_names")


class Run(NamedTuple):
    """One calibration run. scores: under each candidate."""

    scores: tuple[float, ...]
    degree: int
    grades: tuple[int, ...]
    unit: int
    group: int
    held_out: bool


class Answer(NamedTuple):
    log_seconds: float
    outcome: str
    pool: str
    n: int
    rank: int


def pool_name(degree: int) -> str:
    return "alone" if degree == 0 else f"{degree} co-runner{'s' if degree > 1 else ''}"


def rank_of(scores: list[float], units: list[int], confidence: float) -> int:
    """1-based, above n where no score is high enough: each unit weighs one, as does the one asked about."""
    share = Fraction(str(confidence))
    size = Counter(units)
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    under = Fraction(0)
    for place, i in enumerate(order, 1):
        under += Fraction(1, size[units[i]])
        if under >= share * (len(size) + 1):
            return place
    return len(scores) + 1


class Pool:
    def __init__(self, name: str, outcome: str, runs: list[Run], way: Any) -> None:
        self.name, self.outcome, self.runs, self.way = name, outcome, runs, way

    def stage(self, confidence: float) -> int:
        return [confidence <= until for until in self.way.until].index(True)

    def rank(self, confidence: float, stage: int | None = None) -> int:
        place = self.way.stages[self.stage(confidence) if stage is None else stage]
        scores = [run.scores[place] for run in self.runs]
        return rank_of(scores, [run.unit for run in self.runs], confidence)

    def answers(self, confidence: float) -> bool:
        return self.rank(confidence) <= len(self.runs)

    def bound(self, centre: Any, scale: Any, confidence: float, largest: bool) -> float:
        found = -math.inf
        for stage in range(self.stage(confidence) + 1):
            place = self.way.stages[stage]
            ordered = sorted(run.scores[place] for run in self.runs)
            rank = self.rank(min(confidence, self.way.until[stage]), stage)
            if largest:
                rank = min(rank, len(ordered))
            offset = ordered[rank - 1] if rank <= len(ordered) else math.inf
            found = max(found, centre[place] + scale[place] * offset)
        return found + 2.0**-30


def chain_of(runs: list[Run], ways: Any, degree: int, grades: Any, group: int) -> list[Pool]:
    """The pools that may answer, the narrowest first."""
    usable = [
        run
        for run in runs
        if run.group == group
        and math.isfinite(run.scores[0])
        and all(a <= b for a, b in zip(run.grades, grades, strict=True))
    ]

    def steps(run: Run) -> int:
        return sum(grades) - sum(run.grades)

    def wider(some: list[Run]) -> list[tuple[int, list[Run]]]:
        return [
            (step, [run for run in some if steps(run) <= step])
            for step in sorted({steps(run) for run in some})
        ]

    mine = [run for run in usable if run.degree == degree and not run.held_out]
    name = pool_name(degree)
    found = [
        Pool(name, "guaranteed_pooled" if step else "guaranteed", some, ways[name])
        for step, some in wider(mine)
    ]
    others = [run for run in usable if run.degree > 0 and not run.held_out]
    if degree and mine and len(others) > len(mine) and "with co-runners" in ways:
        found.append(Pool("with co-runners", "guaranteed_pooled", others, ways["with co-runners"]))
    left = [run for run in usable if run.held_out]
    least = min(grades[:2])
    kind = "names left out" + (
        "" if least == 0 else " but for few runs" if least < 4 else ", beside others"
    )
    if kind not in ways:
        kind = next((name for name in ways if name.startswith("names left out")), "")
    return found + [
        Pool("names left out", "held_out_names", some, ways[kind]) for _, some in wider(left)
    ]


def answer(
    runs: list[Run],
    ways: Any,
    question: tuple[int, tuple[int, ...], int],
    way: tuple[Any, Any],
    confidence: float,
) -> Answer:
    """question: co-runners, grades and group of what is asked; way: centre and scale of each candidate."""
    degree, grades, group = question
    if math.isnan(way[0][0]):
        without = sum(math.isinf(run.scores[0]) for run in runs)
        return Answer(math.inf, "disconnected", "no answer", without, without + 1)
    chain = (
        chain_of(runs, ways, degree, grades, group)
        if any(run.degree == degree for run in runs)
        else []
    )
    if not chain:
        if not any(run.degree == degree for run in runs):
            outcome = "unseen_group"
        elif 0 in grades[:2]:
            outcome = "new_name"
        elif grades[5] == 0:
            outcome = "new_on_platform"
        elif 0 in grades[2:4]:
            outcome = "new_beside_others"
        else:
            outcome = "little_evidence" if grades[4] else "new_corunner"
        return Answer(math.inf, outcome, pool_name(degree), 0, 0)
    asked = [pool for pool in chain if pool.answers(0.9)]
    asked = asked or [max(chain, key=lambda pool: len({run.unit for run in pool.runs}))]
    floor = -math.inf
    for pool in asked:
        if pool.answers(confidence):
            found = max(floor, pool.bound(*way, confidence, False))
            found = max(found, way[0][0] + 2.0**-30)  # never under the prediction
            outcome = "too_few_runs" if found == math.inf else pool.outcome
            return Answer(found, outcome, pool.name, len(pool.runs), pool.rank(confidence))
        floor = max(floor, pool.bound(*way, confidence, True))
    last = chain[-1]
    return Answer(math.inf, "too_few_runs", last.name, len(last.runs), last.rank(confidence))
