"""What a live run will use, given what it has used so far: `forecast.given(trace).at(time_seconds)`.

Runs of one workload differ, and what one of them did in its last samples says which of the others it is
like now: in which phase, in which mode, how far. Donors are moments of the recorded runs; what they did next
is what may come. Several experts weigh them: kernels of how alike the last samples were, at this time or any
(Nadaraya, Theory of Probability 9, 1964; analogue forecasting: Lorenz, J. Atmospheric Sciences 26, 1969), and
kernels of how alike what is to be expected is, by each regression of `_experts`, whose outcomes are taken as
they are or moved to what is expected here. All work on the components' ranks, so that glitches, zeros and
heavy tails do not matter. The weights of experts and of how wide their kernels are come together, from the
mixture of least continuous ranked probability score on moments of recorded runs, each without its own run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from jostle.bridge.answers._distribution import Distribution, Limits, corrected
from jostle.bridge.limits._likeness import Unlikeness, unlikeness
from jostle.bridge.live._experts import Expectation, Past, fits, line, moved
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._simplex import on_simplex
from jostle.bridge.problem._snapshots import Snapshots, rates_at
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.traces import Trace, is_level

SPANS = (1, 3, 9)  # last samples that are averaged
WIDTHS = (0.2, 0.05, 0.0)  # of kernels, in ranks from 0 to 1: each no narrower than NEAREST donors
AWAY = {
    "now": 0.02,
    "ever": 1.0,
}  # of the time of all runs: how far from now a donor's moment may be
NEAREST, PART = 15, 10  # so many donors count for certain, however unlike, or this part of few
ANYONE = 0.005  # the share of all runs at the time asked about, alike or not
MOST = 2000  # donors
LIKEST = 600  # donors of whom the same is expected
MOST_MOMENTS = 6000  # that regressions learn from
TRIED = 150  # moments of recorded runs on which experts are weighed
USUAL = (0.002, 0.998)  # between these ranks values count as they are, beyond as these
ENDED = -0.5  # stands for the rank of a run that has ended
GRID = np.append(-0.25, (np.arange(40) + 0.5) / 40)  # ranks at which laws are compared
FAITH = 0.02  # of the best expert's score: how strongly weights are held to equal ones
LEAST_WEIGHT = 0.03
FEWEST_RUNS = 4
FEWEST_MOMENTS = 200  # to learn from what is to be expected


@dataclass(frozen=True, eq=False)
class Donors:
    """Moments (m,) of runs (m,), how unlike they are (m,), and what they did next as ranks (m, d)."""

    runs: np.ndarray
    moments: np.ndarray
    distance: np.ndarray
    outcome: np.ndarray
    is_moved: bool = False


@dataclass(frozen=True, eq=False)
class Horizon:
    """What was learned for so many samples ahead. weights: {(expert, width): share}, sum 1."""

    ahead: int
    runs: np.ndarray
    moments: np.ndarray
    expectations: Mapping[str, Expectation]
    weights: Mapping[tuple[str, float], float]
    straight: Expectation | None = None


class LiveForecast:
    """Forecasts for one run that goes on. Made by `Forecast.given`; `see` adds samples.

    The first question so many samples ahead learns for a second or a few, each next one takes milliseconds.
    Raises UsageError for a forecast without the runs' identities.
    """

    def __init__(self, snapshots: Snapshots, core: int = 0, *, seed: int = 0) -> None:
        self.snapshots, self.core = snapshots, core
        self.components = snapshots.components
        self._times, self._seed = snapshots.times_seconds, seed
        self._states, self._ended = histories(snapshots, core)
        self._sorted = [_sorted_values(self._states[:, :, c]) for c in range(self._states.shape[2])]
        self._ranks = self._ranked(self._states)
        self._features = _features(self._ranks)
        self._shown = np.isfinite(self._features).any(axis=2) & ~self._ended
        self._slack = 1e-6 * float(np.median(np.diff(self._times)))
        self._slack += 2 * float(np.spacing(np.abs(self._times).max()))
        self._past = Past(self._ranks)
        # What is straight in values is not in ranks; glitches count as the largest usual values.
        usual = np.nanquantile(self._states, USUAL, axis=(0, 1))
        self._usual, self._sizes = usual, np.clip(self._states, *usual)
        self._past_sizes = Past(self._sizes)
        self._outcome = np.where(self._ended[:, :, None], ENDED, self._ranks)
        self._has_outcome = np.asarray(np.isfinite(self._outcome).all(axis=2))
        self._horizons: dict[int, Horizon] = {}
        self._seen = np.full((len(self._times), len(self.components)), np.nan)
        self._now: float | None = None

    def anew(self) -> LiveForecast:
        """For another run: from the same recorded ones, with nothing seen."""
        other = copy(self)
        other._seen, other._now = np.full_like(self._seen, np.nan), None
        return other

    def learn(self, ahead_seconds: float) -> None:
        """Learn beforehand what questions so far ahead need, so that each takes milliseconds."""
        steps = ahead_seconds / float(np.median(np.diff(self._times)))
        # A run may be anywhere between two samples.
        for ahead in range(int(steps + 1e-6), int(np.ceil(steps - 1e-6)) + 2):
            if 1 <= ahead < len(self._times):
                self._horizon(ahead)

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
        states, weights, idle = [], [], 0.0
        for donors, share in self._opinions(here, ahead):
            ended = donors.outcome[:, 0] == ENDED
            idle += float(share[ended].sum())
            there = self._states[donors.runs, donors.moments + ahead]
            states.append((self._valued(donors.outcome) if donors.is_moved else there)[~ended])
            weights.append(share[~ended])
        every, mass = np.concatenate(states), np.concatenate(weights)
        going = mass > 0
        if going.any():
            cloud = Cloud.of(every[going], mass[going]).merged
        else:
            cloud, idle = Cloud.of(np.zeros((1, len(self.components)))), 1.0
        distribution = Distribution.of(cloud, self.components, "given", idle_ratio=min(idle, 1.0))
        details = {
            f"share_{name}_{width:g}": share
            for (name, width), share in self._horizon(ahead).weights.items()
        }
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
        share = 0.0
        for donors, weights in self._opinions(here, ahead):
            path = donors.moments[:, None] + np.arange(1, ahead + 1)
            states = self._states[donors.runs[:, None], path]
            if donors.is_moved:
                # As much further at every sample as at the last one.
                more = self._valued(donors.outcome) - states[:, -1]
                states = states + np.where(np.isfinite(more), more, 0.0)[:, None]
            over = (states[:, :, columns] > np.array(list(limits.values()))).any(axis=(1, 2))
            share += float(weights @ over)
        return float(corrected(min(share, 1.0), len(self._states), names.prior))

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

    def _opinions(self, here: int, ahead: int) -> list[tuple[Donors, np.ndarray]]:
        """Donors of each expert with their weights (m,), all of sum 1, for a time so many samples ahead."""
        horizon = self._horizon(ahead)
        own = Past(self._ranked(self._seen[None, : here + 1]))
        start = max(0, here - max(SPANS) + 1)
        features = _features(self._ranked(self._seen[None, start : here + 1]))[0, -1]
        none, place = np.array([-1]), (np.zeros(1, int), np.array([here]), len(self._times))
        more = None
        if horizon.straight is not None:
            sizes = Past(np.clip(self._seen[None, : here + 1], *self._usual))
            more = self._ranked(horizon.straight.of(sizes.shown(*place), none)[..., 0])
        shown = own.shown(*place, more)
        used = {name.removesuffix(" moved") for name, _ in horizon.weights} - set(AWAY)
        expected = {name: horizon.expectations[name].of(shown, none)[0] for name in used}
        out = []
        for name in dict.fromkeys(name for name, _ in horizon.weights):
            donors = self._donors(name, horizon, here, ahead, features, expected)
            if donors is None:
                continue
            widths = [width for other, width in horizon.weights if other == name]
            shares = np.array([horizon.weights[name, width] for width in widths])
            out.append((donors, shares @ _kernels(donors, here, widths)))
        total = sum(float(weights.sum()) for _, weights in out)
        if not out:
            raise NotEnoughRuns("no recorded run is known so far ahead")
        return [(donors, weights / total) for donors, weights in out]

    def _horizon(self, ahead: int) -> Horizon:
        if ahead not in self._horizons:
            self._horizons[ahead] = self._learned(ahead)
        return self._horizons[ahead]

    def _learned(self, ahead: int) -> Horizon:
        """Regressions for so many samples ahead, and the weights of all experts."""
        random = np.random.default_rng([self._seed, ahead])
        able = self._shown[:, :-ahead] & self._has_outcome[:, ahead:]
        runs, moments = np.nonzero(able)
        expectations: dict[str, Expectation] = {}
        straight = None
        if len(runs) > MOST_MOMENTS:
            sample = np.sort(random.choice(len(runs), MOST_MOMENTS, replace=False))
            runs, moments = runs[sample], moments[sample]
        if len(runs) >= FEWEST_MOMENTS:
            sizes = self._past_sizes.shown(runs, moments, len(self._times))
            later = np.where(self._ended[:, :, None], np.nan, self._sizes)[runs, moments + ahead]
            straight = Expectation(line, sizes, later, runs)
            ranked = self._ranked(straight.expected[..., 0])
            shown = self._past.shown(runs, moments, len(self._times), ranked)
            outcome = self._outcome[runs, moments + ahead]
            for name, fit in fits(len(self.components), random).items():
                expectations[name] = Expectation(fit, shown, outcome, runs)
        names = [*AWAY, *(f"{one}{how}" for one in expectations for how in ("", " moved"))]
        every = [(name, width) for name in names for width in WIDTHS]
        equal = dict.fromkeys(every, 1 / len(every))
        horizon = Horizon(ahead, runs, moments, expectations, equal, straight)
        tried = random.permutation(len(runs))[:TRIED]
        if not len(tried):
            return horizon
        own = {name: one.expected[tried] for name, one in expectations.items()}
        laws, truths = [], []
        for row, place in enumerate(tried.tolist()):
            run, here = int(runs[place]), int(moments[place])
            expected = {name: values[row] for name, values in own.items()}
            table = np.zeros((len(every), len(GRID) * len(self.components)))
            for number, name in enumerate(names):
                donors = self._donors(
                    name, horizon, here, ahead, self._features[run, here], expected, run
                )
                if donors is not None:
                    below = donors.outcome[:, None, :] <= GRID[:, None]
                    part = slice(number * len(WIDTHS), (number + 1) * len(WIDTHS))
                    table[part] = _kernels(donors, here, WIDTHS) @ below.reshape(len(below), -1)
            laws.append(table)
            truths.append((self._outcome[run, here + ahead] <= GRID[:, None]).ravel())
        table, truth = np.concatenate(laws, axis=1), np.concatenate(truths).astype(float)
        # Of the mixture w: the mean of (w'table - truth)^2.
        size = table.shape[1]
        slope, curve = -2 * (table @ truth) / size, 2 * (table @ table.T) / size
        alone = slope + np.diag(curve) / 2 + float(truth @ truth) / size
        faith = FAITH * float(alone.min())
        shares = on_simplex(slope, curve, np.full(len(every), 1 / len(every)), faith)
        least = min(LEAST_WEIGHT, float(shares.max()))
        large = {one: s for one, s in zip(every, shares.tolist(), strict=True) if s >= least}
        total = sum(large.values())
        return replace(horizon, weights={one: s / total for one, s in large.items()})

    def _donors(
        self,
        name: str,
        horizon: Horizon,
        here: int,
        ahead: int,
        features: np.ndarray,
        expected: Mapping[str, np.ndarray],
        run: int = -1,
    ) -> Donors | None:
        """Of one expert, for a run that has shown such features and of which this is expected; run: a
        recorded one, which is no donor for itself. None where there is no donor."""
        if name in AWAY:
            return self._alike(features, here, ahead, AWAY[name], run)
        regression = name.removesuffix(" moved")
        there, own = horizon.expectations[regression].expected, expected[regression]
        runs, moments = horizon.runs, horizon.moments
        gap = (there - own).reshape(len(there), -1)
        distance = np.einsum("mc,mc->m", gap, gap) / gap.shape[1]
        distance[(moments + ahead >= len(self._times)) | (runs == run)] = np.inf
        nearest = np.arange(len(distance))
        if len(distance) > LIKEST:
            nearest = np.argpartition(distance, LIKEST)[:LIKEST]
        nearest = nearest[np.isfinite(distance[nearest])]
        nearest = nearest[self._has_outcome[runs[nearest], moments[nearest] + ahead]]
        if not len(nearest):
            return None
        runs, moments, distance = runs[nearest], moments[nearest], distance[nearest]
        outcome = self._outcome[runs, moments + ahead]
        is_moved = name != regression
        if is_moved:
            further = np.clip(moved(outcome, there[nearest], own), 0.0, 1.0)
            outcome = np.where(outcome == ENDED, ENDED, further)
        return Donors(runs, moments, distance, outcome, is_moved)

    def _alike(
        self, own: np.ndarray, here: int, ahead: int, away: float, run: int
    ) -> Donors | None:
        """Moments that are known so far ahead, by how unlike their last samples were."""
        s = len(self._times)
        reach = int(away * s)
        first, last = max(here - reach, 0), min(here + reach, s - 1 - ahead)
        span, later = slice(first, last + 1), slice(first + ahead, last + 1 + ahead)
        able = self._shown[:, span] & self._has_outcome[:, later]
        if run >= 0:
            able[run] = False
        places = np.flatnonzero(able)
        if not len(places):
            return None
        if len(places) > MOST:
            random = np.random.default_rng([here, ahead])
            places = places[random.choice(len(places), MOST, replace=False)]
        runs, moments = np.divmod(places, able.shape[1])
        moments = moments + first
        gap = (self._features[runs, moments] - own) ** 2
        count = np.isfinite(gap).sum(axis=1)
        distance = np.where(np.isfinite(gap), gap, 0.0).sum(axis=1) / np.maximum(count, 1)
        distance = np.where(count > 0, distance, 1.0)
        return Donors(runs, moments, distance, self._outcome[runs, moments + ahead])

    def _valued(self, ranks: np.ndarray) -> np.ndarray:
        """States (m, d) of such ranks, between recorded values."""
        values = np.empty(ranks.shape)
        for column, known in enumerate(self._sorted):
            place = ranks[:, column] * len(known) - 0.5
            values[:, column] = np.interp(place, np.arange(len(known)), known)
        return values

    def _ranked(self, states: np.ndarray) -> np.ndarray:
        """The same as ranks among all recorded values, from 0 to 1; ties have their middle, NaN stays."""
        ranks = np.full(states.shape, np.nan)
        for column, values in enumerate(self._sorted):
            known = np.isfinite(states[..., column])
            values_here = states[..., column][known]
            low, high = (np.searchsorted(values, values_here, side=s) for s in ("left", "right"))
            ranks[..., column][known] = (low + high) / (2 * max(len(values), 1))
        return ranks


def _kernels(donors: Donors, here: int, widths: Sequence[float]) -> np.ndarray:
    """(widths, m) weights of donors, each row's sum 1."""
    distance, same = donors.distance, donors.moments == here
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
