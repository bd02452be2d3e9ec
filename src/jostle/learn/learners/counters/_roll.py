"""Rolling forward: from counters alone and a learned slowdown to when each workload ends.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 22 to 44, for any number of workloads: who is left
when one ends goes on beside those that are left; a workload may begin anew until the others have ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.errors import UsageError
from jostle.learn.learners.counters._solve import Lane, Slowdown, solve
from jostle.learn.learners.counters.solo._solo_counters import SoloCounters

SHORTEST, FIRST, LONGEST = (
    128,
    512,
    4096,
)  # periods that are solved at once: at least, at first, at most


def roll(
    solos: Sequence[SoloCounters],
    slowdown: Slowdown,
    *,
    loop: Sequence[bool] | None = None,
) -> np.ndarray:
    """Run k workloads, all from time 0; return (k,) seconds when each ended, NaN for those that loop.

    loop: which of them begin anew until no other is left. Who is left alone goes on as fast as alone; idle
    samples last as long as alone. Raises UsageError.
    """
    k = len(solos)
    loops = np.zeros(k, bool) if loop is None else np.asarray(loop, bool)
    if not k or len(loops) != k or loops.all():
        raise UsageError("there must be workloads, and at least one that does not loop")
    tau = solos[0].period_seconds
    if any(abs(p.period_seconds - tau) > 1e-9 * tau for p in solos):
        raise UsageError("solo counters of different periods cannot be rolled together")
    lanes = [Lane(p, bool(again)) for p, again in zip(solos, loops, strict=True)]
    duration = np.array([p.duration_seconds for p in solos])
    ends = np.full(k, np.nan)
    place, now = np.zeros(k), 0.0
    speed = np.ones(k)
    length = FIRST
    while np.isnan(ends[~loops]).any():
        active = [i for i in range(k) if np.isnan(ends[i])]
        if len(active) == 1:
            (i,) = active
            now = float(now + duration[i] - place[i])
            place[i] = duration[i]
        else:
            here = [lanes[i] for i in active]
            until, reached, at, rounds = solve(
                here, active, slowdown, now, place[active], speed[active], length
            )
            grow = 2 if rounds <= 5 else 0.5 if rounds > 10 else 1
            length = int(np.clip(length * grow, SHORTEST, LONGEST))
            going = [n for n, i in enumerate(active) if not loops[i]]
            for n in going:
                if reached[n][-1] >= duration[active[n]] * (1 - 1e-12):
                    until = min(until, float(at[n][-1]))
            reached_by = place.copy()
            for n, i in enumerate(active):
                reached_by[i] = np.interp(until, at[n], reached[n])
            speed[active] = np.clip((reached_by[active] - place[active]) / (until - now), 0.02, 2.0)
            now, place = until, reached_by
        for i in active:
            if not loops[i] and place[i] >= duration[i] * (1 - 1e-12):
                ends[i], place[i] = now, duration[i]
    return ends
