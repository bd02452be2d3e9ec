"""`jostle.forecast(traces, jostle.Bridge(...)).at(time_seconds, core=0)`."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.bridge import _interpolate as between
from jostle.bridge._clock import ClockKind
from jostle.bridge._clouds import Cloud, scale_of
from jostle.bridge._distribution import Distribution
from jostle.bridge._graphs import couple_cores
from jostle.bridge._path import edge_eps
from jostle.bridge._phase import phase, place
from jostle.bridge._select import Selection, choose
from jostle.bridge._sinkhorn import Coupling, Stopping, solve_edge
from jostle.bridge._snapshots import Snapshots
from jostle.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from jostle.traces import Traces

METHODS = (*between.METHODS, "select")
GRAPHS = ("path", "barycentric", "series_parallel")
CANDIDATES = 120  # times among which snapshots are placed
OFF_GRID = 1e-9  # of the span of time: nearer than this to a snapshot is at it


@dataclass(frozen=True)
class Bridge:
    """How to forecast the distribution of resource use at any time from snapshots of it.

    method: `bridge` (entropic coupling), `ot` (exact transport), `spline`, `mixture`, `nearest`, `phase`
    (needs a clock), or `select`: the best of them in each interval by leave-one-snapshot-out.
    graph: how cores hang together: `path` (each core by itself), `barycentric`, `series_parallel`.
    components: counters that make the state, None for all. snapshots: a number of times, or the times in
    seconds; None for all sample times of the traces. placement: of a number of times, `even`, or `clock`:
    where they catch the most phases (see `place`). clock, clock_kind: the counter of progress, `work` or
    `beats`. eps, eps_unit: see `edge_eps`. time_scaled: eps of an interval in proportion to its length, as
    Brownian motion has it. noise: the bridge's own noise between snapshots. cost: `squared` or `euclid`.
    scale: {component: factor} instead of 1 / the noise within snapshots. log1p: components, like misses,
    that are interpolated as log(1 + rate). at_most: {component: what it cannot exceed}; None: misses
    their requests, by name.
    atoms: draw at least so many per forecast. barycentre_atoms: the support of the barycentre.
    terminal_atoms: what the ends of a series-parallel graph are thinned to, None for not at all.
    """

    method: str = "bridge"
    graph: str = "path"
    components: tuple[str, ...] | None = None
    placement: str = "even"
    snapshots: int | tuple[float, ...] | None = None
    clock: str | None = None
    clock_kind: ClockKind = "work"
    eps: float = 0.1
    eps_unit: str = "spread"
    time_scaled: bool = True
    noise: bool = True
    cost: str = "squared"
    scale: Mapping[str, float] | None = None
    log1p: tuple[str, ...] = ()
    at_most: Mapping[str, str] | None = None
    atoms: int = 500
    barycentre_atoms: int = 600
    terminal_atoms: int | None = 50
    stopping: Stopping = field(default_factory=Stopping)
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (
            ("method", self.method, METHODS),
            ("graph", self.graph, GRAPHS),
            ("eps_unit", self.eps_unit, ("spread", "median", "absolute")),
            ("placement", self.placement, ("even", "clock")),
            ("cost", self.cost, ("squared", "euclid")),
            ("clock_kind", self.clock_kind, ("work", "beats")),
        ):
            if value not in known:
                raise UsageError(f"{name} {value!r}", fix=f"One of {', '.join(known)}.")
        if not (self.eps > 0 and np.isfinite(self.eps)):
            raise UsageError(f"eps {self.eps} is not above 0 and finite")
        if min(self.atoms, self.barycentre_atoms, self.terminal_atoms or 1) < 1:
            raise UsageError("a number of atoms must be at least 1")
        if self.method == "phase" and self.clock is None:
            raise UsageError("method 'phase' needs a clock", fix="Name the counter of progress.")

    @classmethod
    def paper(cls, scale: Mapping[str, float], eps: float = 0.1) -> Bridge:
        """The settings of the paper: one eps for all edges, fixed scales, no noise, no time in eps."""
        return cls(eps=eps, eps_unit="absolute", scale=scale, noise=False, time_scaled=False)


def forecast(data: Traces | Snapshots, method: Bridge | None = None) -> Forecast:
    """Forecasts of resource use from repeated runs of one workload, or from snapshots of it.

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
        limits = method.at_most or {}
        for name in (*method.log1p, *(method.scale or {}), *limits, *limits.values()):
            if name not in snapshots.components:
                raise UnknownName("component", name, snapshots.components)
        self._log = np.array([name in method.log1p for name in snapshots.components])
        self.scale = self._scale() if scale is None else scale
        self._couplings: dict[tuple[int, int, str], Coupling] = {}
        self._selections: dict[int, Selection] = {}
        self._lock = threading.RLock()

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
            method = self.selection(core).methods[k]
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

    def solve(self, core: int = 0) -> list[Coupling]:
        """The couplings of all intervals of a core, so that questions later take only a draw."""
        return [self.coupling(k, core) for k in range(len(self.snapshots) - 1)]

    def coupling(self, k: int, core: int = 0, kind: str = "bridge") -> Coupling:
        """The coupling of snapshots k and k + 1, in scaled units. kind: `bridge` or `ot`."""
        with self._lock:
            if (core, k, kind) not in self._couplings:
                if kind == "bridge" and self.method.graph != "path":
                    solved = couple_cores(self.method, self.snapshots, self._clouds)
                    self._couplings |= {(c, i, "bridge"): found for (c, i), found in solved.items()}
                else:
                    self._couplings[core, k, kind] = self._couple(k, core, kind)
            return self._couplings[core, k, kind]

    def _couple(self, k: int, core: int, kind: str) -> Coupling:
        x, y = (self._clouds(core)[i].merged for i in (k, k + 1))
        if kind == "ot":
            return between.transport(x, y)
        steps = np.diff(self.snapshots.times_seconds)
        eps = edge_eps(x, y, self.method.eps, self.method.eps_unit)
        if self.method.time_scaled and self.method.eps_unit != "absolute":
            eps *= float(steps[k] / steps.mean())
        euclid = self.method.cost == "euclid"
        return solve_edge(x, y, eps, stopping=self.method.stopping, euclid=euclid)

    def _clouds(self, core: int) -> list[Cloud]:
        return [Cloud(self._into(s.cloud.atoms), s.cloud.weights) for s in self.snapshots.of(core)]

    def _running(
        self, k: int, lam: float, time: float, core: int, method: str, seed: int
    ) -> Distribution:
        """The law of the runs that still run."""
        shots = self.snapshots.of(core)
        warnings: list[str] = []
        details: dict[str, float] = {"lam": lam}
        if method == "phase":
            cloud, missed = phase(self.snapshots, core, time)
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
        atoms = self._bounded(self._out(cloud.atoms))
        found = Distribution.of(Cloud(atoms, cloud.weights), self.components, method)
        if exact is not None and not self._log.any() and (self.scale > 0).all():
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

    def _scale(self) -> np.ndarray:
        running = [
            Cloud(self._logged(shot.cloud.atoms), shot.cloud.weights)
            for shots in self.snapshots.cores.values()
            for shot in shots
            if shot.idle_ratio < 1
        ]
        d = len(self.components)
        scale = scale_of(running) if running else np.ones(d)
        for name, factor in (self.method.scale or {}).items():
            if not (factor >= 0 and np.isfinite(factor)):
                raise UsageError(f"the scale of {name!r} is {factor}")
            scale[self.components.index(name)] = factor
        return scale

    def _logged(self, atoms: np.ndarray) -> np.ndarray:
        return (
            np.where(self._log, np.log1p(np.maximum(atoms, 0)), atoms) if self._log.any() else atoms
        )

    def _into(self, atoms: np.ndarray) -> np.ndarray:
        # A component of scale 0 does not count in distances, but must still be interpolated.
        return self._logged(atoms) * np.where(self.scale > 0, self.scale, TINY)

    def _out(self, atoms: np.ndarray) -> np.ndarray:
        atoms = atoms / np.where(self.scale > 0, self.scale, TINY)
        if not self._log.any():
            return atoms
        return np.where(self._log, np.expm1(np.minimum(atoms, 700)), atoms)

    def _bounded(self, atoms: np.ndarray) -> np.ndarray:
        """Rates are not negative, and misses are not more than requests."""
        atoms = np.maximum(atoms, 0)
        limits = self.method.at_most
        for name, other in (paired_counters(self.components) if limits is None else limits).items():
            low, high = self.components.index(name), self.components.index(other)
            atoms[:, low] = np.minimum(atoms[:, low], atoms[:, high])
        return atoms


TINY = 1e-12  # stands for a scale of 0


def paired_counters(components: Sequence[str]) -> dict[str, str]:
    """{misses: requests} by how counters are named: `x_misses` with `x_requests`, `x_references`, `xs`."""
    found = {}
    for name in components:
        if "misses" not in name:
            continue
        for word in ("requests", "references", "loads", "accesses"):
            for other in (name.replace("misses", word), name.replace("load-misses", "loads")):
                if other != name and other in components:
                    found[name] = other
    return found
