"""From beats to seconds per repetition, and whether a window can be believed.

The interval that counts, [begin, end], is the same for all members of a set: everyone has started
before it and everyone is still repeating at its end, so the co-runners are there all the time.

Neighbours that no load figure shows (another guest on a core's other hardware thread) make a core
up to two times slower for 10 to 300 milliseconds, any time; they only ever slow it. So the *quiet
beat*, a low quantile of the beats' lengths, says how long a repetition takes while they are away,
which is what can be learned and repeated. The set's own members run all the time and are in it. It
is not touched by preemption either; so where members share cores it is multiplied by the share of
the time for which the member held one: waiting for each other is interference.

Where beats are too long or too few for that, it is the *wall* time of the interval over the
repetitions in it, less what the members lost to others, or, when other processes held a core of its own for
more than _WALL_LOAD_RATIO of the time, *CPU* time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.collect.window._lost import Cleaned, cleaned_part

# The part of a window that must be quiet for its quiet beat to be one.
_QUIET_QUANTILE = 0.15
_FEWEST_BEATS = 20
# Longer ones cannot be trusted to have escaped preemption: it is a slice or two of the scheduler.
_LONGEST_QUIET_BEAT_SECONDS = 0.005
_WALL_LOAD_RATIO = 0.05
# Members that share cores take turns of about this long, so that of a short window each has a whole number of
# turns, give or take half of one for each that it might have had.
_TURN_SECONDS = 0.004
_TURN_ERROR = 0.5


@dataclass(frozen=True)
class Estimate:
    """Estimated time of one repetition. beat: how long one takes. method: quiet, wall or cpu. beats: in the
    interval."""

    beat: Cleaned
    method: str
    beats: float


def beats_done(beats_ns: np.ndarray, at_ns: float) -> float:
    """Interpolate how many beats were done at a time. beats_ns: (n + 1,), from the start on."""
    return float(np.interp(at_ns, beats_ns, np.arange(len(beats_ns))))


def estimate(
    beats_ns: np.ndarray,
    begin_ns: int,
    end_ns: int,
    cpu_seconds: float,
    shares_core: bool,
    lost_ratio: float = 0.0,
) -> Estimate | None:
    """Estimate the seconds per beat between begin and end; None if no beat ended in that time.

    beats_ns: (n + 1,) int64, the start and the end of each beat. cpu_seconds: used in the interval.
    shares_core: whether another member of the set may have held the core; lost_ratio: then, the share of
    what the members may hold together that others had.
    """
    seconds = (end_ns - begin_ns) * 1e-9
    beats = beats_done(beats_ns, end_ns) - beats_done(beats_ns, begin_ns)
    if beats <= 0:
        return None
    lost = lost_ratio if shares_core else max(0.0, 1 - cpu_seconds / seconds)
    method = "wall" if shares_core or lost <= _WALL_LOAD_RATIO else "cpu"
    beat = cleaned_part(seconds / beats, 0.0 if method == "wall" and not shares_core else lost)
    lengths = np.diff(beats_ns[(beats_ns >= begin_ns) & (beats_ns <= end_ns)]) * 1e-9
    if len(lengths) >= _FEWEST_BEATS and cpu_seconds > 0:
        quiet = float(np.quantile(lengths, _QUIET_QUANTILE))
        if quiet <= _LONGEST_QUIET_BEAT_SECONDS:
            waits = max(1.0, seconds * (1 - lost) / cpu_seconds) if shares_core else 1.0
            method, beat = "quiet", replace(beat, seconds=quiet * waits)
    error = beat.error_ratio
    if shares_core:
        error = float(np.hypot(error, _TURN_ERROR * (_TURN_SECONDS / seconds) ** 0.5))
    return Estimate(replace(beat, disturbance_ratio=lost, error_ratio=error), method, beats)
