"""Whether errors still are what they were: a two-sided cumulative sum for every level that may drift.

Source: Page (1954), Continuous inspection schemes. Errors are checked in units of their usual spread, and
what a level has moved by is learned in log seconds; a level is the fleet, a device, a platform or a workload.
A wider level is asked first and what it has learned is taken off before a narrower one is asked, so that a
step of the whole fleet is not told once for every name. After an alarm a level is learned anew, ever more
slowly, and watched from there on. Adaptive conformal inference (Gibbs and Candes 2021) keeps the share of
late runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, hypot

import numpy as np

ALLOWED = 1.0  # what a level may be off without ever being told, in usual spreads
THRESHOLD = 22.0  # one false alarm in some 450 000 runs of the public Pitot data
# Of a level with very many runs, whose usual level is well known: less that lasts longer is told as well.
ALLOWED_SLOW = 0.25
THRESHOLD_SLOW = 70.0
CLIP = 2.0  # what an error counts for at most, beyond what is allowed, in usual spreads
SURELY = 3.0  # how many standard errors of a level's usual place it may be off
SLOWEST = 0.02  # gain with which a level that drifted is learned in the long run
REMEMBERED = 500
SIDES = (1.0, -1.0)
TESTS = ((ALLOWED, THRESHOLD), (ALLOWED_SLOW, THRESHOLD_SLOW))
SHRINKAGE = 10.0  # runs that a name's usual level and spread are shrunken by, where names tell nothing of it
NAMES_FOR_SHRINKAGE = 5  # names that weigh as much as that
CONFIDENCES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)  # whose levels are kept true
STEP = 0.05  # of adaptive conformal inference, as a share of the miscoverage


@dataclass(frozen=True)
class Alarm:
    """runs: of the level, from the first that counts to the one that told. shift: how far the level moved,
    in log seconds; above 0 where runs take longer."""

    runs: int
    shift: float


@dataclass
class DriftLevel:
    """One level over time. usual: where it was when the model was fitted, in usual spreads, known up to a
    standard error of `unsure`; noise: the spread of its own errors, in usual spreads. shift: how far it has
    moved since, in log seconds. slowly: whether small steps that last are told, too. alarms: how many; since:
    runs since the last one."""

    usual: float = 0.0
    unsure: float = 0.0
    noise: float = 1.0
    shift: float = 0.0
    slowly: bool = False
    alarms: int = 0
    since: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 4)
    seen: tuple[list[float], ...] = field(default_factory=lambda: ([], [], [], []))

    def add(self, error: float, spread: float) -> Alarm | None:
        """One run's error less what wider levels have moved by, and its usual spread, in log seconds."""
        off = (error - self.shift) / spread - self.usual
        if self.alarms:
            self.since += 1
            most = CLIP + ALLOWED
            gain = max(1 / (self.since + 10), SLOWEST) * spread
            self.shift += min(max(off, -most), most) * gain
        off /= self.noise
        doubt = SURELY * self.unsure / self.noise
        for side in range(4 if self.slowly else 2):
            allowed, threshold = TESTS[side // 2]
            allowed = hypot(allowed, doubt)
            most = CLIP + max(allowed, ALLOWED)
            counted = min(max(SIDES[side % 2] * off, -most), most)
            self.sums[side] = max(0.0, self.sums[side] + counted - allowed)
            if self.sums[side] == 0.0:
                self.seen[side].clear()
                continue
            self.seen[side].append(error - self.usual * spread)
            if self.sums[side] >= threshold:
                moved = float(np.median(self.seen[side][-REMEMBERED:])) - self.shift
                alarm = Alarm(len(self.seen[side]), moved)
                self.shift += alarm.shift
                self.alarms, self.since = self.alarms + 1, 0
                self.forget()
                return alarm
        return None

    def forget(self) -> None:
        """Begin anew to count what is off."""
        self.sums[:] = [0.0] * 4
        for side in self.seen:
            side.clear()


@dataclass
class AdaptiveLevel:
    """Adaptive conformal inference for one pool: at which level its bounds are taken so that in the long run
    a share `miscoverage` is late. level: in (0, 1)."""

    miscoverage: float
    allowed: float = field(init=False)

    def __post_init__(self) -> None:
        self.allowed = self.miscoverage

    @property
    def level(self) -> float:
        return 1.0 - self.allowed

    def add(self, late: bool) -> None:
        """Whether a run was late at the present level."""
        moved = self.allowed + STEP * self.miscoverage * (self.miscoverage - late)
        # Under 0 all bounds are infinite, and a level under a half is no bound.
        self.allowed = min(max(moved, self.miscoverage / 50), 0.5)


class AdaptiveLevels:
    """Adaptive levels of one pool at several confidences, and at those between them."""

    def __init__(self, confidence: float) -> None:
        """confidence: one that is wanted exactly."""
        self._kept = [AdaptiveLevel(1 - c) for c in sorted({*CONFIDENCES, confidence})]
        self._miscoverage = [level.miscoverage for level in self._kept]

    def add(self, below: int, n: int) -> None:
        """A run whose score is above `below` of the n calibration scores."""
        for level in self._kept:
            level.add(below >= min(ceil(level.level * (n + 1)), n))

    def levels(self) -> AdaptedLevels:
        """As they are now."""
        # A higher confidence never gives a lower bound.
        allowed = np.minimum.accumulate([level.allowed for level in self._kept])
        order = slice(None, None, -1)
        return AdaptedLevels(np.log(self._miscoverage[order]), np.log(allowed[order]))


@dataclass(frozen=True, eq=False)
class AdaptedLevels:
    """log_miscoverage: (k,) ascending, what was asked for. log_allowed: (k,), at what bounds are taken so
    that this share is late."""

    log_miscoverage: np.ndarray
    log_allowed: np.ndarray

    def level(self, confidence: float) -> float:
        """Of bounds that are to hold with this confidence; straight lines between logarithms. Under a half
        nothing is kept true."""
        if confidence < 0.5:
            return confidence
        log_miscoverage = np.log1p(-confidence)
        known = np.clip(log_miscoverage, self.log_miscoverage[0], self.log_miscoverage[-1])
        allowed = np.interp(known, self.log_miscoverage, self.log_allowed) + log_miscoverage - known
        return max(float(-np.expm1(allowed)), 0.5)


@dataclass(frozen=True, eq=False)
class UsualLevels:
    """Of the names of one kind: level: (names,) in usual spreads; unsure: (names,) its standard error; noise:
    (names,) at least 1, the spread of a name's own errors."""

    level: np.ndarray
    unsure: np.ndarray
    noise: np.ndarray

    def __post_init__(self) -> None:
        shapes = {array.shape for array in (self.level, self.unsure, self.noise)}
        if len(shapes) > 1 or self.level.ndim != 1:
            raise ValueError(f"usual levels of shape {sorted(shapes)}")


def usual_levels(
    errors: np.ndarray, keys: Sequence[np.ndarray], sizes: Sequence[int]
) -> list[UsualLevels]:
    """The usual levels of every name of every kind, the wider kinds first.

    Means, shrunken towards 0 by how much more they differ than their runs let them (empirical Bayes, the
    variance between names by moments); so are spreads, towards that of all.

    errors: (n,) in usual spreads; one that is not finite tells nothing. keys: of each kind (n,) codes.
    sizes: names of each kind.
    """
    most = CLIP + ALLOWED
    rest, levels = np.clip(np.where(np.isfinite(errors), errors, 0.0), -most, most), []
    for key, size in zip(keys, sizes, strict=True):
        n = np.bincount(key, minlength=size)
        total = np.bincount(key, rest, size)
        mean = total / np.maximum(n, 1)
        counted = int((n > 0).sum())
        within = np.sum((rest - mean[key]) ** 2) / max(len(rest) - counted, 1)
        between = max((np.sum(total * mean) - counted * within) / max(len(rest), 1), 0.0)
        prior = NAMES_FOR_SHRINKAGE * within / SHRINKAGE
        between = (counted * between + prior) / (counted + NAMES_FOR_SHRINKAGE)
        by = within / between if between > 0 else SHRINKAGE
        level = total / (n + by)
        # Names may differ by a standard error more than it seems, which is much where each has few runs.
        more = between + within * np.sqrt(2 * counted) / max(len(rest), 1)
        unsure = np.sqrt(within / (n + (within / more if more > 0 else SHRINKAGE)))
        left = rest - level[key]
        noise = np.bincount(key, left**2, size) + SHRINKAGE * within
        noise = np.sqrt(noise / ((n + SHRINKAGE) * within)) if within > 0 else np.ones(size)
        levels.append(UsualLevels(level, unsure, np.maximum(noise, 1.0)))
        rest = left
    return levels
