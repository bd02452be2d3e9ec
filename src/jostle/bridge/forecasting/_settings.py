"""How to forecast: the settings, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from jostle.bridge.forecasting._interpolate import METHODS as SINGLE
from jostle.bridge.problem._clock import ClockKind
from jostle.bridge.solvers._sinkhorn import Stopping
from jostle.errors import UsageError

METHODS = (*SINGLE, "select")
GRAPHS = ("path", "barycentric", "series_parallel")


@dataclass(frozen=True)
class Bridge:
    """How to forecast the distribution of resource use at any time from snapshots of it.

    method: `bridge` (entropic coupling), `ot` (exact transport), `spline`, `mixture`, `nearest`, `phase`
    (needs a clock), or `select`: the best of them in each interval by leave-one-snapshot-out.
    graph: how cores hang together: `path` (each core by itself), `barycentric`, `series_parallel`.
    components: counters that make the state, None for all. snapshots: a number of times, or the times in
    seconds; None for all sample times of the traces. placement: of a number of times, `even`, or `clock`:
    where they catch the most phases (see `place`). clock, clock_kind: the counter of progress, `work` or
    `beats`; clock_marks, clock_period: see `Clock`. eps, eps_unit: see `edge_eps`; `inf` is the independent
    coupling, `cv` takes the best of four by leaving snapshots out. time_scaled: eps of an interval in
    proportion to its length, as Brownian motion has it. noise: the bridge's own noise between snapshots.
    cost: `squared` or `euclid`. scale: {component: factor} instead of 1 / the noise within snapshots.
    log1p: components, like misses, that are interpolated as log(1 + rate). at_most: {component: what it
    cannot exceed}; None: misses their requests, by name.
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
    clock_marks: tuple[float, ...] = ()
    clock_period: int | None = None
    eps: float | Literal["cv"] = 0.1
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
        if isinstance(self.eps, str):
            if self.eps != "cv":
                raise UsageError(f"eps {self.eps!r}", fix="A number above 0, inf, or 'cv'.")
            if self.eps_unit != "spread":
                raise UsageError("eps 'cv' chooses in units of the spread")
        elif not self.eps > 0:
            raise UsageError(f"eps {self.eps} is not above 0")
        if min(self.atoms, self.barycentre_atoms, self.terminal_atoms or 1) < 1:
            raise UsageError("a number of atoms must be at least 1")
        if self.method == "phase" and self.clock is None:
            raise UsageError("method 'phase' needs a clock", fix="Name the counter of progress.")

    @classmethod
    def paper(cls, scale: Mapping[str, float], eps: float = 0.1) -> Bridge:
        """The settings of the paper: one eps for all edges, fixed scales, no noise, no time in eps."""
        return cls(eps=eps, eps_unit="absolute", scale=scale, noise=False, time_scaled=False)
