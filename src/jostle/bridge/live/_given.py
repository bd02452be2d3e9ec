"""What a live run will use, given what it has used so far: `forecast.given(trace).at(time_seconds)`.

Runs of one workload differ, and what one of them did in its last samples says which of the others it is
like now: in which phase, in which mode, how far. So donors are moments of the recorded runs, weighed by a
kernel of how alike their own last samples were (Nadaraya, Theory of Probability 9, 1964; analogue
forecasting: Lorenz, J. Atmospheric Sciences 26, 1969), and what the donors did next is the forecast:
measured states only.
Likeness is of the components' ranks, averaged over the last 1, 3 and 9 samples, so that glitches, zeros and
heavy tails do not matter. How wide the kernel is, and how far in time donors may be, is what forecasts
held-out recorded runs best (continuous ranked probability score of the ranks), for near and far times each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import product

import numpy as np

from jostle.bridge.answers._distribution import Distribution, Limits, corrected
from jostle.bridge.limits._likeness import Unlikeness, unlikeness
from jostle.bridge.live._prognosis import Past, Prognosis
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshots, rates_at
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.traces import Trace, is_level

SPANS = (1, 3, 9)  # last samples that are averaged
WIDTHS = (1.0, 0.2, 0.1, 0.05, 0.02, 0.01)  # of the kernel, in ranks from 0 to 1
AWAY = (0.0, 0.02, 0.1, 1.0)  # of the time of all runs: how far from now a donor's moment may be
AHEAD = (1, 5, 20)  # samples: for each its own width and time
NEAREST, PART = 15, 10  # so many donors count for certain, however unlike, or this part of few
ANYONE = 0.02  # the share of all runs at the time asked about, alike or not
MOST = 2000  # donors
LIKEST = 600  # donors of whom the same is expected
TRIED = 80  # moments of recorded runs on which the width is chosen
ENDED = -0.5  # stands for the rank of a run that has ended
AS_GOOD = 1.003  # times the best score
FEWEST_RUNS = 4
FEWEST_MOMENTS = 200  # to learn from what is to be expected
Settings = tuple[float, float]
EXPECTED = -1.0  # instead of a distance in time: donors are those of whom the same is expected
CLEARLY = 0.99  # times the score of the other way to find donors


class LiveForecast:
    """Forecasts for one run that goes on. Made by `Forecast.given`; `see` adds samples.

    A question takes a few milliseconds. Raises UsageError for a forecast without the runs' identities.
    """

    def __init__(self, snapshots: Snapshots, core: int = 0, *, seed: int = 0) -> None:
        self.snapshots, self.core = snapshots, core
        self.components = snapshots.components
        self._times = snapshots.times_seconds
        self._states, self._ended = histories(snapshots, core)
        self._sorted = [_sorted_values(self._states[:, :, c]) for c in range(self._states.shape[2])]
        self._ranks = self._ranked(self._states)
        self._features = _features(self._ranks)
        self._shown = np.isfinite(self._features).any(axis=2) & ~self._ended
        self._has_state = np.isfinite(self._states).all(axis=2) | self._ended
        self._slack = 1e-6 * float(np.median(np.diff(self._times)))
        self._slack += 2 * float(np.spacing(np.abs(self._times).max()))
        random = np.random.default_rng(seed)
        self._past = Past(self._ranks)
        self._outcome = np.where(self._ended[:, :, None], ENDED, self._ranks)
        self._prognoses = {ahead: self._prognosis(ahead, random) for ahead in AHEAD}
        self._settings = {ahead: self._best(ahead, random) for ahead in AHEAD}
        self._seen = np.full((len(self._times), len(self.components)), np.nan)
        self._now: float | None = None

    def anew(self) -> LiveForecast:
        """For another run: from the same recorded ones, with nothing seen."""
        other = copy(self)
        other._seen, other._now = np.full_like(self._seen, np.nan), None
        return other

    @property
    def now_seconds(self) -> float:
        """The end of the last sample seen. Raises UsageError before the first."""
        if self._now is None:
            raise UsageError(
                "the live run has shown nothing yet", fix="Give its trace, or `see` a sample."
            )
        return self._now

    def see(
        self, time_seconds: float, counters: Mapping[str, float], *, interval_seconds: float
    ) -> LiveForecast:
        """One more sample that ended at `time_seconds` since the run began; counts over it (levels as they
        are), NaN or absent where not counted. Returns itself. Raises BadData, UsageError."""
        if not (
            np.isfinite(time_seconds) and interval_seconds > 0 and np.isfinite(interval_seconds)
        ):
            raise BadData(f"a sample of {interval_seconds} s that ends at {time_seconds} s is none")
        if self._now is not None and time_seconds <= self._now:
            raise UsageError(
                f"{time_seconds:g} s is not after {self._now:g} s, which was seen last"
            )
        covered = (self._times > time_seconds - interval_seconds * (1 - 1e-6)) & (
            self._times <= time_seconds + 1e-6 * interval_seconds
        )
        for column, name in enumerate(self.components):
            value = float(counters.get(name, np.nan))
            if np.isfinite(value):
                length = 1.0 if is_level(name) else interval_seconds
                self._seen[covered, column] = value / length
            elif np.isinf(value):
                raise BadData(f"{name} is not finite", where=f"the sample at {time_seconds:g} s")
        self._now = float(time_seconds)
        return self

    def follow(self, trace: Trace) -> LiveForecast:
        """All samples of a trace at once. Raises BadData for one without any of the components."""
        if not len(trace) or not any(name in trace.counters for name in self.components):
            raise BadData(
                f"the trace so far has no sample of {', '.join(self.components)}",
                where=trace.run_id,
            )
        rates = rates_at(trace, self.components, self._times)
        self._seen = np.where(np.isfinite(rates), rates, self._seen)
        self._now = float(trace.time_seconds[-1])
        return self

    def at(self, time_seconds: float) -> Distribution:
        """The distribution at a time to come. Raises UsageError for one that is past or outside the data."""
        here, ahead = self._steps(time_seconds)
        runs, moments, weights = self._donors(here, ahead)
        states, ended = self._states[runs, moments + ahead], self._ended[runs, moments + ahead]
        going = ~ended & (weights > 0)
        idle = float(weights[ended].sum())
        if going.any():
            cloud = Cloud.of(states[going], weights[going]).merged
        else:
            cloud, idle = Cloud.of(np.zeros((1, states.shape[1]))), 1.0
        distribution = Distribution.of(cloud, self.components, "given", idle_ratio=min(idle, 1.0))
        details = {"effective_donors": 1 / float((weights**2).sum())}
        return replace(
            distribution, time_seconds=time_seconds, details=details, runs=len(self._states)
        )

    def exceedance_ratio(self, limits: Limits, within_seconds: float) -> float:
        """P(any of these components is above its limit in any sample of the next seconds).

        limits: {component: events per second}. Raises UnknownName, UsageError.
        """
        if not within_seconds > 0:
            raise UsageError(f"within {within_seconds} s is not a time to come")
        names = Distribution.of(
            Cloud.of(np.zeros((1, len(self.components)))), self.components, "given"
        )
        names.exceedance_ratio(limits)  # checks them
        columns = [names.column(name) for name in limits]
        until = min(self.now_seconds + within_seconds, float(self._times[-1]))
        here, ahead = self._steps(until, whole=True)
        runs, moments, weights = self._donors(here, ahead)
        states = self._states[runs[:, None], moments[:, None] + np.arange(1, ahead + 1)]
        over = (states[:, :, columns] > np.array(list(limits.values()))).any(axis=(1, 2))
        share = float(np.clip(weights @ over, 0.0, 1.0))
        return float(corrected(share, len(self._states), names.prior))

    def unlikeness(self, components: Sequence[str] = ()) -> Unlikeness:
        """How unlike the recorded runs that came as far it has been so far; components: by which alone."""
        here, _ = self._steps(self.now_seconds + 2 * self._slack)
        columns = [self.components.index(name) for name in components or self.components]
        as_far = ~self._ended[:, here]
        states = self._states[as_far][:, : here + 1, columns]
        return unlikeness(states, self._seen[: here + 1, columns])

    def _steps(self, time_seconds: float, *, whole: bool = False) -> tuple[int, int]:
        """The snapshot seen last, and how many further that nearest to a time is, 1 at least. whole: not the
        nearest, but the last until then."""
        now, last = self.now_seconds, float(self._times[-1])
        if not now < time_seconds <= last + self._slack:
            raise UsageError(
                f"{time_seconds:g} s is not between {now:g} s, which was seen last, and {last:g} s, where "
                "the recorded runs end",
                fix="Ask for a time to come, or record longer runs.",
            )
        here = max(int(np.searchsorted(self._times, now + self._slack, side="right")) - 1, 0)
        there = int(np.abs(self._times - time_seconds).argmin())
        if whole:
            there = int(np.searchsorted(self._times, time_seconds + self._slack, side="right")) - 1
        return here, min(max(there - here, 1), len(self._times) - 1 - here)

    def _donors(self, here: int, ahead: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(m,) runs, (m,) moments and (m,) their weights, sum 1, for a time so many snapshots ahead."""
        nearest = min(AHEAD, key=lambda known: abs(np.log(known / ahead)))
        width, away = self._settings[nearest]
        if away == EXPECTED:
            past = Past(self._ranked(self._seen[None, : here + 1]))
            expected = self._expected(nearest, ahead, past, here)
            if len(expected[0]):
                runs, moments, distance = expected
                return runs, moments, _kernels(distance, moments == here, (width,))[0]
        start = max(0, here - max(SPANS) + 1)
        own = _features(self._ranked(self._seen[None, start : here + 1]))[0, -1]
        runs, moments, distance = self._distances(own, here, ahead, max(away, 0.0))
        return runs, moments, _kernels(distance, moments == here, (width,))[0]

    def _prognosis(self, ahead: int, random: np.random.Generator) -> Prognosis | None:
        """What is to be expected so far ahead; None where too little is known to learn it from."""
        if ahead >= len(self._times):
            return None
        outcome = self._outcome[:, ahead:]
        able = self._shown[:, :-ahead] & np.isfinite(outcome).all(axis=2)
        if able.sum() < FEWEST_MOMENTS:
            return None
        return Prognosis(self._past, outcome, able, len(self._times), random)

    def _expected(
        self, learned: int, ahead: int, past: Past, here: int, run: int = -1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """As `_distances`, by what the regression for `learned` samples ahead expects; none where there is no
        such regression. run: a recorded run, which is no donor for itself."""
        prognosis = self._prognoses[learned]
        if prognosis is None:
            return np.zeros(0, int), np.zeros(0, int), np.zeros(0)
        own = prognosis.of(past, run, here)
        runs, moments, expected = prognosis.runs, prognosis.moments, prognosis.expected
        gap = expected - own
        distance = np.einsum("mc,mc->m", gap, gap) / len(own)
        distance[(moments + ahead >= len(self._times)) | (runs == run)] = np.inf
        if len(distance) > LIKEST:
            nearest = np.argpartition(distance, LIKEST)[:LIKEST]
            runs, moments, distance = runs[nearest], moments[nearest], distance[nearest]
        able = np.isfinite(distance)
        runs, moments, distance = runs[able], moments[able], distance[able]
        has_outcome = np.isfinite(self._outcome[runs, moments + ahead]).all(axis=1)
        return runs[has_outcome], moments[has_outcome], distance[has_outcome]

    def _distances(
        self, own: np.ndarray, here: int, ahead: int, away: float, but: int = -1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(m,) runs and (m,) moments that are known so far ahead, and (m,) how unlike they are; but: a run
        that is no donor."""
        s = len(self._times)
        reach = int(away * s)
        first, last = max(here - reach, 0), min(here + reach, s - 1 - ahead)
        span, later = slice(first, last + 1), slice(first + ahead, last + 1 + ahead)
        able = self._shown[:, span] & self._has_state[:, later]
        if but >= 0:
            able[but] = False
        places = np.flatnonzero(able)
        if not len(places):
            raise NotEnoughRuns("no recorded run is known so far ahead")
        if len(places) > MOST:
            random = np.random.default_rng([here, ahead])
            places = places[random.choice(len(places), MOST, replace=False)]
        runs, moments = np.divmod(places, able.shape[1])
        moments = moments + first
        gap = (self._features[runs, moments] - own) ** 2
        shared = np.isfinite(gap)
        if shared.all():
            return runs, moments, gap @ np.full(len(own), 1 / len(own))
        count = shared.sum(axis=1)
        distance = np.where(shared, gap, 0.0).sum(axis=1) / np.maximum(count, 1)
        return runs, moments, np.where(count > 0, distance, 1.0)

    def _best(self, ahead: int, random: np.random.Generator) -> Settings:
        """Width and time with the least error on moments of recorded runs, each without its own run."""
        known = np.asarray(np.isfinite(self._ranks).all(axis=2))
        outcome = self._outcome
        has_outcome = np.asarray(np.isfinite(outcome).all(axis=2))
        able = np.argwhere(known[:, :-ahead] & has_outcome[:, ahead:])
        scores = dict.fromkeys(product(WIDTHS, (*AWAY, EXPECTED)), 0.0)
        if not len(able):
            return 0.1, AWAY[0]
        for run, here in able[random.permutation(len(able))[:TRIED]].tolist():
            own, truth = self._features[run, here], outcome[run, here + ahead]
            for away in (*AWAY, EXPECTED):
                try:
                    if away == EXPECTED:
                        expected = self._expected(ahead, ahead, self._past, here, run)
                    else:
                        expected = self._distances(own, here, ahead, away, run)
                    runs, moments, distance = expected
                except NotEnoughRuns:
                    runs = moments = np.zeros(0, int)
                    distance = np.zeros(0)
                ranks = outcome[runs, moments + ahead]
                complete = np.isfinite(ranks).all(axis=1)
                if not complete.any():
                    for width in WIDTHS:
                        scores[width, away] += 1.0  # as wrong as can be
                    continue
                weights = _kernels(distance, moments == here, WIDTHS)[:, complete]
                expected = _crps(ranks[complete], truth, weights)
                for width, each in zip(WIDTHS, expected.tolist(), strict=True):
                    scores[width, away] += each
        # Few moments were tried: of settings that are as good, the widest, with donors from near this time.
        by_regression = {one: scores.pop(one) for one in list(scores) if one[1] == EXPECTED}
        if min(by_regression.values()) < CLEARLY * min(scores.values()):
            scores = by_regression
        enough = AS_GOOD * min(scores.values())
        return next(settings for settings in scores if scores[settings] <= enough)

    def _ranked(self, states: np.ndarray) -> np.ndarray:
        """The same as ranks among all recorded values, from 0 to 1; ties have their middle, NaN stays."""
        ranks = np.full(states.shape, np.nan)
        for column, values in enumerate(self._sorted):
            known = np.isfinite(states[..., column])
            values_here = states[..., column][known]
            low, high = (np.searchsorted(values, values_here, side=s) for s in ("left", "right"))
            ranks[..., column][known] = (low + high) / (2 * max(len(values), 1))
        return ranks


def _kernels(distance: np.ndarray, same: np.ndarray, widths: Sequence[float]) -> np.ndarray:
    """(widths, m) weights of donors, each row's sum 1; same: whether their moment is that asked about."""
    nth = min(NEAREST, max(len(distance) // PART, 1)) - 1
    least = max(float(np.partition(distance, nth)[nth]), 1e-12)
    spread = np.maximum(np.square(widths), least)
    weights = np.exp(np.outer(-0.5 / spread, distance - distance.min()))
    weights /= weights.sum(axis=1, keepdims=True)
    anyone = same / same.sum() if same.any() else np.full(len(same), 1 / len(same))
    return (1 - ANYONE) * weights + ANYONE * anyone


def _sorted_values(values: np.ndarray) -> np.ndarray:
    return np.sort(values[np.isfinite(values)])


def histories(snapshots: Snapshots, core: int) -> tuple[np.ndarray, np.ndarray]:
    """(R, s, d) states of every run, NaN where not known, and (R, s) whether it had ended."""
    shots = snapshots.of(core)
    total = 1 + max((int(shot.runs.max()) for shot in shots if len(shot.runs)), default=-1)
    if total < FEWEST_RUNS or len(shots) < 2:
        raise UsageError(
            "what a live run does next follows from recorded runs, and this forecast does not know them",
            fix="Forecast from traces, not from a saved summary, with four runs and two times or more.",
        )
    ends = None if snapshots.end_seconds is None else snapshots.end_seconds[core]
    total = max(total, 0 if ends is None else len(ends))
    states = np.full((total, len(shots), len(snapshots.components)), np.nan)
    for k, shot in enumerate(shots):
        has_run = shot.runs >= 0
        if shot.idle_ratio < 1:
            states[shot.runs[has_run], k] = shot.cloud.atoms[has_run]
    ended = np.zeros(states.shape[:2], bool)
    if ends is not None:
        ended = ends[:, None] < snapshots.times_seconds
    return states, ended


def _features(ranks: np.ndarray) -> np.ndarray:
    """(R, s, d * len(SPANS)) means of the last samples; NaN where none of them is known."""
    known = np.isfinite(ranks)
    sums = np.cumsum(np.where(known, ranks, 0.0), axis=1)
    counts = np.cumsum(known, axis=1).astype(float)
    parts = []
    for span in SPANS:
        total, number = sums.copy(), counts.copy()
        total[:, span:] -= sums[:, :-span]
        number[:, span:] -= counts[:, :-span]
        parts.append(np.divide(total, number, out=np.full_like(total, np.nan), where=number > 0.5))
    return np.concatenate(parts, axis=2)


def _crps(values: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(w,) continuous ranked probability scores of values (m, d), each row of weights (w, m), against the
    truth (d,): means over the components."""
    weights = weights / weights.sum(axis=1, keepdims=True)
    score = weights @ np.abs(values - truth).sum(axis=1)
    for column in values.T:
        order = np.argsort(column)
        below = np.cumsum(weights[:, order], axis=1)[:, :-1]
        score -= (below - below * below) @ np.diff(column[order])
    return score / values.shape[1]
