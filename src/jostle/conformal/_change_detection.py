"""Whether runs still are what they were: bets on every level that may drift, and bounds that follow.

A level is the fleet, a device, a platform or a workload. Each run's score becomes a normal score by its rank
among calibration scores and earlier runs (Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random
World, ch. 7), so that nothing is assumed of its law. A level knows its own mean and spread as far as
calibration runs tell, learns them on, and says before each run how likely its score is (Student's law); what
comes is then a standard normal number while nothing changes. Bets against that: on a mean that has moved by
several sizes, either way, on several wider spreads, and on more runs over their bound. Each multiplies by a
ratio of likelihoods whose mean is 1. Their sum over all times at which a change may have begun (Shiryaev and
Roberts; Shin, Ramdas and Rinaldo 2023, E-detectors) grows by 1 a run in the mean, so that by Ville's
inequality it passes TOLD within n runs with chance n / TOLD at most, however many bets there are. No
threshold is tuned.

Where something changed, bounds follow in score space: a quantile of what came since, tracked by online
gradient steps (Gibbs and Candes 2021; Angelopoulos, Candes and Tibshirani 2023), which no calibration score
caps, so that the share of late runs is kept in the long run, whatever comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import erf, sqrt

import numpy as np

# At most one false alarm of each kind of level in so many runs, and one false sign.
TOLD = 4e6
SIGN = 3000.0
STEPS = (0.25, 0.4, 0.65, 1.0, 1.6, 2.5)  # that a mean may move by, in standard deviations
WIDER = (1.2, 1.5, 2.0, 3.0)  # how many times as wide errors may be
MORE = (2.0, 4.0, 8.0)  # how many times as many runs may be over their bound
MEAN = "mean"
SPREAD = "spread"
LATE = "late"
FAMILY = (MEAN,) * (2 * len(STEPS)) + (SPREAD,) * len(WIDER) + (LATE,) * len(MORE)
MOST = 4.0  # standard deviations that a run counts for
SLOWEST = 0.02  # gain with which a level that drifted is learned in the long run
LATE_RUNS = 30.0  # that the usual share of late ones is worth
SHRINKAGE = 10.0  # runs that a name's usual level and spread are shrunken by, where names tell nothing of it
MOST_SHRINKAGE = 100.0  # where names' spreads do not differ
NAMES_FOR_SHRINKAGE = 5  # names that weigh as much as that
LEAST_NOISE = 0.1  # standard deviations that a name's errors spread at least
MOST_OFF = 3.0  # what an error counts for at most, in usual spreads
CONFIDENCES = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)  # whose quantiles are tracked
STEP = 0.05  # of a tracked quantile, in spreads of what comes
DEBT = 10.0  # late ones that double it


def _bets() -> tuple[np.ndarray, np.ndarray]:
    """Return (edges (c - 1,), ratios (c, bets on mean and spread)) of cells of the standard normal law.
    ratios: how many times as likely a cell is if the bet is right."""
    edges = np.linspace(-MOST, MOST, 161)
    normal = np.vectorize(lambda x: 0.5 * (1 + erf(x / sqrt(2))))

    def cells(mean: float, spread: float) -> np.ndarray:
        return np.diff(normal((edges - mean) / spread), prepend=0.0, append=1.0)

    laws = [(side * step, 1.0) for side in (1, -1) for step in STEPS] + [(0.0, s) for s in WIDER]
    return edges, np.stack([cells(*law) for law in laws], axis=1) / cells(0.0, 1.0)[:, None]


EDGES, RATIOS = _bets()
WEIGHTS = np.array([1 / (3 * FAMILY.count(family)) for family in FAMILY])


class DriftLevels:
    """Levels over time, n of them.

    mean: (n,) usual ones in standard deviations; unsure: (n,) their standard errors; noise: (n,) spreads of
    each level's own errors; freedom: (n,) degrees of these. late: usual share of runs over the bound.
    shift: (n,) by how much each has moved since, in log seconds. is_moved: (n,) bool, told at least once.
    evidence: (n,) of a change that has not been told yet, see TOLD.
    """

    def __init__(
        self,
        mean: np.ndarray,
        unsure: np.ndarray,
        noise: np.ndarray,
        freedom: np.ndarray,
        late: float,
    ) -> None:
        n, bets = len(mean), len(FAMILY)
        self.usual, self.mean = mean.astype(float), mean.astype(float)
        self.noise = noise.astype(float)
        self.wider = np.ones(n)  # how many times as wide errors are as usual, of those that moved
        self.known = (noise / np.maximum(unsure, 1e-3)) ** 2  # runs that the mean is worth
        self.freedom = freedom.astype(float)
        self.late, self.late_known = np.full(n, late), np.full(n, LATE_RUNS)
        self.shift, self.evidence = np.zeros(n), np.zeros(n)
        self.is_moved, self.since = np.zeros(n, bool), np.zeros(n, np.int64)
        self.count = np.zeros(n, np.int64)
        self._sum, self._top = np.zeros((n, bets)), np.zeros((n, bets))
        self._start = np.zeros((n, bets), np.int64)

    def add(self, at: np.ndarray, score: float, *, is_late: bool) -> None:
        """Take in one run of the levels `at`: its normal score, and whether it was over its bound."""
        rest, wider = score - self.mean[at].sum(), self.wider[at]
        place = int(wider.argmax())
        # What is wider for one level is no news for the others.
        others = np.full(len(at), wider[place])
        others[place] = 1.0
        rest = rest / others
        known, noise = self.known[at], self.noise[at]
        freedom, late = self.freedom[at], self.late[at]
        off = rest / (noise * np.sqrt(1 + 1 / known))
        # Student's law as a normal number (Wallace 1959).
        wallace = (
            (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(off**2 / freedom))
        )
        ratio = np.empty((len(at), len(FAMILY)))
        ratio[:, : RATIOS.shape[1]] = RATIOS[np.searchsorted(EDGES, np.copysign(wallace, off))]
        bet, usual = np.minimum(np.outer(late, MORE), 0.9), late[:, None]
        ratio[:, RATIOS.shape[1] :] = bet / usual if is_late else (1 - bet) / (1 - usual)
        top = self._top[at]
        anew = top < 1.0
        self._start[at] = np.where(anew, self.count[at][:, None], self._start[at])
        self._top[at] = np.where(anew, 1.0, top) * ratio
        self._sum[at] = (self._sum[at] + 1.0) * ratio
        self.evidence[at] = self._sum[at] @ WEIGHTS
        self.count[at] += 1
        # What may not be as usual any more is not learned from: while nothing changes that is rare.
        learns = self.is_moved[at] | (self.evidence[at] < SIGN)
        at, rest, noise, known = at[learns], rest[learns], noise[learns], known[learns]
        freedom, late = freedom[learns], late[learns]
        step = np.clip(rest, -MOST_OFF * noise, MOST_OFF * noise)
        self.mean[at] += step / (known + 1)
        self.noise[at] = np.sqrt(
            noise**2 + (step**2 * known / (known + 1) - noise**2) / (freedom + 1)
        )
        most = np.where(self.is_moved[at], 1 / SLOWEST, np.inf)
        self.known[at] = np.minimum(known + 1, most)
        self.freedom[at] = np.minimum(freedom + 1, most)
        self.late_known[at] = np.minimum(self.late_known[at] + 1, most)
        self.late[at] += (is_late - late) / self.late_known[at]

    def told_by(self, level: int) -> tuple[str, int]:
        """Return (the kind of bet that won most on a level, runs since the change that it sees began)."""
        best = int(np.argmax(self._sum[level] * WEIGHTS))
        return FAMILY[best], int(self.count[level] - self._start[level, best])

    def move(self, level: int, shift: float, scores: np.ndarray) -> float:
        """Record that a level moved by `shift` log seconds; scores: its normal scores since. Returns how many
        times as wide these are as before."""
        self.shift[level] += shift
        self.is_moved[level], self.since[level] = True, 0
        n, before = len(scores), float(self.noise[level])
        spread = np.clip(scores, -MOST_OFF, MOST_OFF)
        now = sqrt((SHRINKAGE * before**2 + float(spread @ spread)) / (SHRINKAGE + n))
        self.noise[level], self.mean[level] = now, self.usual[level]
        self.wider[level] *= max(now / before, 1 / self.wider[level])
        self.known[level] = min(max(n, 5), 1 / SLOWEST)
        self.freedom[level] = min(n + SHRINKAGE, 1 / SLOWEST)
        self.late[level] = 0.5 * (self.late[level] + 0.5)
        self.forget(np.array([level]))
        return now / before

    def forget(self, levels: np.ndarray | slice) -> None:
        """Begin to bet anew on these levels."""
        self._sum[levels], self._top[levels] = 0.0, 0.0
        self.evidence[levels] = 0.0


class Quantiles:
    """Shifts of bounds of one level, at each of CONFIDENCES and one more, in usual spreads."""

    def __init__(self, confidences: np.ndarray, excess: np.ndarray) -> None:
        """Begin with n runs since the change. excess: (n, c) how far each lies over each usual bound."""
        self.miss = 1 - confidences
        n = len(excess)
        rank = np.minimum(np.ceil((n + 1) * (1 - self.miss)).astype(int), n)
        self.extra = np.maximum(np.sort(excess, axis=0)[rank - 1, np.arange(len(rank))], 0.0)
        middle = np.median(excess, axis=0)
        self.spread = max(float(np.median(np.abs(excess - middle))), 1.0)
        self.n = n
        # Late ones beyond those allowed so far.
        self.debt = (excess > 0).sum(axis=0) - n * self.miss

    def add(self, excess: np.ndarray, given: np.ndarray) -> None:
        """Take in one run: (c,) how far it is over each usual bound, (c,) the most its bounds were moved."""
        self.n += 1
        late = excess > given
        self.debt += late - self.miss
        step = max(self.n**-0.6, STEP) * self.spread
        # Late ones raise it by more while more were late than allowed: that is made up for.
        step = np.where(late, step * (1 + np.maximum(self.debt, 0.0) / DEBT), step)
        self.extra = np.maximum(self.extra + step * (late - self.miss), 0.0)
        off = abs(float(excess[0] - self.extra[0]))
        self.spread = max(self.spread + SLOWEST * (min(off, 10 * self.spread) - self.spread), 1.0)


@dataclass(frozen=True, eq=False)
class UsualLevels:
    """Usual levels of the names of one kind, each field (names,) in standard deviations. unsure: standard
    error of the level. noise: spread of the name's errors, at least that of all. freedom: that of `noise`."""

    level: np.ndarray
    unsure: np.ndarray
    noise: np.ndarray
    freedom: np.ndarray

    def __post_init__(self) -> None:
        shapes = {array.shape for array in (self.level, self.unsure, self.noise, self.freedom)}
        if len(shapes) > 1 or self.level.ndim != 1:
            raise ValueError(f"usual levels of shape {sorted(shapes)}")


