"""The use of several workloads that began at different times, on one clock, and that slow each other down.

Two things make it more than a sum of forecasts as in `_sum_of_workloads`. Members start at times of their
own. And they slow each other down: one that is r times slower is at time t where it would be at t / r alone,
and its rates are 1 / r of those (levels stay).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.data import is_level
from jostle.errors import NotEnoughRuns, UsageError
from jostle.usage.distributions._distribution import Distribution
from jostle.usage.distributions._sum_of_workloads import (
    Addend,
    common_components,
    draws_together,
    rows_side_by_side,
)
from jostle.usage.live._conditioned_forecast import histories
from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.snapshots._shared_windows import FEWEST_WINDOWS
from jostle.usage.snapshots._thin import few

if TYPE_CHECKING:
    from jostle.usage.forecasting._forecast import Forecast

SIZE = 8000  # draws
MOST_ATOMS = 500  # of a law that is added
_SLACK = 1e-9
Slowdowns = Callable[[Sequence[int]], Sequence[float]]
"""Of the members that run, by their numbers: how many times slower each is than alone."""


@dataclass(frozen=True, eq=False)
class Joining:
    """One workload of several. start_seconds: when it starts, on the common clock."""

    forecast: Forecast
    start_seconds: float = 0.0
    core: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "core", self.forecast.snapshots.core_of(self.core))


class Together:
    """The demand of several members together: `at(time_seconds).exceedance_ratio(capacities)`.

    members: forecasts, or Members of the same components. dependence: `independent`, or `measured`, from
    windows that all members share; by default as measured where they share enough. slowdowns: one number for
    each member, or a function of the numbers of those that run, such as a model's answer. size: draws.
    Raises UsageError, BadData, NotEnoughRuns for fewer than 8 windows in common.
    """

    def __init__(
        self,
        members: Sequence[Joining | Forecast],
        *,
        dependence: str | None = None,
        slowdowns: Sequence[float] | Slowdowns | None = None,
        size: int = SIZE,
        seed: int = 0,
    ) -> None:
        if not members:
            raise UsageError("no members to take together")
        self.members = [one if isinstance(one, Joining) else Joining(one) for one in members]
        self.components = common_components([one.forecast.components for one in self.members])
        for one in self.members:
            if not np.isfinite(one.start_seconds):
                raise UsageError(f"{one.start_seconds} is not a time to start at")
        if size < 1:
            raise UsageError(f"a sample cannot have {size} atoms")
        self._slowdowns = _checked(slowdowns, len(self.members))
        self._size, self._seed = size, seed
        if dependence not in (None, "independent", "measured"):
            raise UsageError(
                f"the dependence {dependence!r} is not known", fix="Give independent or measured."
            )
        self._rows = _common(self.members)
        if dependence == "measured" and not len(self._rows):
            raise NotEnoughRuns(
                f"the members do not share {FEWEST_WINDOWS} windows, which are needed",
                fix="Trace them side by side, forecast from traces, or take them as independent.",
            )
        if dependence == "independent":
            self._rows = self._rows[:0]

    @property
    def dependence(self) -> str:
        """Dependence of the workloads: `measured` or `independent`."""
        return "measured" if len(self._rows) else "independent"

    def at(self, time_seconds: float) -> Distribution:
        """Return the law of the sum at a time of the common clock, all components jointly. Raises
        UsageError where a member's own time lies outside its data."""
        if not np.isfinite(time_seconds):
            raise UsageError(f"{time_seconds} is not a time")
        progress, ratios = self._progress(time_seconds)
        random = np.random.default_rng(self._seed)
        if len(self._rows):
            warnings: list[str] = []
            parts, rows = self._side_by_side(progress, ratios)
            recorded = Cloud.of(np.sum([part.values for part in parts], axis=0))
            mean, covariance = recorded.mean, recorded.covariance
        else:
            rows = self._rows
            laws = [self._law(*one) for one in zip(self.members, progress, ratios, strict=True)]
            warnings = [text for law in laws for text in law.warnings]
            parts = [_part(*one) for one in zip(self.members, laws, strict=True)]
            mean = np.sum([law.mean for law in laws], axis=0)
            covariance = np.sum([law.covariance for law in laws], axis=0)
        total = np.zeros((1, len(self.components)))
        for drawn in draws_together(parts, rows, self._size, random):
            total = total + drawn
        cloud = Cloud.of(total)
        return Distribution(
            self.components,
            cloud.atoms,
            cloud.weights,
            mean,
            covariance,
            "together",
            float(time_seconds),
            warnings=tuple(dict.fromkeys(warnings)),
            details={f"slowdown_{i}": float(r) for i, r in enumerate(ratios) if np.isfinite(r)},
        )

    def _progress(self, time: float) -> tuple[list[float], list[float]]:
        """Compute how far each member is at a time, in its own seconds, and how many times slower it runs
        then; NaN while it does not run."""
        count = len(self.members)
        starts = np.array([one.start_seconds for one in self.members])
        lengths = np.array([_length(one) for one in self.members])
        done = np.zeros(count)
        now = min(float(starts.min()), time)
        while True:
            going = (starts <= now) & (done < lengths)
            ratio = np.full(count, np.nan)
            if going.any():
                ratio[going] = self._ratios(np.flatnonzero(going).tolist())
            # Until the next start or end: nobody's slowdown changes before.
            until = [time, *starts[starts > now], *(now + ((lengths - done) * ratio)[going])]
            following = min(until)
            done[going] += (following - now) / ratio[going]
            done = np.where(going & (lengths - done < _SLACK * (1 + lengths)), lengths, done)
            if following >= time:
                break
            now = following
        own = np.where(starts > time, np.nan, done)
        return own.tolist(), ratio.tolist()

    def _ratios(self, going: list[int]) -> np.ndarray:
        ratios = np.asarray(self._slowdowns(going), np.float64)
        if ratios.shape != (len(going),) or not (np.isfinite(ratios) & (ratios > 0)).all():
            raise UsageError(
                f"slowdowns {ratios.tolist()} are not {len(going)} numbers above 0",
                fix="Give how many times slower each member that runs is than alone.",
            )
        return ratios

    def _law(self, member: Joining, own: float, ratio: float) -> Distribution:
        """Return a member's law where it is now: rates divided by its slowdown."""
        forecast = member.forecast
        first, last = forecast.span_seconds
        nothing = Distribution.of(
            Cloud.of(np.zeros((1, len(self.components)))), self.components, "idle"
        )
        if np.isnan(own) or own >= _length(member):
            return nothing
        if own > last:
            raise UsageError(
                f"a member would be at {own:g} s of its own time, and its data reaches to {last:g} s",
                fix="Trace it for longer.",
            )
        distribution = forecast.at(max(own, first), member.core)
        unit = self._unit(ratio)
        return replace(
            distribution,
            atoms=distribution.atoms * unit,
            mean=distribution.mean * unit,
            covariance=distribution.covariance * np.outer(unit, unit),
        )

    def _side_by_side(
        self, progress: Sequence[float], ratios: Sequence[float]
    ) -> tuple[list[Addend], np.ndarray]:
        """Return what was measured in windows of all members, at the snapshots nearest to where each is:
        the parts, with a value for each window, and the rows of these that go together."""
        states = [
            self._unit(ratio) * _states_at(member, own, rows)
            for member, own, ratio, rows in zip(
                self.members, progress, ratios, self._rows.T, strict=True
            )
        ]
        known = np.isfinite(np.sum(states, axis=0)).all(axis=1)
        count = int(known.sum())
        if count < FEWEST_WINDOWS:
            raise NotEnoughRuns(
                f"at this time {count} windows are known of all members, not {FEWEST_WINDOWS}",
                fix="Trace the members side by side more often, or take them as independent.",
            )
        weights = np.full(count, 1 / count)
        parts = [
            Addend(_key(member), each[known], weights, count)
            for member, each in zip(self.members, states, strict=True)
        ]
        return parts, np.tile(np.arange(count)[:, None], len(parts))

    def _unit(self, ratio: float) -> np.ndarray:
        """Return (d,) what a slowdown leaves of each component: levels stay, counts per second are fewer."""
        ratio = ratio if np.isfinite(ratio) else 1.0
        return np.array([1.0 if is_level(name) else 1 / ratio for name in self.components])


