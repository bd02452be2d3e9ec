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
repetitions in it, or, when other processes held a core of its own for more than `wall_load_ratio`,
*CPU* time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from jostle._options import Flag, Limits

# The part of a window that must be quiet for its quiet beat to be one.
_QUIET_QUANTILE = 0.15
_FEWEST_BEATS = 20
# Longer ones cannot be trusted to have escaped preemption: it is a slice or two of the scheduler.
_LONGEST_QUIET_BEAT_SECONDS = 0.005


@dataclass(frozen=True)
class Tolerance:
    """What a window may suffer before it is rejected and repeated.

    wall_load_ratio: foreign CPU time, as a share of the cores, up to which wall time is believed;
    where kernels share cores a window past it is rejected. foreign_load_ratio: how much of one core
    other processes may hold, of all that the window watches; outside_load_ratio: the same of the
    machine's other cores. stolen_ratio: share of the cores' time that a hypervisor may take.
    lateness_seconds: the latest start. minimum_repetitions: the fewest in the interval that counts.
    slowdown_ratio: how much slower than usual a core may be before or after the window (see `_speed`).
    """

    wall_load_ratio: Annotated[
        float,
        "Share of the cores that is lost at most where kernels share them; below it wall time counts.",
        Flag("--shared-load"),
        Limits(0),
    ] = 0.05
    foreign_load_ratio: Annotated[
        float,
        "How much of one core other processes may hold, of all cores measured on.",
        Flag("--foreign-load"),
        Limits(0),
    ] = 0.1
    lateness_seconds: float = 0.02
    minimum_repetitions: float = 2.0
    slowdown_ratio: Annotated[
        float,
        "How much slower than usual a core may be beside a window.",
        Flag("--slowdown"),
        Limits(1),
    ] = 1.25
    outside_load_ratio: Annotated[
        float,
        "The same of the machine's cores that are not measured on.",
        Flag("--outside-load"),
        Limits(0),
    ] = 0.1
    stolen_ratio: Annotated[
        float,
        "Share of the cores' time that a hypervisor may take.",
        Flag("--stolen"),
        Limits(0),
    ] = 0.15

    @classmethod
    def anything(cls) -> Tolerance:
        """Reject nothing that gives a number at all: for tests on busy machines."""
        infinite = float("inf")
        return cls(infinite, infinite, infinite, 0.0, infinite, infinite, infinite)


@dataclass(frozen=True)
class Estimate:
    """beat_seconds: how long one beat takes. method: quiet, wall or cpu. beats: in the interval."""

    beat_seconds: float
    method: str
    beats: float


def beats_done(beats_ns: np.ndarray, at_ns: float) -> float:
    """Beats done at a time, by interpolation. beats_ns: (n + 1,), from the start on."""
    return float(np.interp(at_ns, beats_ns, np.arange(len(beats_ns))))


def estimate(
    beats_ns: np.ndarray,
    begin_ns: int,
    end_ns: int,
    cpu_seconds: float,
    shares_core: bool,
    tolerance: Tolerance,
) -> Estimate | None:
    """Seconds per beat in [begin, end]; None where none was done in it.

    beats_ns: (n + 1,) int64, the start and the end of each beat. cpu_seconds: used in the interval.
    shares_core: whether another member of the set may have held the core.
    """
    seconds = (end_ns - begin_ns) * 1e-9
    beats = beats_done(beats_ns, end_ns) - beats_done(beats_ns, begin_ns)
    if beats <= 0:
        return None
    lengths = np.diff(beats_ns[(beats_ns >= begin_ns) & (beats_ns <= end_ns)]) * 1e-9
    if len(lengths) >= _FEWEST_BEATS:
        quiet = float(np.quantile(lengths, _QUIET_QUANTILE))
        if quiet <= _LONGEST_QUIET_BEAT_SECONDS and cpu_seconds > 0:
            waits = max(1.0, seconds / cpu_seconds) if shares_core else 1.0
            return Estimate(quiet * waits, "quiet", beats)
    if shares_core or 1 - cpu_seconds / seconds <= tolerance.wall_load_ratio:
        return Estimate(seconds / beats, "wall", beats)
    return Estimate(cpu_seconds / beats, "cpu", beats)


def too_slow(slowdown_ratio: float, tolerance: Tolerance) -> str:
    """The reason that a slow core gives."""
    return (
        f"a core was {slowdown_ratio:.2f} times slower than usual before and after, "
        f"at most {tolerance.slowdown_ratio:g} allowed"
    )


def contamination(
    *,
    slowdown_ratio: float | None,
    foreign: str | None,
    lateness_seconds: float,
    warmup_seconds: float,
    fewest_repetitions: float,
    tolerance: Tolerance,
) -> str | None:
    """Why a window cannot be believed; None when it can.

    slowdown_ratio: of the slowest core, None where it was not probed. foreign: the reason that others
    are, None where they were tolerable. lateness_seconds: of the latest member.
    fewest_repetitions: of the slowest member.
    """
    if foreign is not None:
        return foreign
    if slowdown_ratio is not None and slowdown_ratio > tolerance.slowdown_ratio:
        return too_slow(slowdown_ratio, tolerance)
    latest = min(tolerance.lateness_seconds, warmup_seconds)
    if lateness_seconds > latest and tolerance.lateness_seconds != float("inf"):
        return f"a member started {lateness_seconds:.3f} s late, at most {latest:.3f} s allowed"
    if fewest_repetitions < tolerance.minimum_repetitions:
        return (
            f"{fewest_repetitions:.2f} repetitions in the window, "
            f"at least {tolerance.minimum_repetitions:g} needed"
        )
    return None
