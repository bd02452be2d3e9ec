"""The prediction phase as printed, line by line, for two applications that run once.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 22 to 44, with Algorithm 2 as printed (`printed`). What
is looked up in the run alone is what the period before executed (lines 34 and 35), not all executed so
far; the first period takes the first samples (lines 31 and 32); s is raised once more after the last period,
and who is left is given whole samples (lines 42 and 43). Lines 36 to 39, which the indentation puts under
`else`, are taken for every period: without them the first one would never end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.learn.learners.counters import Slowdown, SoloCounters

LEAST = 0.02  # of the mean count of a period alone: a prediction of none would never end


def printed(
    solo: SoloCounters, begin: np.ndarray, end: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """(s, k) counts per second of the run alone, line for line. count: (s,) instructions of one period.

    Its weights are swapped (Algorithm 2, lines 8 and 9), it looks up one period's count rather than all
    counted so far (Algorithm 1, lines 14 and 34), and gamma lacks the sum before the sample (Algorithm 2,
    line 3). Where sample beta is asked before the first sample, the first stands in, as for s = 1.
    """
    table, tau = solo.cumulative, solo.period_seconds
    steps = np.diff(table[:, 0])
    # Idle periods have no instructions: as many as in a busy one, so that the axis rises everywhere.
    steps[solo.idle] = steps[~solo.idle].mean()
    work = np.concatenate([[0.0], np.cumsum(steps)])
    beta = np.clip(np.searchsorted(work, count, "right") - 1, 0, solo.periods - 1)
    following = work[beta + 1] - work[beta]
    gamma = (following - count) / following
    first = table[np.maximum(beta, 1)] - table[np.maximum(beta, 1) - 1]
    second = table[beta + 1] - table[beta]
    weight = np.where(gamma == 1.0, 0.0, gamma)[:, None]
    return (first * (1 - weight) + second * weight) / tau


def printed_rows(
    solo: SoloCounters, begin: np.ndarray, end: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """The same of the periods of a run, of which the first takes the first sample (Algorithm 1, lines 10 to
    12)."""
    rows = printed(solo, begin, end, count)
    rows[0] = solo.cumulative[1] / solo.period_seconds
    return rows


def printed_rates(solo: SoloCounters, before: float | None) -> np.ndarray:
    """(1, k) aligned counts per second. before: instructions of the period before, None in the first one."""
    if before is None:
        return (solo.cumulative[1:2] - solo.cumulative[:1]) / solo.period_seconds
    nowhere = np.zeros(1)
    return printed(solo, nowhere, nowhere, np.array([before]))


def least_executed(solo: SoloCounters) -> float:
    """Instructions of a period, so that every run ends whatever is predicted."""
    return LEAST * solo.instructions / solo.periods


def roll_printed(solos: Sequence[SoloCounters], slowdown: Slowdown) -> np.ndarray:
    """Return (2,) c_pred of two applications that begin at time 0.

    slowdown: what the predictive models say, as instructions alone over those beside the other.
    """
    tau = solos[0].period_seconds
    total = np.array([solo.instructions for solo in solos])  # line 27
    sums = [np.minimum(solo.cumulative[1:, 0], t) for solo, t in zip(solos, total, strict=True)]
    least = [least_executed(solo) for solo in solos]
    a, s = np.zeros(2), 1  # line 28
    before: list[float | None] = [None, None]
    while (a < total).all():  # line 29
        rates = [  # lines 30 to 35
            printed_rates(solo, last) for solo, last in zip(solos, before, strict=True)
        ]
        predicted = np.array(  # lines 36 and 37
            [float(rates[n][0, 0] / slowdown(n, rates[n], rates[1 - n])[0]) * tau for n in range(2)]
        )
        predicted = np.maximum(predicted, least)
        before = predicted.tolist()
        a, s = a + predicted, s + 1  # lines 38 and 39
    left = [
        len(each) - int(np.searchsorted(each, done, "right"))  # lines 40 and 41
        for each, done in zip(sums, a.tolist(), strict=True)
    ]
    return s * tau + np.array(left) * tau  # lines 42 and 43
