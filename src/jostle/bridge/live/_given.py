"""What a live run will use, given what it has used so far: `forecast.given(trace).at(time_seconds)`.

Runs of one workload differ, and what one of them did in its last samples says which of the others it is
like now: in which phase, in which mode, how far. Donors are moments of the recorded runs; what they did next
is what may come. Several experts weigh them: kernels of how alike the last samples were, at this time or any
(Nadaraya, Theory of Probability 9, 1964; analogue forecasting: Lorenz, J. Atmospheric Sciences 26, 1969), and
kernels of how alike what is to be expected is, by each regression of `_experts`, whose outcomes are taken as
they are or moved to what is expected here; and a forest, by how often it sorts moments together. All work on
the components' ranks, so that glitches, zeros and heavy tails do not matter. The weights of experts and of
how wide their kernels are come together, from the mixture of least continuous ranked probability score on
moments of recorded runs, each without its own run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.bridge.answers._distribution import Distribution, Limits, corrected
from jostle.bridge.limits._likeness import Unlikeness, unlikeness
from jostle.bridge.live._experts import (
    Expectation,
    ForestKernel,
    Past,
    fits,
    has_trees,
    in_own_units,
    line,
    moved,
    newest,
)
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._simplex import on_simplex
from jostle.bridge.problem._snapshots import Snapshots, rates_at
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.traces import Trace, is_level

WIDTHS = (0.2, 0.05, 0.0)  # of kernels, in ranks from 0 to 1: each no narrower than NEAREST donors
AWAY = {"now": 0.02, "ever": 1.0}  # of the time of all runs: how far a donor's moment may be
FOREST = "forest"
NEAREST, PART = 15, 10  # so many donors count for certain, however unlike, or this part of few
ANYONE = 0.005  # the share of all runs at the time asked about, alike or not
LIKEST = 600  # donors
MOST_MOMENTS = 6000  # that are learned from
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
    """Moments (m,) of runs (m,), and what they did next as ranks (m, d); how unlike they are (m,), or how
    much each weighs."""

    runs: np.ndarray
    moments: np.ndarray
    outcome: np.ndarray
    distance: np.ndarray | None = None
    weights: np.ndarray | None = None
    is_moved: bool = False


View = dict[str, np.ndarray]
"""What moments showed, to each expert: (m, …) tables of which likeness is taken."""


@dataclass(eq=False)
class Horizon:
    """What was learned for so many samples ahead, from these moments (m,) of runs (m,). weights: {(expert,
    width): share}, sum 1."""

    ahead: int
    runs: np.ndarray
    moments: np.ndarray
    straight: Expectation | None = None
    expectations: dict[str, Expectation] = field(default_factory=dict)
    forest: ForestKernel | None = None
    weights: Mapping[tuple[str, float], float] = field(default_factory=dict)
    view: View = field(default_factory=dict)


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
        self._sorted = [np.sort(one[np.isfinite(one)]) for one in np.moveaxis(self._states, 2, 0)]
        ranks = self._ranked(self._states)
        self._slack = 1e-6 * float(np.median(np.diff(self._times)))
        self._slack += 2 * float(np.spacing(np.abs(self._times).max()))
        # What is straight in values is not in ranks; glitches count as the largest usual values.
        self._usual = np.nanquantile(self._states, USUAL, axis=(0, 1))
        self._pasts = Past(ranks), Past(np.clip(self._states, *self._usual))
        self._shown = self._pasts[0].is_known & ~self._ended
        self._outcome = np.where(self._ended[:, :, None], ENDED, ranks)
        self._has_outcome = np.asarray(np.isfinite(self._outcome).all(axis=2))
        self._nothing = Cloud.of(np.zeros((1, len(self.components))))
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
        cloud = Cloud.of(every[going], mass[going]).merged if going.any() else self._nothing
        idle = min(idle, 1.0) if going.any() else 1.0
        distribution = Distribution.of(cloud, self.components, "given", idle_ratio=idle)
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
        nothing = Distribution.of(self._nothing, self.components, "given")
        nothing.exceedance_ratio(limits)  # checks them
        columns = [self.components.index(name) for name in limits]
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
        return float(corrected(min(share, 1.0), len(self._states), nothing.prior))

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
        seen = self._seen[None, : here + 1]
        pasts = Past(self._ranked(seen)), Past(np.clip(seen, *self._usual))
        view = self._view(horizon, pasts, np.array([-1]), np.array([here]))
        own = {name: table[0] for name, table in view.items()}
        out = []
        for name in dict.fromkeys(name for name, _ in horizon.weights):
            donors = self._donors(name, horizon, here, own)
            if donors is not None:
                widths = [width for other, width in horizon.weights if other == name]
                shares = np.array([horizon.weights[name, width] for width in widths])
                out.append((donors, shares @ _kernels(donors, here, widths)))
        if not out:
            raise NotEnoughRuns("no recorded run is known so far ahead")
        total = sum(float(weights.sum()) for _, weights in out)
        return [(donors, weights / total) for donors, weights in out]

    def _horizon(self, ahead: int) -> Horizon:
        if ahead not in self._horizons:
            self._horizons[ahead] = self._learned(ahead)
        return self._horizons[ahead]

    def _learned(self, ahead: int) -> Horizon:
        """Regressions for so many samples ahead, and the weights of all experts."""
        random = np.random.default_rng([self._seed, ahead])
        runs, moments = np.nonzero(self._shown[:, :-ahead] & self._has_outcome[:, ahead:])
        if len(runs) > MOST_MOMENTS:
            sample = np.sort(random.choice(len(runs), MOST_MOMENTS, replace=False))
            runs, moments = runs[sample], moments[sample]
        horizon = Horizon(ahead, runs, moments)
        is_learned = len(runs) >= FEWEST_MOMENTS
        horizon.view = self._view(horizon, self._pasts, runs, moments, is_learned)
        names = [
            *AWAY,
            *(f"{name}{how}" for name in horizon.expectations for how in ("", " moved")),
        ]
        every = [(name, width) for name in names for width in WIDTHS]
        every += [(FOREST, 0.0)] if horizon.forest is not None else []
        horizon.weights = dict.fromkeys(every, 1 / len(every))
        tried = random.permutation(len(runs))[:TRIED]
        if not len(tried):
            return horizon
        laws, truths = [], []
        for place in tried.tolist():
            run, here = int(runs[place]), int(moments[place])
            table = np.zeros((len(every), len(GRID) * len(self.components)))
            own = {name: values[place] for name, values in horizon.view.items()}
            for name in dict.fromkeys(name for name, _ in every):
                donors = self._donors(name, horizon, here, own, run)
                if donors is not None:
                    part = [row for row, (other, _) in enumerate(every) if other == name]
                    below = donors.outcome[:, None, :] <= GRID[:, None]
                    shares = _kernels(donors, here, [every[row][1] for row in part])
                    table[part] = shares @ below.reshape(len(below), -1)
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
        horizon.weights = {one: s / total for one, s in large.items()}
        return horizon

    def _view(
        self,
        horizon: Horizon,
        pasts: tuple[Past, Past],
        runs: np.ndarray,
        moments: np.ndarray,
        is_learned: bool = False,
    ) -> View:
        """Of moments of recorded runs, or of others (-1). is_learned: experts learn from these first."""
        length, d, later = len(self._times), len(self.components), moments + horizon.ahead
        sizes = pasts[1].shown(runs, moments, length)
        if is_learned:
            values = np.where(self._ended[:, :, None], np.nan, pasts[1].values)[runs, later]
            horizon.straight = Expectation(line, sizes, values, runs)
        more: list[np.ndarray] = []
        if horizon.straight is not None:
            more = [self._ranked(horizon.straight.of(sizes, runs)[..., 0])]
            more += in_own_units(sizes, d)
        shown = pasts[0].shown(runs, moments, length, more)
        if is_learned:
            outcome = self._outcome[runs, later]
            for name, fit in fits(d).items():
                horizon.expectations[name] = Expectation(fit, shown, outcome, runs)
            horizon.forest = ForestKernel(shown, outcome, runs) if has_trees() else None
        view = {name: one.of(shown, runs) for name, one in horizon.expectations.items()}
        if horizon.forest is not None:
            view[FOREST] = horizon.forest.leaves(shown, runs)
        return view | dict.fromkeys(AWAY, shown[:, newest(d), None])

    def _donors(
        self, name: str, horizon: Horizon, here: int, own: View, run: int = -1
    ) -> Donors | None:
        """Of one expert, for a run that has shown this; run: a recorded one, which is no donor for itself.
        None where there is no donor."""
        base = name.removesuffix(" moved")
        there, runs, moments = horizon.view[base], horizon.runs, horizon.moments
        if base == FOREST:
            assert horizon.forest is not None
            weights = horizon.forest.weights(own[FOREST])
            near = np.flatnonzero(weights)
            outcome = self._outcome[runs[near], moments[near] + horizon.ahead]
            return Donors(runs[near], moments[near], outcome, weights=weights[near])
        gap = (there - own[base]).reshape(len(there), -1)
        known = np.isfinite(gap)
        gap = np.where(known, gap, 0.0)
        distance = np.einsum("mc,mc->m", gap, gap) / np.maximum(known.sum(axis=1), 1)
        distance[runs == run] = np.inf
        if base in AWAY:
            distance[np.abs(moments - here) > int(AWAY[base] * len(self._times))] = np.inf
        near = np.arange(len(distance))
        if len(distance) > LIKEST:
            near = np.argpartition(distance, LIKEST)[:LIKEST]
        near = near[np.isfinite(distance[near])]
        if not len(near):
            return None
        runs, moments, distance = runs[near], moments[near], distance[near]
        outcome = self._outcome[runs, moments + horizon.ahead]
        if name != base:
            further = np.clip(moved(outcome, there[near], own[base]), 0.0, 1.0)
            outcome = np.where(outcome == ENDED, ENDED, further)
        return Donors(runs, moments, outcome, distance, is_moved=name != base)

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
    anyone = same / same.sum() if same.any() else np.full(len(same), 1 / len(same))
    if distance is None:
        assert donors.weights is not None
        return (1 - ANYONE) * np.tile(donors.weights, (len(widths), 1)) + ANYONE * anyone
    nth = min(NEAREST, max(len(distance) // PART, 1)) - 1
    least = max(float(np.partition(distance, nth)[nth]), 1e-12)
    spread = np.maximum(np.square(widths), least)
    weights = np.exp(np.outer(-0.5 / spread, distance - distance.min()))
    weights /= weights.sum(axis=1, keepdims=True)
    return (1 - ANYONE) * weights + ANYONE * anyone


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
