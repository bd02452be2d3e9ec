"""Laying samples of a run alone over a run beside others.

Source: Saeed et al., MLCAD 2021, Algorithm 2, and what is wrong with it as printed. At what rates did (does)
the workload alone count over the stretch that it executes in one period beside others?

- `section`: the mean over exactly that stretch, from where the period begins to where it ends.
- `printed`: line for line. Its weights are swapped (lines 8 and 9), it looks up one period's count rather
  than all counted so far (Algorithm 1, lines 14 and 34), and gamma lacks the sum before the sample
  (Algorithm 2, line 3). Where sample beta is asked before the first sample, the first stands in, as in
  Algorithm 1 for s = 1.
"""

from __future__ import annotations

import numpy as np

from jostle.alignment.solo._counters import SoloCounters
from jostle.errors import UsageError

ALIGNMENTS = ("section", "printed")
LEAST = 0.02  # of the mean count of a period alone: a prediction of none would never end


def aligned(
    kind: str,
    solo: SoloCounters,
    begin_seconds: np.ndarray,
    end_seconds: np.ndarray,
    *,
    count: np.ndarray | None = None,
) -> np.ndarray:
    """(s, k) counts per second of the run alone over s stretches, given in its own time.

    count: (s,) instructions of one period, which `printed` needs. Raises UsageError for an unknown kind.
    """
    table, tau = solo.cumulative, solo.period_seconds
    if kind == "section":
        length = np.maximum(end_seconds - begin_seconds, 1e-9 * tau)
        begin = end_seconds - length
        return (solo.at(table, end_seconds) - solo.at(table, begin)) / length[:, None]
    if kind not in ALIGNMENTS:
        raise UsageError(f"unknown alignment {kind!r}", fix=f"One of {', '.join(ALIGNMENTS)}.")
    if count is None:
        raise UsageError("the printed alignment needs the count of one period")
    work = solo.work
    beta = np.clip(np.searchsorted(work, count, "right") - 1, 0, solo.periods - 1)
    following = work[beta + 1] - work[beta]
    gamma = (following - count) / following
    first = table[np.maximum(beta, 1)] - table[np.maximum(beta, 1) - 1]
    second = table[beta + 1] - table[beta]
    weight = np.where(gamma == 1.0, 0.0, gamma)[:, None]
    return (first * (1 - weight) + second * weight) / tau


def printed_rates(solo: SoloCounters, before: float | None) -> np.ndarray:
    """(1, k) aligned counts per second. before: instructions of the period before, None in the first one."""
    if before is None:
        return (solo.cumulative[1:2] - solo.cumulative[:1]) / solo.period_seconds
    nowhere = np.zeros(1)
    return aligned("printed", solo, nowhere, nowhere, count=np.array([before]))


def least_executed(solo: SoloCounters) -> float:
    """Instructions of a period, so that every run ends whatever is predicted."""
    return LEAST * solo.instructions / solo.periods
