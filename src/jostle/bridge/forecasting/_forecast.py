"""`jostle.forecast(traces, jostle.Bridge(...)).at(time_seconds, core=0)`."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.forecasting import _interpolate as between
from jostle.bridge.forecasting._cross_validation import best_eps
from jostle.bridge.forecasting._graphs import couple_cores
from jostle.bridge.forecasting._phase import phase, place
from jostle.bridge.forecasting._select import Selection, choose
from jostle.bridge.forecasting._settings import METHODS, Bridge
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshots
from jostle.bridge.problem._units import Units
from jostle.bridge.solvers._path import edge_eps
from jostle.bridge.solvers._sinkhorn import Coupling, solve_edge
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.traces import Traces, Windows

CANDIDATES = 120  # times among which snapshots are placed
OFF_GRID = 1e-9  # of the span of time: nearer than this to a snapshot is at it


def forecast(data: Traces | Windows | Snapshots, method: Bridge | None = None) -> Forecast:
    """Forecasts of resource use from repeated runs of one workload, windows of the same members (each is a
    core), or snapshots.

    Raises BadData for runs of different workloads, NotEnoughRuns for fewer than two, UnknownName.
    """
    method = method or Bridge()
    count = method.snapshots if isinstance(method.snapshots, int) else None
    if not isinstance(data, Snapshots):
        placed = count is not None and method.placement == "clock"
        data = Snapshots.from_traces(
            data,
            method.components,
            None if isinstance(method.snapshots, int) else method.snapshots,
            count=max(CANDIDATES, count or 0) if placed else count,
            clock=method.clock,
            clock_kind=method.clock_kind,
            clock_marks=method.clock_marks,
            clock_period=method.clock_period,
        )
    if count is not None and len(data) > count:
        if method.placement == "clock":
            data = data.select(place(data, count, min(data.cores)))
        else:
            even = np.linspace(0, len(data) - 1, count).round().astype(int)
            data = data.select(np.unique(even))
    return Forecast(data, method)


class Forecast:
    """Answers for any time between the first and the last snapshot; couplings are solved when needed.

    A path of edges is solved edge by edge, so the first question in an interval takes a solve, the next ones
    only a draw. Safe for threads.
    """

    def __init__(
        self, snapshots: Snapshots, method: Bridge, *, scale: np.ndarray | None = None
    ) -> None:
        self.snapshots, self.method = snapshots, method
        shots = [shot for core in snapshots.cores.values() for shot in core]
        self._units = Units.of(
            snapshots.components,
            [shot.cloud for shot in shots if shot.idle_ratio < 1],
            scale=method.scale if scale is None else scale,
            log1p=method.log1p,
            at_most=method.at_most,
        )
        self._couplings: dict[tuple[int, int, str], Coupling] = {}
        self._selections: dict[int, Selection] = {}
        self._lock = threading.RLock()
        self._eps: float | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forecast:
        """A saved forecast: gives the same answers. Raises UnreadableFile."""
        from jostle.bridge.forecasting._saved import load

        return load(path)

    def save(self, path: str | os.PathLike[str], *, atoms: int | None = None) -> None:
        """Write it to a folder (forecast/v1). atoms: keep so many of each snapshot at most, centroids of
        k-means with their weights; then runs are no longer known, nor a clock. Raises NotPermitted."""
        from jostle.bridge.forecasting._saved import save

        save(self, path, atoms)

    @property
    def scale(self) -> np.ndarray:
        """(d,) what components are multiplied by before distances are taken."""
        return self._units.scale

    @property
    def eps(self) -> float:
        """The Bridge's eps; of `cv` the one found best."""
        with self._lock:
            if self._eps is None:
                eps = self.method.eps
                self._eps = best_eps(self) if isinstance(eps, str) else eps
            return self._eps

    @property
    def components(self) -> tuple[str, ...]:
        return self.snapshots.components

    @property
    def span_seconds(self) -> tuple[float, float]:
        """The times between which it answers."""
        return float(self.snapshots.times_seconds[0]), float(self.snapshots.times_seconds[-1])

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
        method = method or self.method.method
        if method not in METHODS:
            raise UsageError(f"method {method!r}", fix=f"One of {', '.join(METHODS)}.")
        first, last = self.span_seconds
        if not first <= time_seconds <= last:
            raise UsageError(
                f"{time_seconds:g} s lies outside the data, which reaches from {first:g} s to {last:g} s",
                fix="A bridge interpolates and does not extrapolate: trace longer.",
            )
        times = self.snapshots.times_seconds
        shots = self.snapshots.of(core)
        at = np.flatnonzero(np.abs(times - time_seconds) <= OFF_GRID * max(last - first, abs(last)))
        if len(at):
            shot = shots[int(at[0])]
            found = Distribution.of(shot.cloud, self.components, "snapshot")
            return replace(found.with_idle(shot.idle_ratio), time_seconds=time_seconds)
        k = int(np.searchsorted(times, time_seconds)) - 1
        lam = float((time_seconds - times[k]) / (times[k + 1] - times[k]))
        if method == "select":
            method = self.selection(core).at(k, lam)
        idle = self.snapshots.idle_at(core, time_seconds, k, lam)
        if shots[k].idle_ratio == 1 and shots[k + 1].idle_ratio == 1:
            found = Distribution.of(shots[k].cloud, self.components, method)
        else:
            seed = self.method.seed if seed is None else seed
            found = self._running(k, lam, time_seconds, core, method, seed)
        return replace(found.with_idle(idle), time_seconds=time_seconds)

    def selection(self, core: int = 0) -> Selection:
        """Which method serves which interval, and the scores that decided it."""
        with self._lock:
            if core not in self._selections:
                self._selections[core] = choose(self, core)
            return self._selections[core]

    def choose(self, core: int, selection: Selection) -> None:
        """Use this selection of methods for a core, as one that was saved."""
        with self._lock:
            self._selections[core] = selection

    def solve(self, core: int = 0) -> list[Coupling]:
        """The couplings of all intervals of a core, so that questions later take only a draw."""
        return [self.coupling(k, core) for k in range(len(self.snapshots) - 1)]

    def coupling(self, k: int, core: int = 0, kind: str = "bridge") -> Coupling:
        """The coupling of snapshots k and k + 1, in scaled units. kind: `bridge` or `ot`."""
        with self._lock:
            if (core, k, kind) not in self._couplings:
                if kind == "bridge" and self.method.graph != "path":
                    solved = couple_cores(self.method, self.eps, self.snapshots, self._clouds)
                    self._couplings |= {(c, i, "bridge"): found for (c, i), found in solved.items()}
                else:
                    self._couplings[core, k, kind] = self._couple(k, core, kind)
            return self._couplings[core, k, kind]

    def _couple(self, k: int, core: int, kind: str) -> Coupling:
        x, y = (self._clouds(core)[i].merged for i in (k, k + 1))
        if kind == "ot":
            return between.transport(x, y)
        if self.eps == np.inf:
            return between.product(x, y)
        steps = np.diff(self.snapshots.times_seconds)
        eps = edge_eps(x, y, self.eps, self.method.eps_unit)
        if self.method.time_scaled and self.method.eps_unit != "absolute":
            eps *= float(steps[k] / steps.mean())
        euclid = self.method.cost == "euclid"
        return solve_edge(x, y, eps, stopping=self.method.stopping, euclid=euclid)

    def _clouds(self, core: int) -> list[Cloud]:
        return [self._units.cloud(shot.cloud) for shot in self.snapshots.of(core)]

    def _running(
        self, k: int, lam: float, time: float, core: int, method: str, seed: int
    ) -> Distribution:
        """The law of the runs that still run."""
        shots = self.snapshots.of(core)
        warnings: list[str] = []
        details: dict[str, float] = {"lam": lam}
        if method == "phase":
            place = [seed, core % 2**32, 2**31, round(time * 2**20) % 2**63]
            cloud, missed = phase(self.snapshots, core, time, place)
            details["missed_ratio"] = missed
            if missed:
                warnings.append(f"{missed:.0%} of the runs are in a phase that no snapshot caught")
            found = Distribution.of(cloud, self.components, method)
            return replace(found, warnings=tuple(warnings), details=details)
        busy = [shot for shot in (shots[k], shots[k + 1]) if shot.idle_ratio < 1]
        if len(busy) == 1:  # nothing to displace to: those that run are as they were
            found = Distribution.of(busy[0].cloud, self.components, method)
            return replace(found, details=details)
        if method in ("nearest", "mixture"):
            rule = between.nearest if method == "nearest" else between.mixture
            found = Distribution.of(
                rule(shots[k].cloud, shots[k + 1].cloud, lam), self.components, method
            )
            return replace(found, details=details)
        exact: between.Between | None = None
        if method == "bridge":
            coupling = self.coupling(k, core)
            noisy = self.method.noise and self.method.cost == "squared"
            noise = (self.scale > 0) & noisy
            draws = -(-self.method.atoms // len(coupling.x))
            place = [seed, core % 2**32, k, round(lam * 2**40)]
            exact = between.bridge(coupling, lam, noise=noise, draws=draws, seed=place)
            cloud = exact.cloud
            if coupling.warning:
                warnings.append(coupling.warning)
            details |= {
                "eps_over_median": coupling.eps_over_median,
                "marginal_l1": coupling.convergence.marginal_l1,
                "hilbert": coupling.convergence.hilbert,
                "sweeps": float(coupling.convergence.sweeps),
            }
        elif method == "ot":
            cloud = between.displace(self.coupling(k, core, "ot"), lam)
        else:
            cloud = self._spline(k, time, core)
        atoms = self._units.out(cloud.atoms)
        found = Distribution.of(Cloud(atoms, cloud.weights), self.components, method)
        if exact is not None and self._units.linear:
            unit = 1 / self.scale
            covariance = exact.covariance * np.outer(unit, unit)
            found = replace(found, mean=exact.mean * unit, covariance=covariance)
        return replace(found, warnings=tuple(warnings), details=details)

    def _spline(self, k: int, time: float, core: int) -> Cloud:
        shots, times = self.snapshots.of(core), self.snapshots.times_seconds
        before = k > 0 and shots[k - 1].idle_ratio < 1
        after = k + 2 < len(shots) and shots[k + 2].idle_ratio < 1
        inside = [times[i] if 0 <= i < len(times) else np.nan for i in range(k - 1, k + 3)]
        return between.spline(
            self.coupling(k - 1, core, "ot") if before else None,
            self.coupling(k, core, "ot"),
            self.coupling(k + 1, core, "ot") if after else None,
            np.array(inside),
            time,
        )