def _checked(slowdowns: Sequence[float] | Slowdowns | None, count: int) -> Slowdowns:
    if slowdowns is None:
        return lambda going: [1.0] * len(going)
    if callable(slowdowns):
        return slowdowns
    fixed = list(slowdowns)
    if len(fixed) != count:
        raise UsageError(f"{len(fixed)} slowdowns for {count} members", fix="Give one for each.")
    return lambda going: [fixed[i] for i in going]


def _key(member: Joining) -> tuple[int, int]:
    """Equal for members of the same runs."""
    return id(member.forecast), member.core


def _part(member: Joining, law: Distribution) -> Addend:
    """Return what a member's law adds; of one that does not run nothing is open."""
    cloud = few(law.cloud.merged, MOST_ATOMS, 0)
    runs = law.runs if len(cloud) > 1 else np.inf
    return Addend(_key(member) if np.isfinite(runs) else object(), cloud.atoms, cloud.weights, runs)


def _common(members: Sequence[Joining]) -> np.ndarray:
    """Return (windows, members) see `rows_side_by_side`; none where a forecast does not know its runs'
    windows."""
    return rows_side_by_side([(_key(one), one.forecast.snapshots.windows or ()) for one in members])


def _states_at(member: Joining, own: float, rows: np.ndarray) -> np.ndarray:
    """Return (windows, d) states of a member's runs at its own time; 0 where a run had ended or not begun."""
    states, ended = histories(member.forecast.snapshots, member.core)
    if np.isnan(own) or own >= _length(member):
        return np.zeros((len(rows), states.shape[2]))
    k = int(np.abs(member.forecast.snapshots.times_seconds - own).argmin())
    return np.where(ended[rows, k, None], 0.0, states[rows, k])


def _length(member: Joining) -> float:
    """Return when the last run ended, in its own seconds; infinite where one of them had no end."""
    ends = member.forecast.snapshots.end_seconds
    if ends is None or not len(ends[member.core]) or not np.isfinite(ends[member.core]).all():
        return float("inf")
    return float(max(ends[member.core].max(), member.forecast.span_seconds[1]))
