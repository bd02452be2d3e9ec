"""From beats to seconds per repetition, and whether a window can be believed.

The interval that counts, [begin, end], is the same for all members of a set: everyone has started
before it and everyone is still repeating at its end, so each member's co-runners are there all the
time.

- *Wall time*: the interval over the repetitions done in it, the first and last in part, by
interpolation.
  It is the answer wherever members share cores: waiting for each other is interference.
- With a core of its own and short beats, the *median over eight slices* of the interval instead,
where they
  differ: a hidden neighbour slows a core for a tenth of a second and a mean would remember it.
- A member with a core of its own that has lost more than `wall_load_ratio` of it to strangers is
answered by
  the *median of its unpreempted beats*, or, when beats are so long that most are hit, by its *CPU
  time*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A preempted beat is longer by at least a scheduler's slice; this much over the lower quartile says
# so.
_PREEMPTED_FACTOR = 1.5
# Beats longer than a slice or two of the scheduler cannot be trusted to have escaped preemption.
_LONGEST_SHORT_BEAT_SECONDS = 0.005
_FEWEST_UNPREEMPTED = 5
# A window is looked at in this many slices; with fewer beats in each their own length would show.
_SLICES = 8
_FEWEST_BEATS_PER_SLICE = 4
_STEADY_RATIO = 1.1


@dataclass(frozen=True)
class Tolerance:
    """What a window may suffer before it is rejected and repeated.

    wall_load_ratio: foreign CPU time, as a share of the cores, up to which wall time is believed;
    with shared cores a window past it is rejected. foreign_load_ratio: past this a window on cores
    of its own is rejected. lateness_seconds: the latest start. minimum_repetitions: the fewest in
    the interval that counts. slowdown_ratio: how much slower than usual a core may be before or
    after the window (see `_speed`).
    """

    wall_load_ratio: float = 0.05
    foreign_load_ratio: float = 0.15
    lateness_seconds: float = 0.02
    minimum_repetitions: float = 2.0
    slowdown_ratio: float = 1.2

    @classmethod
    def anything(cls) -> Tolerance:
        """Reject nothing that gives a number at all: for tests on busy machines."""
        infinite = float("inf")
        return cls(infinite, infinite, infinite, 0.0, infinite)


@dataclass(frozen=True)
class Estimate:
    """runtime_seconds: per repetition. method: wall, slices, unpreempted or cpu."""

    runtime_seconds: float
    method: str
    repetitions: float


def repetitions_done(beats_ns: np.ndarray, at_ns: float) -> float:
    """Repetitions done at a time, by interpolation. beats_ns: (n + 1,), from the start on."""
    return float(np.interp(at_ns, beats_ns, np.arange(len(beats_ns))))


def estimate(
    beats_ns: np.ndarray,
    begin_ns: int,
    end_ns: int,
    cpu_seconds: float,
    shares_core: bool,
    tolerance: Tolerance,
) -> Estimate | None:
    """Seconds per repetition in [begin, end]; None where no repetition was done in it.

    beats_ns: (n + 1,) int64, the start and the end of each repetition. cpu_seconds: used in the
    interval. shares_core: whether another member of the set may have held the core.
    """
    seconds = (end_ns - begin_ns) * 1e-9
    repetitions = repetitions_done(beats_ns, end_ns) - repetitions_done(beats_ns, begin_ns)
    if repetitions <= 0:
        return None
    wall = Estimate(seconds / repetitions, "wall", repetitions)
    if shares_core:
        return wall
    if 1 - cpu_seconds / seconds <= tolerance.wall_load_ratio:
        return _steadied(wall, beats_ns, begin_ns, end_ns)
    whole = beats_ns[(beats_ns >= begin_ns) & (beats_ns <= end_ns)]
    lengths = np.diff(whole) * 1e-9
    if len(lengths) >= _FEWEST_UNPREEMPTED:
        quartile = float(np.quantile(lengths, 0.25))
        unpreempted = lengths[lengths <= _PREEMPTED_FACTOR * quartile]
        if len(unpreempted) >= _FEWEST_UNPREEMPTED and quartile <= _LONGEST_SHORT_BEAT_SECONDS:
            return Estimate(float(np.median(unpreempted)), "unpreempted", repetitions)
    return Estimate(cpu_seconds / repetitions, "cpu", repetitions)


def _steadied(wall: Estimate, beats_ns: np.ndarray, begin_ns: int, end_ns: int) -> Estimate:
    """The median over slices where they differ, wall time where they do not."""
    if wall.repetitions < _SLICES * _FEWEST_BEATS_PER_SLICE:
        return wall
    edges = np.linspace(begin_ns, end_ns, _SLICES + 1)
    done = np.diff(np.interp(edges, beats_ns, np.arange(len(beats_ns))))
    seconds = (end_ns - begin_ns) * 1e-9 / _SLICES / done
    if seconds.max() <= _STEADY_RATIO * seconds.min():
        return wall
    return Estimate(float(np.median(seconds)), "slices", wall.repetitions)


def too_slow(slowdown_ratio: float, tolerance: Tolerance) -> str:
    """The reason that a slow core gives."""
    return (
        f"a core was {slowdown_ratio:.2f} times slower than usual, "
        f"at most {tolerance.slowdown_ratio:g} allowed"
    )


def contamination(
    *,
    slowdown_ratio: float | None,
    foreign_load_ratio: float,
    lateness_seconds: float,
    warmup_seconds: float,
    fewest_repetitions: float,
    shares_cores: bool,
    tolerance: Tolerance,
) -> str | None:
    """Why a window cannot be believed; None when it can.

    slowdown_ratio: of the slowest core, None where it was not probed. lateness_seconds: of the
    latest member. fewest_repetitions: of the slowest member.
    """
    allowed = tolerance.wall_load_ratio if shares_cores else tolerance.foreign_load_ratio
    if foreign_load_ratio > allowed:
        return f"foreign load {foreign_load_ratio:.1%} of the cores, at most {allowed:.1%} allowed"
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
