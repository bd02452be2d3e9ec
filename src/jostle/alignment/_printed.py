"""The prediction phase as printed, line by line, for two applications that run once.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 22 to 44, with Algorithm 2 as printed (`_samples`). What
is looked up in the run alone is what the period before executed (lines 34 and 35), not all executed so
far; the first period takes the first samples (lines 31 and 32); s is raised once more after the last period,
and who is left is given whole samples (lines 42 and 43). Lines 36 to 39, which the indentation puts under
`else`, are taken for every period: without them the first one would never end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.alignment._roll import Roll
from jostle.alignment._solve import Slowdown
from jostle.alignment.solo._counters import SoloCounters
from jostle.alignment.solo._samples import least_executed, printed_rates


@dataclass(frozen=True)
class PrintedRoll:
    """seconds: (2,) c_pred of both. edges: (s + 1,) seconds at which periods begin and end. executed: (s + 1,
    2) instructions by then."""

    seconds: np.ndarray
    edges: np.ndarray
    executed: np.ndarray

    def as_roll(self, solos: Sequence[SoloCounters]) -> Roll:
        """The same in seconds of each run alone."""
        duration = np.array([solo.duration_seconds for solo in solos])
        place = [
            np.append(solo.seconds_at(np.minimum(done, solo.instructions)), solo.duration_seconds)
            for solo, done in zip(solos, self.executed.T, strict=True)
        ]
        edges = np.append(self.edges, max(float(self.seconds.max()), self.edges[-1] + 1e-12))
        return Roll(self.seconds, edges, np.minimum(np.stack(place, axis=1), duration))


def roll_printed(solos: Sequence[SoloCounters], slowdown: Slowdown) -> PrintedRoll:
    """Two applications from time 0 on. slowdown: what the predictive models say, as instructions alone over
    those beside the other."""
    tau = solos[0].period_seconds
    total = np.array([solo.instructions for solo in solos])  # line 27
    sums = [np.minimum(solo.cumulative[1:, 0], t) for solo, t in zip(solos, total, strict=True)]
    least = [least_executed(solo) for solo in solos]
    a, s = np.zeros(2), 1  # line 28
    executed = [a]
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
        executed.append(a)
    left = [
        len(each) - int(np.searchsorted(each, done, "right"))  # lines 40 and 41
        for each, done in zip(sums, a.tolist(), strict=True)
    ]
    seconds = s * tau + np.array(left) * tau  # lines 42 and 43
    return PrintedRoll(seconds, np.arange(len(executed)) * tau, np.stack(executed))
