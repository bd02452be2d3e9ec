"""Across contexts: the distribution at a context that nobody measured.

A context is a number: how many co-runners, what share of the cache or of the bandwidth. At any time, the
forecasts at the measured contexts are the snapshots of a bridge whose abscissa is the context instead of
time: the same solver answers between two of them. Unlike in time, here no trace could have been read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from jostle.bridge import Bridge, Distribution, Forecast, Snapshot, Snapshots, few
from jostle.errors import BadData, UsageError

IN_CONTEXT = ("nearest", "mixture", "ot", "bridge", "spline")


class Contexts:
    """Forecasts of one workload in several contexts: {value: forecast}, at least two values."""

    def __init__(self, forecasts: Mapping[float, Forecast], method: Bridge | None = None) -> None:
        if len(forecasts) < 2:
            raise UsageError(f"{len(forecasts)} context is not enough to interpolate between")
        if not all(np.isfinite(value) for value in forecasts):
            raise UsageError("contexts must be finite numbers")
        self.values = tuple(sorted(forecasts))
        self.forecasts = {value: forecasts[value] for value in self.values}
        first = self.forecasts[self.values[0]]
        for value, forecast in self.forecasts.items():
            if forecast.components != first.components:
                raise BadData(
                    f"context {value:g} has components {', '.join(forecast.components)}, "
                    f"context {self.values[0]:g} {', '.join(first.components)}"
                )
        self.method = method or replace(first.method, method="bridge", snapshots=None)
        if self.method.method not in IN_CONTEXT:
            raise UsageError(
                f"method {self.method.method!r} cannot interpolate contexts",
                fix=f"One of {', '.join(IN_CONTEXT)}.",
            )

    def at(self, time_seconds: float, context: float, core: int = 0) -> Distribution:
        """The distribution at a time in a context; at a measured context, that context's forecast.

        Raises UsageError outside the measured contexts or times.
        """
        low, high = self.values[0], self.values[-1]
        if not low <= context <= high:
            raise UsageError(
                f"context {context:g} lies outside those measured, {low:g} to {high:g}",
                fix="Measure beyond it; a bridge does not extrapolate.",
            )
        if context in self.forecasts:
            return self.forecasts[context].at(time_seconds, core)
        shots, warnings = [], []
        for value in self.values:
            distribution = self.forecasts[value].at(time_seconds, core)
            warnings += [f"context {value:g}: {text}" for text in distribution.warnings]
            shots.append(_as_snapshot(distribution, self.method.atoms))
        across = Forecast(
            Snapshots(np.array(self.values), {core: tuple(shots)}, self.forecasts[low].components),
            self.method,
        )
        answer = across.at(context, core)
        return replace(answer, time_seconds=time_seconds, warnings=(*answer.warnings, *warnings))


def _as_snapshot(distribution: Distribution, atoms: int) -> Snapshot:
    cloud = few(distribution.running, atoms, 0)
    return Snapshot(cloud, np.full(len(cloud), -1), distribution.idle_ratio)