def usual_levels(
    errors: np.ndarray, keys: Sequence[np.ndarray], sizes: Sequence[int]
) -> list[UsualLevels]:
    """Estimate the usual level of each name, kind by kind, the wider kinds first.

    Means, shrunken towards 0 by how much more they differ than their runs let them (empirical Bayes, the
    variance between names by moments); so are spreads, towards that of all.

    errors: (n,) normal scores; one that is not finite tells nothing. keys: of each kind (n,) codes.
    sizes: names of each kind.
    """
    rest, levels = np.clip(np.where(np.isfinite(errors), errors, 0.0), -MOST_OFF, MOST_OFF), []
    left = float(len(rest))  # degrees of freedom
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
        levels.append(UsualLevels(level, unsure, np.ones(size), n.astype(float)))
        rest, left = rest - level[key], left - float((n / (n + by)).sum())
    left = max(left, len(rest) / 4)
    within = max(float(rest @ rest) / left, LEAST_NOISE**2) if len(rest) else 1.0
    wild = float(np.var(rest**2)) if len(rest) else 0.0
    for place, key in enumerate(keys):
        n = levels[place].freedom
        own = np.bincount(key, rest**2, len(n))
        # By how much the names' variances differ beyond what their runs let them, by moments.
        known = n > 0
        apart = (own[known] / n[known] - within) ** 2 - wild / n[known]
        prior = (
            2 * within**2 / max(float(np.average(apart, weights=n[known])), 1e-9)
            if known.any()
            else 0
        )
        prior = max(min(prior, MOST_SHRINKAGE, left), SHRINKAGE)
        noise = np.sqrt(np.maximum((own + prior * within) / (n + prior), within))
        levels[place] = replace(
            levels[place], noise=noise, freedom=n * left / max(len(rest), 1) + prior
        )
    return levels
