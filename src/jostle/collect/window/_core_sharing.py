"""Members on the cores that they share, with others there and without them.

Whoever is ready gets an equal part: with n ready threads of members and others that count as much as f
threads would, each runs for min(1, cores / (n + f)) of the time. Who else is ready when one is follows from
how much of the time each is ready, taken as independent. f is what makes others have what they had; without
them it is 0, and members are ready for less of the time: what they sleep lasts as long as before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jostle.collect.window._lost import Others

_STEPS = 20
_RIVALS = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 241)])


def others_of(
    seconds: float,
    cores: int,
    away: tuple[float, float, float],
    used: np.ndarray,
    waited: np.ndarray,
    unseen: np.ndarray,
) -> list[Others]:
    """Split what was taken from cores among the members that share them. away: seconds taken, stolen and
    throttled. used, waited, unseen: (m,) seconds of CPU time, in the run queue, and of CPU time whose waiting
    is not known."""
    taken = min(sum(away) / seconds, cores)
    shares = lost_shares(cores, taken, used / seconds, waited / seconds, unseen / seconds)
    return [Others(seconds, *away, *map(float, one)) for one in zip(used, *shares, strict=True)]


def lost_shares(
    cores: int, taken: float, used: np.ndarray, waited: np.ndarray, unseen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ((m,) share of what a member waited in the run queue that it waited for others who are no
    members, (m,) seconds that it may have waited for each second of CPU time whose waiting is not known).

    taken: how many cores others had in the mean. used, waited, unseen: (m,) threads of a member that ran,
    that were seen waiting, and that ran unseen, in the mean.
    """
    # What nobody saw waits as if its program were always ready, but no longer than there was time.
    room = np.maximum(1 - used - waited, 0.0)
    ready = used + waited + np.where(unseen > 0, room, 0.0)
    rivals = _rivals(cores, taken, ready)
    rate = _rates(cores, ready, rivals)
    guess = np.minimum(unseen * (1 / rate - 1), room)
    ready = used + waited + guess
    # A program of several threads is taken never to sleep: where one is not ready, another is.
    asleep, quiet = np.maximum(1 - ready, 0.0), rate
    for _ in range(_STEPS):
        awake = used / quiet
        undisturbed = np.where(ready < 1, awake / np.maximum(awake + asleep, 1e-9), ready)
        quiet = _rates(cores, undisturbed, 0.0)
    share = np.clip(1 - (1 / quiet - 1) / np.maximum(1 / rate - 1, 1e-9), 0.0, float(rivals > 0))
    return share, guess / np.maximum(unseen, 1e-9)


def _counts(ready: Sequence[float]) -> np.ndarray:
    """Return (n,) chances that 0, 1, … threads are ready. ready: of each member, in the mean: of several
    threads all but the last are ready all the time."""
    chances = np.ones(1)
    for one in ready:
        for before in range(math.ceil(one)):
            part = min(1.0, one - before)
            chances = np.convolve(chances, [1 - part, part])
    return chances


def _rivals(cores: int, taken: float, ready: np.ndarray) -> float:
    """Estimate how many threads that are always ready outside processes amount to."""
    chances = _counts(ready.tolist())
    everyone = np.arange(len(chances)) + _RIVALS[:, None]
    held = (_RIVALS[:, None] * np.minimum(1, cores / np.maximum(everyone, 1e-9))) @ chances
    return float(np.interp(taken, held, _RIVALS))


def _rates(cores: int, ready: np.ndarray, rivals: float) -> np.ndarray:
    """Return (m,) share of the time for which a member's thread that is ready runs."""
    rates = []
    for place, own in enumerate(ready.tolist()):
        chances = _counts([*np.delete(ready, place).tolist(), max(own - 1, 0.0)])
        beside = 1 + np.arange(len(chances)) + rivals
        rates.append(float(np.minimum(1, cores / beside) @ chances))
    return np.array(rates)
