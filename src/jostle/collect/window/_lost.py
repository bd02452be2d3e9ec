"""What a member lost to others, and how long it would have taken without them.

A program that is ready to run and does not is waiting in the run queue, and the kernel says how long
(`run_delay_seconds`); what it does not know of processes that came and went unseen is taken to have waited as
others took the core. Nobody can lose more than others had: other processes on its cores, the hypervisor
(steal) and limits of its control group (throttling), nor end in less than its CPU time. Processes of one
program wait for each other, and for others at the same time; members that share cores wait for each other
too, which is interference and stays in: `_sharing` says which part of the waiting is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.collect.host._proc import TICK_SECONDS

# Of what was lost, this much may be wrong: a program that is preempted finds its caches cold, and its start
# and its end fall between looks. Of what nobody looked at, this much. Both by benchmarks/never_quiet.py.
# Where members wait for each other too, by a made scheduler (tests/packages/collect/test_lost.py).
_LOST_ERROR_RATIO = 0.02
_SHARED_ERROR_RATIO = 0.08
_UNSEEN_ERROR_RATIO = 0.03
_MOST_LOST_RATIO = 0.99
_NORMAL_DEVIATION = 1.4826  # of a median absolute deviation, for a normal law
_MEDIAN_ERROR = 1.2533  # standard error of a median, against that of a mean


@dataclass(frozen=True)
class Others:
    """Time that others took of the cores where a member ran, in seconds, over a window. seconds: the window's
    length. foreign_share: of what it waited, the part that is lost; waited_per_unseen: seconds that it may
    have waited for each second of CPU time whose waiting is not known."""

    seconds: float
    taken: float
    stolen: float
    throttled: float
    own: float
    foreign_share: float = 1.0
    waited_per_unseen: float = 0.0

    @property
    def lost_at_most(self) -> float:
        return self.taken + self.stolen + self.throttled


@dataclass(frozen=True)
class Cleaned:
    """Time of a run without its disturbance. seconds: estimate of the undisturbed time; raw_seconds: as the
    clock has it. disturbance_ratio: share of the time that was lost. error_ratio: standard error of
    `seconds`, as a share of it."""

    seconds: float
    raw_seconds: float
    disturbance_ratio: float
    error_ratio: float


def cleaned_executions(
    wall: np.ndarray,
    waited: np.ndarray,
    unseen: np.ndarray,
    used: np.ndarray,
    cores: int,
    others: Others,
) -> Cleaned:
    """Take off what whole executions lost to others, and return the medians.

    wall, waited, unseen, used: (n,) seconds that each took, waited in the run queue, of CPU time whose
    waiting is not known, and of CPU time; n at least 1. cores: how many it may run on.
    """
    own = max(others.own, 1e-9)
    guessed = np.minimum(unseen * others.waited_per_unseen, np.maximum(wall - used - waited, 0.0))
    while_running = others.stolen / others.seconds * own / (own + others.taken)
    # Threads of one program that wait at the same time are late once.
    threads = np.maximum(1.0, (used + waited + guessed) / wall)
    lost = (waited + guessed) * others.foreign_share / threads + wall * while_running
    limit = (others.lost_at_most + 2 * TICK_SECONDS) * wall.sum() / others.seconds
    if lost.sum() > limit:
        lost = lost * (limit / lost.sum())
    # What a hypervisor took meanwhile may or may not be in a program's CPU time.
    least = np.maximum(
        used / cores * (1 - others.stolen / others.seconds), (1 - _MOST_LOST_RATIO) * wall
    )
    lost = np.clip(lost, 0.0, np.maximum(wall - least, 0.0))
    clean = wall - lost
    middle = float(np.median(clean))
    spread = 0.0
    if len(clean) > 2:
        deviation = _NORMAL_DEVIATION * float(np.median(np.abs(clean - middle)))
        spread = _MEDIAN_ERROR * deviation / (len(clean) ** 0.5 * middle)
    of_lost = _LOST_ERROR_RATIO if others.foreign_share >= 1 else _SHARED_ERROR_RATIO
    doubt = of_lost * lost.sum() + _UNSEEN_ERROR_RATIO * min(guessed.sum(), lost.sum())
    return Cleaned(
        middle,
        float(np.median(wall)),
        float(lost.sum() / wall.sum()),
        float(np.hypot(spread, doubt / clean.sum())),
    )


def cleaned_part(seconds: float, lost_ratio: float) -> Cleaned:
    """Return a time of which so much was lost, in the mean: of requests, of repetitions."""
    lost = min(max(lost_ratio, 0.0), _MOST_LOST_RATIO)
    clean = seconds * (1 - lost)
    return Cleaned(clean, seconds, lost, _LOST_ERROR_RATIO * lost / (1 - lost))
