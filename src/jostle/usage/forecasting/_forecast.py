"""`jostle.forecast(data, jostle.Bridge(...)).at(time_seconds)`: each method's law between snapshots."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.report import Glance
from jostle.data import Traces, Windows
from jostle.errors import UsageError, require_choice
from jostle.learn import Data
from jostle.usage.distributions._claims import prior_of
from jostle.usage.distributions._distribution import Distribution
from jostle.usage.forecasting import _interpolate as between
from jostle.usage.forecasting import _saved_forecast as _saved
from jostle.usage.forecasting._bridge_settings import Bridge
from jostle.usage.live._conditioned_forecast import LiveForecast
from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.snapshots._scaled_units import Units
from jostle.usage.snapshots._snapshots import Snapshots, evenly
from jostle.usage.snapshots._thin import few
from jostle.usage.solvers._coupling import Coupling, edge_eps
from jostle.usage.solvers._sinkhorn import solve_edge
from jostle.usage.solvers._transport import transport

if TYPE_CHECKING:
    from jostle.data import Trace
    from jostle.usage.forecasting._forecast_plots import ForecastPlots

TRANSPORTED = 600  # atoms of a snapshot in exact transport
OFF_GRID = 1e-9  # of the span of time: nearer than this to a snapshot is at it


def forecast(
    data: Data | Traces | Windows | Snapshots | str | os.PathLike[str],
    method: Bridge | None = None,
) -> Forecast:
    """Forecast resource use from repeated runs of one workload.

    Parameters
    ----------
    data :
        What :func:`read` gives, or the path of its folder; traces; windows of the same members, of which
        each is
        a core; or snapshots.
    method :
        Settings. None: ``Bridge()``.

    Returns
    -------
    Forecast

    Raises
    ------
    BadData
        If the runs are of different workloads.
    NotEnoughRuns
        If there are fewer than two.
    UnknownName
    """
    method = method or Bridge()
    times = method.snapshots
    count = times if isinstance(times, int) else None
    if not isinstance(data, Snapshots):
        traces = data if isinstance(data, Windows) else Data.of(data).traces
        asked = None if isinstance(times, int) else times
        data = Snapshots.from_traces(traces, method.components, asked, count=count)
    if count is not None and len(data) > count:
        data = data.select(evenly(len(data), count))
    return Forecast(data, method)


class Forecast(Glance):
    """Answers for any time between the first and the last snapshot; couplings are solved when needed.

    A path of edges is solved edge by edge, so the first question in an interval takes a solve, the next ones
    only a draw. Safe for threads.
    """

    def __init__(
        self, snapshots: Snapshots, method: Bridge, *, scale: np.ndarray | None = None
    ) -> None:
        self.snapshots, self.method, self.components = snapshots, method, snapshots.components
        going = [
            shot.cloud for one in snapshots.cores.values() for shot in one if shot.idle_ratio < 1
        ]
        self._units = Units.of(self.components, going, method.scale if scale is None else scale)
        floors = zip(self.components, self._units.floors, strict=True)
        below = ", ".join(name for name, floor in floors if floor < 0)
        text = f"{below}: below 0 in the data, so the forecast may be below 0 too"
        self._warnings = (text,) if below else ()
        self._couplings: dict[tuple[int, int, str], Coupling] = {}
        self._known: dict[tuple[str, int], Any] = {}
        self._lock = threading.RLock()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forecast:
        """Return a saved forecast: gives the same answers. Raises UnreadableFile."""
        saved = _saved.load(path)
        return cls(saved.snapshots, saved.method, scale=saved.scale)

    def save(self, path: str | os.PathLike[str], *, atoms: int | None = None) -> None:
        """Write it to a folder (forecast_model/v3). atoms: keep so many of each snapshot at most, centres of
        k-means with their weights; then runs are no longer known. Raises NotPermitted."""
        _saved.save(_saved.Saved(self.snapshots, self.method, self.scale), path, atoms)

    @property
    def scale(self) -> np.ndarray:
        """Factors by which components are multiplied before distances are taken, (d,)."""
        return self._units.scale

    @property
    def span_seconds(self) -> tuple[float, float]:
        """The times between which it answers."""
        return float(self.snapshots.times_seconds[0]), float(self.snapshots.times_seconds[-1])

    def _facts(self) -> list[tuple[str, str]]:
        """Return what of, from what, for which times, and how."""
        shots, (first, last) = self.snapshots, self.span_seconds
        runs = max(len(shot.cloud.atoms) for core in shots.cores.values() for shot in core)
        return [
            ("components", ", ".join(self.components)),
            ("cores", f"{len(shots.cores)}"),
            ("from", f"{len(shots)} snapshots of up to {runs} runs"),
            ("answers from", f"{first:g} s to {last:g} s"),
            ("method", self.method.method),
        ]

    @property
    def plot(self) -> ForecastPlots:
        """Pictures in one line each: `forecast.plot.over_time(component)`, `.at(time_seconds, component)`;
        both return matplotlib axes."""
        from jostle.usage.forecasting._forecast_plots import ForecastPlots

        return ForecastPlots(self)

    def given(self, trace: Trace | None = None, core: int = 0) -> LiveForecast:
        """Forecast one run that goes on, given what it has used so far:
        `forecast.given(trace_so_far).at(time_seconds)`. Further samples are added by `see`. Raises
        UsageError, BadData."""
        core = self.snapshots.core_of(core)
        live = self._once(
            "given", core, lambda: LiveForecast(self.snapshots, core, seed=self.method.seed)
        ).anew()
        return live if trace is None else live.follow(trace)

    def _once(self, what: str, core: int, make: Callable[[], Any]) -> Any:
        """Return what is made for a core when it is first asked for."""
        with self._lock:
            if (what, core) not in self._known:
                self._known[what, core] = make()
            return self._known[what, core]

    def at(
        self,
        time_seconds: float,
        core: int = 0,
        *,
        method: str | None = None,
        seed: int | None = None,
    ) -> Distribution:
        """Return the distribution at a time; at a snapshot, that snapshot.

        method: another than the Bridge's. seed: of the draw. Raises UsageError outside the data.
        """
        method = method or self.method.method
        require_choice("method", method, between.METHODS)
        core = self.snapshots.core_of(core)
        times, shots = self.snapshots.times_seconds, self.snapshots.of(core)
        first, last = self.span_seconds
        rounding = 2 * float(np.spacing(max(abs(first), abs(last))))
        hair = max(OFF_GRID * (last - first), rounding)
        if not first - hair <= time_seconds <= last + hair:
            raise UsageError(
                f"{time_seconds:g} s lies outside the data, which reaches from {first:g} s to {last:g} s",
                fix="A bridge interpolates and does not extrapolate: trace longer.",
            )
        near = int(np.abs(times - time_seconds).argmin())
        if abs(times[near] - time_seconds) <= hair:
            beside, idle = shots[near : near + 1], shots[near].idle_ratio
            law = Distribution.of(shots[near].cloud, self.components, "snapshot")
        else:
            k = int(np.searchsorted(times, time_seconds)) - 1
            lam = float((time_seconds - times[k]) / (times[k + 1] - times[k]))
            beside, idle = shots[k : k + 2], self.snapshots.idle_at(core, time_seconds, k, lam)
            seed = self.method.seed if seed is None else seed
            law = self._running(k, lam, core, method, seed)
        filled = np.max(
            [np.zeros(len(self.components)), *(s.filled for s in beside if s.filled is not None)],
            axis=0,
        )
        told = ", ".join(
            f"{n} {x:.0%}" for n, x in zip(self.components, filled, strict=True) if x > 0
        )
        more = (f"values that were not counted come from runs alike: {told}",) if told else ()
        return replace(
            law.with_idle(idle),
            time_seconds=time_seconds,
            warnings=(*law.warnings, *self._warnings, *more),
            runs=min(shot.counted for shot in beside),
            prior=self._once("prior", core, lambda: prior_of(self.snapshots, core)),
        )

    def _running(self, k: int, lam: float, core: int, method: str, seed: int) -> Distribution:
        """Return the law of the runs that still run."""
        one_ended = 1 in (shot.idle_ratio for shot in self.snapshots.of(core)[k : k + 2])
        if method == "bridge" and not one_ended:
            return self._bridged(k, lam, core, seed)
        law = Distribution.of(self._law(method, k, lam, core), self.components, method)
        return replace(law, details={"lam": lam})

    def _law(self, method: str, k: int, lam: float, core: int) -> Cloud:
        """Compute the cloud of a method that draws nothing, in the counters' units, a share `lam` of the way
        from snapshot k to the next."""
        x, y = self.snapshots.of(core)[k : k + 2]
        if 1 in (x.idle_ratio, y.idle_ratio):  # nothing to displace to: those that run stay
            return x.cloud if x.idle_ratio < 1 else y.cloud
        if method == "mixture":
            return Cloud.pooled((x.cloud, y.cloud), (1 - lam, lam))
        return self._units.cloud_out(between.displace(self.coupling(k, core, "ot"), lam))

    def coupling(self, k: int, core: int = 0, kind: str = "bridge") -> Coupling:
        """Return the coupling of snapshots k and k + 1, in scaled units. kind: `bridge` or `ot`."""
        coupling = self._couplings.get((core, k, kind))
        if coupling is None:
            coupling = self._couplings.setdefault((core, k, kind), self._couple(k, core, kind))
        return coupling

    def _couple(self, k: int, core: int, kind: str) -> Coupling:
        x, y = (cloud.merged for cloud in self._clouds(core)[k : k + 2])
        if kind == "ot":
            return transport(
                *(few(cloud, TRANSPORTED, core + k + i) for i, cloud in enumerate((x, y)))
            )
        if self.method.eps == np.inf:
            return between.product(x, y)
        steps = np.diff(self.snapshots.times_seconds)
        eps = edge_eps(x, y, self.method.eps, self.method.eps_unit)
        if self.method.time_scaled and self.method.eps_unit != "absolute":
            eps *= float(steps[k] / steps.mean())
        return solve_edge(x, y, eps, stopping=self.method.stopping)

    def _clouds(self, core: int) -> list[Cloud]:
        return [self._units.cloud_in(shot.cloud) for shot in self.snapshots.of(core)]

    def _bridged(self, k: int, lam: float, core: int, seed: int) -> Distribution:
        """Return the bridge's law, with its own moments where the units keep them."""
        coupling = self.coupling(k, core)
        draws = -(-self.method.atoms // len(coupling.x))
        place = [seed, core % 2**32, k, round(lam * 2**40)]
        scaled, mean, covariance = between.bridge(coupling, lam, draws=draws, seed=place)
        cloud = self._units.cloud_out(scaled)
        distribution = Distribution.of(cloud, self.components, "bridge")
        if (self.scale > 0).all() and np.allclose(cloud.atoms * self.scale, scaled.atoms):
            unit = 1 / self.scale
            distribution = replace(
                distribution, mean=mean * unit, covariance=covariance * np.outer(unit, unit)
            )
        details = {
            "lam": lam,
            "eps_over_median": coupling.eps_over_median,
            "marginal_l1": coupling.convergence.marginal_l1,
            "hilbert": coupling.convergence.hilbert,
            "sweeps": float(coupling.convergence.sweeps),
        }
        warnings = (coupling.warning,) if coupling.warning else ()
        return replace(distribution, warnings=warnings, details=details)
