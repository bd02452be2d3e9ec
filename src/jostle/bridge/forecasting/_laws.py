"""The laws between snapshots: every method's, from couplings that are solved when needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.forecasting import _average as average
from jostle.bridge.forecasting import _interpolate as between
from jostle.bridge.forecasting._phase import phase
from jostle.bridge.forecasting._settings import METHODS, Bridge
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._snapshots import Snapshot, Snapshots
from jostle.bridge.problem._thin import evenly_few, few
from jostle.bridge.problem._units import Units
from jostle.bridge.solvers._coupling import Coupling
from jostle.bridge.solvers._path import edge_eps
from jostle.bridge.solvers._sinkhorn import solve_edge
from jostle.bridge.solvers._transport import transport
from jostle.errors import NotEnoughRuns, UsageError

COMPARED = 200  # atoms of a comparison
OFF_GRID = 1e-9  # of the span of time: nearer than this to a snapshot is at it


class LawsBetween:
    """What a forecast is made of: snapshots, a method, units, couplings solved so far. Safe for threads."""

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
        floors = zip(snapshots.components, self._units.floors, strict=True)
        below = ", ".join(name for name, floor in floors if floor < 0)
        text = f"{below}: below 0 in the data, so the forecast may be below 0 too"
        self._warnings = (text,) if below else ()
        self._couplings: dict[tuple[int, int, str], Coupling] = {}
        self._stacks: dict[int, average.LawShares] = {}
        self._lock = threading.RLock()

    @property
    def scale(self) -> np.ndarray:
        """(d,) what components are multiplied by before distances are taken."""
        return self._units.scale

    @property
    def eps(self) -> float:
        """The Bridge's eps."""
        return self.method.eps

    @property
    def components(self) -> tuple[str, ...]:
        return self.snapshots.components

    @property
    def span_seconds(self) -> tuple[float, float]:
        """The times between which it answers."""
        return float(self.snapshots.times_seconds[0]), float(self.snapshots.times_seconds[-1])

    def _at(
        self, time_seconds: float, core: int, method: str | None, seed: int | None
    ) -> Distribution:
        method = method or str(self.method.method)
        if method not in METHODS:
            raise UsageError(f"method {method!r} is not known", fix=f"One of {', '.join(METHODS)}.")
        first, last = self.span_seconds
        if not first <= time_seconds <= last:
            raise UsageError(
                f"{time_seconds:g} s lies outside the data, which reaches from {first:g} s to {last:g} s",
                fix="A bridge interpolates and does not extrapolate: trace longer.",
            )
        times = self.snapshots.times_seconds
        shots = self.snapshots.of(core)
        near = int(np.abs(times - time_seconds).argmin())
        rounding = 2 * float(np.spacing(max(abs(first), abs(last))))
        if abs(times[near] - time_seconds) <= max(OFF_GRID * (last - first), rounding):
            shot = shots[near]
            distribution = Distribution.of(shot.cloud, self.components, "snapshot")
            distribution = replace(distribution, warnings=(*self._warnings, *self._filled(shot)))
            return replace(distribution.with_idle(shot.idle_ratio), time_seconds=time_seconds)
        k = int(np.searchsorted(times, time_seconds)) - 1
        lam = float((time_seconds - times[k]) / (times[k + 1] - times[k]))
        idle = self.snapshots.idle_at(core, time_seconds, k, lam)
        if shots[k].idle_ratio == 1 and shots[k + 1].idle_ratio == 1:
            distribution = Distribution.of(shots[k].cloud, self.components, method)
        else:
            seed = self.method.seed if seed is None else seed
            distribution = self._running(k, lam, time_seconds, core, method, seed)
        warnings = (*self._warnings, *self._filled(*shots[k : k + 2]))
        distribution = replace(distribution, warnings=(*distribution.warnings, *warnings))
        return replace(distribution.with_idle(idle), time_seconds=time_seconds)

    def _filled(self, *shots: Snapshot) -> tuple[str, ...]:
        """What to say of counters that were not measured all the time."""
        shares = [shot.filled for shot in shots if shot.filled is not None]
        if not shares:
            return ()
        worst = np.max(shares, axis=0)
        named = zip(self.components, worst, strict=True)
        few = ", ".join(f"{name} {share:.0%}" for name, share in named if share > 0)
        return (f"values that were not counted come from runs alike: {few}",)

    def solve(self, core: int = 0, *, threads: int = 1) -> list[Coupling]:
        """The couplings of all intervals of a core, so that questions later take only a draw; intervals of a
        path are independent and are solved by `threads` threads."""
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(lambda k: self.coupling(k, core), range(len(self.snapshots) - 1)))

    def coupling(self, k: int, core: int = 0, kind: str = "bridge") -> Coupling:
        """The coupling of snapshots k and k + 1, in scaled units. kind: `bridge` or `ot`."""
        coupling = self._couplings.get((core, k, kind))
        if coupling is None:
            coupling = self._couplings.setdefault((core, k, kind), self._couple(k, core, kind))
        return coupling

    def _couple(self, k: int, core: int, kind: str) -> Coupling:
        x, y = (self._clouds(core)[i].merged for i in (k, k + 1))
        if kind == "ot":
            return transport(
                *(few(cloud, average.TRANSPORTED, core + i) for i, cloud in enumerate((x, y)))
            )
        if self.eps == np.inf:
            return between.product(x, y)
        steps = np.diff(self.snapshots.times_seconds)
        eps = edge_eps(x, y, self.eps, self.method.eps_unit)
        if self.method.time_scaled and self.method.eps_unit != "absolute":
            eps *= float(steps[k] / steps.mean())
        return solve_edge(x, y, eps, stopping=self.method.stopping)

    def _clouds(self, core: int) -> list[Cloud]:
        return [self._units.cloud_in(shot.cloud) for shot in self.snapshots.of(core)]

    def _like(self, snapshots: Snapshots, **changes: Any) -> Self:
        """From some of the snapshots, with few atoms, each core by itself: for comparisons."""
        method = replace(self.method, atoms=COMPARED, **changes)
        return type(self)(snapshots, method, scale=self.scale)

    def _running(
        self, k: int, lam: float, time: float, core: int, method: str, seed: int
    ) -> Distribution:
        """The law of the runs that still run."""
        x, y = self.snapshots.of(core)[k : k + 2]
        details: dict[str, float] = {"lam": lam}
        warnings: tuple[str, ...] = ()
        if method == "average":
            return self._averaged(k, lam, time, core, seed)
        if method == "phase":
            place = [seed, core % 2**32, 2**31, round(time * 2**20) % 2**63]
            cloud, missed = phase(self.snapshots, core, time, place)
            details["missed_ratio"] = missed
            if missed:
                warnings = (f"{missed:.0%} of the runs are in a phase that no snapshot caught",)
        elif 1 in (x.idle_ratio, y.idle_ratio):  # nothing to displace to: those that run stay
            cloud = x.cloud if x.idle_ratio < 1 else y.cloud
        elif method == "nearest":
            cloud = between.nearest(x.cloud, y.cloud, lam)
        elif method == "mixture":
            cloud = between.mixture(x.cloud, y.cloud, lam)
        elif method == "ot":
            cloud = self._units.cloud_out(between.displace(self.coupling(k, core, "ot"), lam))
        elif method == "spline":
            cloud = self._units.cloud_out(self._spline(k, time, core))
        else:
            return self._bridged(k, lam, core, seed)
        distribution = Distribution.of(cloud, self.components, method)
        return replace(distribution, warnings=warnings, details=details)

    def _averaged(self, k: int, lam: float, time: float, core: int, seed: int) -> Distribution:
        """Several forecasts together, by the weights of `stack`."""
        if 1 in (shot.idle_ratio for shot in self.snapshots.of(core)[k : k + 2]):
            return self._running(k, lam, time, core, "mixture", seed)
        shares = self.stack(core).at(lam)
        laws = {name: self._candidate(name, k, lam, time, core) for name in shares}
        known = {name: law for name, law in laws.items() if law is not None}
        shares = {name: shares[name] for name in known}
        whole = average.averaged(known, shares)
        size = max(len(shot.cloud) for shot in self.snapshots.of(core)[k : k + 2])
        cloud = evenly_few(whole, max(self.method.atoms, 2 * size), seed)
        distribution = Distribution.of(cloud, self.components, "average")
        details = {"lam": lam} | {f"share_{name}": shares[name] for name in known}
        return replace(distribution, mean=whole.mean, covariance=whole.covariance, details=details)

    def _candidate(self, name: str, k: int, lam: float, time: float, core: int) -> Cloud | None:
        """One of the laws that are averaged, None where it has none."""
        x, y = self.snapshots.of(core)[k : k + 2]
        if name == "mixture":
            return between.mixture(x.cloud, y.cloud, lam)
        if name == "climatology":
            shots = [shot.cloud for shot in self.snapshots.of(core) if shot.idle_ratio < 1]
            return few(average.pooled(shots), average.POOLED, k)
        if name == "phase":
            try:
                return phase(self.snapshots, core, time, [k])[0]
            except NotEnoughRuns:
                return None
        if name == "spline":
            return self._units.cloud_out(self._spline(k, time, core))
        stay = 0.5 if name == "half" else 0.0
        ends = [self._units.cloud_in(shot.cloud) for shot in (x, y)]
        return self._units.cloud_out(
            average.moved(self.coupling(k, core, "ot"), ends[0], ends[1], lam, stay)
        )

    def stack(self, core: int = 0) -> average.LawShares:
        """The weights of the forecasts that are averaged, and the scores that decided them."""
        with self._lock:
            if core not in self._stacks:
                names = ["ot", "half", "mixture", "spline", "climatology"]
                names += ["phase"] if self.snapshots.clock is not None else []
                self._stacks[core] = average.stacked(
                    self.snapshots,
                    core,
                    names,
                    lambda k: self._laws_without(k, core),
                    self._units.cloud_in,
                )
            return self._stacks[core]

    def _laws_without(self, left_out: int, core: int) -> Callable[[str], Cloud | None]:
        near = [k for k in range(left_out - 2, left_out + 3) if 0 <= k < len(self.snapshots)]
        near = [k for k in near if k != left_out]
        whole = self._like(self.snapshots.without(left_out))
        rest = self._like(self.snapshots.select(near).few(average.ATOMS, core))
        time = float(self.snapshots.times_seconds[left_out])
        times = self.snapshots.times_seconds
        lam = float((time - times[left_out - 1]) / (times[left_out + 1] - times[left_out - 1]))
        k = near.index(left_out - 1)

        def law(name: str) -> Cloud | None:
            if name in ("climatology", "phase"):
                return whole._candidate(name, left_out - 1, lam, time, core)
            return rest._candidate(name, k, lam, time, core)

        return law

    def _bridged(self, k: int, lam: float, core: int, seed: int) -> Distribution:
        """The bridge's law, with its own moments where the units keep them."""
        coupling = self.coupling(k, core)
        draws = -(-self.method.atoms // len(coupling.x))
        place = [seed, core % 2**32, k, round(lam * 2**40)]
        law = between.bridge(coupling, lam, draws=draws, seed=place)
        cloud = self._units.cloud_out(law.cloud)
        distribution = Distribution.of(cloud, self.components, "bridge")
        if self._units.linear and np.allclose(cloud.atoms * self.scale, law.cloud.atoms):
            unit = 1 / self.scale
            distribution = replace(
                distribution, mean=law.mean * unit, covariance=law.covariance * np.outer(unit, unit)
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
