"""What a live run will use, given what it has used so far: `forecast.given(trace).at(time_seconds)`.

Runs of one workload differ, and what one of them did in its last samples says which of the others it is
like now: in which phase, in which mode, how far. Donors are moments of the recorded runs, weighed by how
often a forest on the run so far sorts them together with this one; what they did next is what may come. It
works on the components' ranks, so that glitches, zeros and heavy tails do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from jostle.data import Trace, is_level
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.usage.distributions._distribution import Distribution, Limits, corrected
from jostle.usage.limits._likeness import Unlikeness, unlikeness
from jostle.usage.live._shown_so_far import ForestOfMoments, Past
from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.snapshots._snapshots import Snapshots, rates_at

ANYONE = 0.005  # the share of all runs at the same time, alike or not
MOST_MOMENTS = 6000  # that are learned from
ENDED = -0.5  # stands for the rank of a run that has ended
FEWEST_RUNS = 4


@dataclass(frozen=True, eq=False)
class Horizon:
    """What was learned for so many samples ahead, from these moments (m,) of runs (m,)."""

    runs: np.ndarray
    moments: np.ndarray
    forest: ForestOfMoments


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
        self._past = Past(ranks)
        self._shown = self._past.is_known & ~self._ended
        self._outcome = np.where(self._ended[:, :, None], ENDED, ranks)
        self._has_outcome = np.asarray(np.isfinite(self._outcome).all(axis=2))
        self._nothing = Cloud.of(np.zeros((1, len(self.components))))
        self._horizons: dict[int, Horizon] = {}
        self._seen = np.full((len(self._times), len(self.components)), np.nan)
        self._now: float | None = None

    def anew(self) -> LiveForecast:
        """Start over for another run: from the same recorded ones, with nothing seen."""
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
        """Return one more sample that ended at `time_seconds` since the run began; counts over it (levels
        as they are), NaN or absent where not counted. Returns itself. Raises BadData, UsageError."""
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
        """Return all samples of a trace at once. Raises BadData for one without any of the components."""
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
        """Return the distribution at a time to come. Raises UsageError for one that is past or outside the
        data."""
        here, ahead = self._steps(time_seconds)
        horizon, weights = self._weighed(here, ahead)
        going = (weights > 0) & ~self._ended[horizon.runs, horizon.moments + ahead]
        cloud, idle = self._nothing, 1.0
        if going.any():
            states = self._states[horizon.runs, horizon.moments + ahead][going]
            cloud = Cloud.of(states, weights[going]).merged
            idle = min(1.0, float(1 - weights[going].sum()))
        law = Distribution.of(cloud, self.components, "given", idle_ratio=max(idle, 0.0))
        return replace(law, time_seconds=time_seconds, runs=len(self._states))

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
        horizon, weights = self._weighed(here, ahead)
        path = horizon.moments[:, None] + np.arange(1, ahead + 1)
        states = self._states[horizon.runs[:, None], path][:, :, columns]
        over = (states > np.array(list(limits.values()))).any(axis=(1, 2))
        share = float(weights @ over)
        return float(corrected(min(share, 1.0), len(self._states), nothing.prior))

    def unlikeness(self, components: Sequence[str] = ()) -> Unlikeness:
        """Return how unlike the recorded runs that came as far it has been so far; components: by which
        alone."""
        here, _ = self._steps(self.now_seconds + 2 * self._slack)
        columns = [self.components.index(name) for name in components or self.components]
        as_far = ~self._ended[:, here]
        states = self._states[as_far][:, : here + 1, columns]
        return unlikeness(states, self._seen[: here + 1, columns])

    def _steps(self, time_seconds: float, *, whole: bool = False) -> tuple[int, int]:
        """Return the snapshot seen last, and how many further that nearest to a time is, 1 at least.
        whole: not the nearest, but the last until then."""
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

    def _weighed(self, here: int, ahead: int) -> tuple[Horizon, np.ndarray]:
        """Recorded moments, and how much each (m,) says of a time so many samples ahead; sum 1."""
        horizon = self._horizon(ahead)
        seen = Past(self._ranked(self._seen[None, : here + 1]))
        shown = seen.shown(np.array([-1]), np.array([here]), len(self._times))
        same = horizon.moments == here
        anyone = same / same.sum() if same.any() else np.full(len(same), 1 / len(same))
        weights = (1 - ANYONE) * horizon.forest.weights(shown[0]) + ANYONE * anyone
        return horizon, weights / weights.sum()

    def _horizon(self, ahead: int) -> Horizon:
        if ahead not in self._horizons:
            self._horizons[ahead] = self._learned(ahead)
        return self._horizons[ahead]

    def _learned(self, ahead: int) -> Horizon:
        """Return a forest for so many samples ahead. Raises NotEnoughRuns where no run is known so far
        ahead."""
        runs, moments = np.nonzero(self._shown[:, :-ahead] & self._has_outcome[:, ahead:])
        if not len(runs):
            raise NotEnoughRuns("no recorded run is known so far ahead")
        if len(runs) > MOST_MOMENTS:
            random = np.random.default_rng([self._seed, ahead])
            sample = np.sort(random.choice(len(runs), MOST_MOMENTS, replace=False))
            runs, moments = runs[sample], moments[sample]
        shown = self._past.shown(runs, moments, len(self._times))
        forest = ForestOfMoments(shown, self._outcome[runs, moments + ahead], self._seed)
        return Horizon(runs, moments, forest)

    def _ranked(self, states: np.ndarray) -> np.ndarray:
        """Return the same as ranks among all recorded values, from 0 to 1; ties have their middle, NaN
        stays."""
        ranks = np.full(states.shape, np.nan)
        for column, values in enumerate(self._sorted):
            known = np.isfinite(states[..., column])
            values_here = states[..., column][known]
            low, high = (np.searchsorted(values, values_here, side=s) for s in ("left", "right"))
            ranks[..., column][known] = (low + high) / (2 * max(len(values), 1))
        return ranks


def histories(snapshots: Snapshots, core: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (R, s, d) states of every run, NaN where not known, and (R, s) whether it had ended."""
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
