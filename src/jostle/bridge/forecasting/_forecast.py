"""`jostle.forecast(data, jostle.Bridge(...)).at(time_seconds, core=0)`."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle._report import Glance
from jostle.bridge.answers._claims import prior_of
from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.forecasting import _saved
from jostle.bridge.forecasting._laws import LawsBetween
from jostle.bridge.forecasting._settings import Bridge
from jostle.bridge.live._given import LiveForecast
from jostle.bridge.problem._snapshots import Snapshots, evenly
from jostle.methods import Data
from jostle.traces import Traces, Windows

if TYPE_CHECKING:
    from jostle.bridge.forecasting._plots import ForecastPlots
    from jostle.traces import Trace


def forecast(
    data: Data | Traces | Windows | Snapshots | str | os.PathLike[str],
    method: Bridge | None = None,
) -> Forecast:
    """Forecasts of resource use from repeated runs of one workload.

    data: what `jostle.read` gives, or the path of its folder; traces; windows of the same members, of which
    each is a core; or snapshots. Raises BadData for runs of different workloads, NotEnoughRuns for fewer
    than two, UnknownName.
    """
    method = method or Bridge()
    times = method.snapshots
    count = times if isinstance(times, int) else None
    if not isinstance(data, Snapshots):
        data = Snapshots.from_traces(
            data if isinstance(data, Windows) else Data.of(data).traces,
            method.components,
            None if isinstance(times, int) else times,
            count=count,
            clock=method.clock_settings,
        )
    if count is not None and len(data) > count:
        data = data.select(evenly(len(data), count))
    return Forecast(data, method)


class Forecast(LawsBetween, Glance):
    """Answers for any time between the first and the last snapshot; couplings are solved when needed.

    A path of edges is solved edge by edge, so the first question in an interval takes a solve, the next ones
    only a draw. Safe for threads.
    """

    def __init__(
        self, snapshots: Snapshots, method: Bridge, *, scale: np.ndarray | None = None
    ) -> None:
        super().__init__(snapshots, method, scale=scale)
        self._live: dict[int, LiveForecast] = {}
        self._priors: dict[int, float] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forecast:
        """A saved forecast: gives the same answers. Raises UnreadableFile."""
        saved = _saved.load(path)
        return cls(saved.snapshots, saved.method, scale=saved.scale)

    def save(self, path: str | os.PathLike[str], *, atoms: int | None = None) -> None:
        """Write it to a folder (forecast_model/v2). atoms: keep so many of each snapshot at most, centres of
        k-means with their weights; then runs are no longer known, nor a clock. Raises NotPermitted."""
        _saved.save(_saved.Saved(self.snapshots, self.method, self.scale), path, atoms)

    def facts(self) -> list[tuple[str, str]]:
        """What of, from what, for which times, and how."""
        shots, (first, last) = self.snapshots, self.span_seconds
        runs = max(len(shot.cloud.atoms) for core in shots.cores.values() for shot in core)
        return [
            ("components", ", ".join(self.components)),
            ("cores", f"{len(shots.cores)}"),
            ("from", f"{len(shots)} snapshots of up to {runs} runs"),
            ("answers from", f"{first:g} s to {last:g} s"),
            ("method", str(self.method.method)),
        ]

    @property
    def plot(self) -> ForecastPlots:
        """Pictures in one line each: `forecast.plot.over_time(component)`, `.at(time_seconds, component)`;
        both return matplotlib axes."""
        from jostle.bridge.forecasting._plots import ForecastPlots

        return ForecastPlots(self)

    def at(
        self,
        time_seconds: float,
        core: int = 0,
        *,
        method: str | None = None,
        seed: int | None = None,
    ) -> Distribution:
        """The distribution at a time; at a snapshot, that snapshot.

        method: another than the Bridge's. seed: of the draw. Raises UsageError outside the data.
        """
        distribution = self._at(time_seconds, core, method, seed)
        k = int(np.searchsorted(self.snapshots.times_seconds, time_seconds))
        near = self.snapshots.of(core)[max(k - 1, 0) : k + 1]
        return replace(
            distribution, runs=min(shot.counted for shot in near), prior=self._prior(core)
        )

    def _prior(self, core: int) -> float:
        with self._lock:
            if core not in self._priors:
                self._priors[core] = prior_of(self.snapshots, core)
            return self._priors[core]

    def given(self, trace: Trace | None = None, core: int = 0) -> LiveForecast:
        """For one run that goes on: `forecast.given(trace_so_far).at(time_seconds)`, what it will use given
        what it has shown; samples can be added by `see`. Raises UsageError, BadData."""
        with self._lock:
            if core not in self._live:
                self._live[core] = LiveForecast(self.snapshots, core, seed=self.method.seed)
            live = self._live[core].anew()
        return live if trace is None else live.follow(trace)
