"""Distributions of resource use at any time, by graph-structured Schrödinger bridges and what beats them.

    found = jostle.forecast(traces, jostle.Bridge()).at(1.5, core=0)
    found.quantile(0.95)                                     # (d,) per component
    found.exceedance_ratio({"instructions": 2e9})            # P(state > budget)

This file is the room's whole public face. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._barycentric import Barycentric, barycentre_support, solve_barycentric
    from ._clock import Clock
    from ._clouds import Cloud, scale_of, squared_distances
    from ._contexts import Contexts
    from ._demand import Exceedance, exceedance, exceedance_of_any, total_demand
    from ._distribution import Distribution
    from ._forecast import Forecast, forecast
    from ._interpolate import METHODS, transport, wasserstein
    from ._path import edge_eps, solve_path, solve_path_jointly
    from ._phase import place
    from ._select import Selection
    from ._series_parallel import SeriesParallel, solve_series_parallel
    from ._settings import Bridge
    from ._sinkhorn import Convergence, Coupling, Stopping, solve_edge
    from ._snapshots import Snapshot, Snapshots
    from ._thin import few, thinned

_HOMES = {
    "METHODS": "_interpolate",
    "Barycentric": "_barycentric",
    "Bridge": "_settings",
    "Clock": "_clock",
    "Cloud": "_clouds",
    "Contexts": "_contexts",
    "Convergence": "_sinkhorn",
    "Coupling": "_sinkhorn",
    "Distribution": "_distribution",
    "Exceedance": "_demand",
    "Forecast": "_forecast",
    "Selection": "_select",
    "SeriesParallel": "_series_parallel",
    "Snapshot": "_snapshots",
    "Snapshots": "_snapshots",
    "Stopping": "_sinkhorn",
    "barycentre_support": "_barycentric",
    "edge_eps": "_path",
    "exceedance": "_demand",
    "exceedance_of_any": "_demand",
    "few": "_thin",
    "forecast": "_forecast",
    "place": "_phase",
    "scale_of": "_clouds",
    "solve_barycentric": "_barycentric",
    "solve_edge": "_sinkhorn",
    "solve_path": "_path",
    "solve_path_jointly": "_path",
    "solve_series_parallel": "_series_parallel",
    "squared_distances": "_clouds",
    "thinned": "_thin",
    "total_demand": "_demand",
    "transport": "_interpolate",
    "wasserstein": "_interpolate",
}

__all__ = [
    "METHODS",
    "Barycentric",
    "Bridge",
    "Clock",
    "Cloud",
    "Contexts",
    "Convergence",
    "Coupling",
    "Distribution",
    "Exceedance",
    "Forecast",
    "Selection",
    "SeriesParallel",
    "Snapshot",
    "Snapshots",
    "Stopping",
    "barycentre_support",
    "edge_eps",
    "exceedance",
    "exceedance_of_any",
    "few",
    "forecast",
    "place",
    "scale_of",
    "solve_barycentric",
    "solve_edge",
    "solve_path",
    "solve_path_jointly",
    "solve_series_parallel",
    "squared_distances",
    "thinned",
    "total_demand",
    "transport",
    "wasserstein",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
