"""More co-runners than any run had: what smaller sets add, added up, as far as the simulator adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jostle.accelerator.learned._coruns import CoRuns
from jostle.accelerator.learned._delays import Delays, Sharing

LEAST = 0.05  # of the trace, simulated for each set of co-runners besides its delay
MOST = 3.0  # times the sum, at most


def larger_sets(
    rows: CoRuns,
    most: int,
    answer: Callable[[CoRuns], np.ndarray],
    delays: Delays,
    way: Sharing | None,
) -> np.ndarray:
    """(n,) log slowdowns of rows with more than `most` co-runners.

    Each set of so many co-runners (in a circle, by name) adds its own extra time; their sum is for all
    co-runners. Where the simulator says that all together delay more, or less, than these sum up to, so does
    the answer, but never to less than one of the sets alone. answer: of rows with no more co-runners. way:
    to share; None: as it sums up.
    """
    answers = np.empty(len(rows))
    trace = np.array([application.solo_seconds for application in delays.applications])
    for number in range(len(rows)):
        row = rows.take(np.array([number]))
        others = np.repeat(np.arange(row.beside.shape[1]), row.beside[0].astype(int))
        degree = len(others)
        circle = (np.arange(degree)[:, None] + np.arange(most)) % degree
        beside = np.zeros((degree, row.beside.shape[1]))
        np.add.at(beside, (np.arange(degree)[:, None], others[circle]), 1)
        sets = replace(row.take(np.zeros(degree, int)), beside=beside)
        extra = np.expm1(answer(sets))
        total = extra.sum() / most
        if way is not None:
            least = LEAST * trace[row.target[0]]
            alone = delays.of(way, sets.target, beside) + least
            whole = delays.of(way, row.target, row.beside)[0] + least
            total *= np.clip(whole / (alone.sum() / most), most / degree, MOST)
        answers[number] = np.log1p(max(total, extra.max()))
    return answers
