"""Readings of one quantity over clock time: running totals that begin anew, levels, counts of a sample.

A running total (a counter of Prometheus) that goes down has begun anew, and has counted from 0 since: the
rule of Prometheus's `rate`. A level (a gauge) is taken as it is. Where readings are missing for more than
GAP of their usual distance, what was between is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jostle.errors import BadData

Kind = Literal["total", "level", "count"]
GAP = 2.5  # usual distances of readings
_TOO_OFTEN, _ENOUGH = 0.2, 10  # share of the changes of a total that are downwards, of so many
# Names by the conventions of Prometheus and OpenMetrics.
_TOTALS = ("_total", "_count", "_sum", "_bucket")


def usual_kind(name: str) -> Kind:
    """Return what a name says: a running total by the endings that Prometheus's conventions give it, or a
    level."""
    return "total" if name.endswith(_TOTALS) else "level"


@dataclass(frozen=True, eq=False)
class Series:
    """Readings of one quantity of one instance over time. times_seconds: (n,) since 1970, rising. values:
    (n,), NaN where nothing was read; of `count`, over the time since the reading before. unsure: how many
    readings may have been an hour later."""

    name: str
    kind: Kind
    instance: str
    times_seconds: np.ndarray
    values: np.ndarray
    unsure: int = 0

    @property
    def step_seconds(self) -> float:
        """The usual distance of readings; 0 for fewer than two."""
        return float(np.median(np.diff(self.times_seconds))) if len(self.times_seconds) > 1 else 0.0

    def restarts(self, where: str | None = None) -> int:
        """Return how often a total began anew. Raises BadData for one that goes down too often to be a total,
        and for counts below 0."""
        if self.kind != "level" and np.any(self.values < 0):
            raise BadData(
                f"{self.name} is below 0, which no count is",
                where=where,
                fix=f"Say by `gauge` that {self.name} is a level.",
            )
        if self.kind != "total":
            return 0
        changes = np.diff(self.values[np.isfinite(self.values)])
        changes = changes[changes != 0]
        down = int((changes < 0).sum())
        if len(changes) >= _ENOUGH and down > _TOO_OFTEN * len(changes):
            raise BadData(
                f"{self.name} goes down in {down} of {len(changes)} changes: it is not a running total",
                where=self.instance or None,
                fix=f"Say by `gauge` that {self.name} is a level.",
            )
        return down

    def over(self, edges: np.ndarray) -> np.ndarray:
        """Return (m,) of the m intervals between m + 1 edges: what was counted, or the level at the end; NaN
        where that is not known."""
        known = np.isfinite(self.values)
        if self.kind == "level":
            return self._levels(edges)
        if self.kind == "total":
            times, values = self.times_seconds[known], self.values[known]
            steps = np.diff(values)
            steps = np.where(steps < 0, values[1:], steps)
            is_known = np.diff(times) <= GAP * self.step_seconds
        else:
            times, steps = self.times_seconds, self.values[1:]
            is_known = known[1:] & (np.diff(times) <= GAP * self.step_seconds)
        if len(times) < 2:
            return np.full(len(edges) - 1, np.nan)
        total = np.interp(edges, times, np.r_[0.0, np.cumsum(np.where(is_known, steps, 0.0))])
        # Seconds not known until an edge: an interval with any of them is not known.
        lengths = np.diff(times)
        dark = np.interp(edges, times, np.r_[0.0, np.cumsum(np.where(is_known, 0.0, lengths))])
        slack = 1e-6 * self.step_seconds + 2 * np.spacing(np.abs(edges).max())
        inside = (edges[:-1] >= times[0] - slack) & (edges[1:] <= times[-1] + slack)
        return np.where(inside & (np.diff(dark) <= slack), np.diff(total), np.nan)

    def _levels(self, edges: np.ndarray) -> np.ndarray:
        """Return the last reading until each edge but the first, as long as it is fresh."""
        times = self.times_seconds
        slack = 1e-6 * self.step_seconds + 2 * np.spacing(np.abs(edges).max())
        last = np.searchsorted(times, edges[1:] + slack, side="right") - 1
        place = np.maximum(last, 0)
        fresh = edges[1:] - times[place] <= GAP * self.step_seconds / 2 + slack
        fresh |= times[place] > edges[:-1] + slack
        return np.where(fresh & (last >= 0), self.values[place], np.nan)


def added(parts: list[Series], edges: np.ndarray) -> np.ndarray:
    """Sum several series of one name over the same intervals. A series that has not begun or has ended adds
    nothing; one that is missing in between leaves the sum not known."""
    if len(parts) == 1:
        return parts[0].over(edges)
    total, anyone = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1, bool)
    for one in parts:
        values = one.over(edges)
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            continue
        there = slice(known[0], known[-1] + 1)
        total[there] += values[there]
        anyone[there] = True
    return np.where(anyone, total, np.nan)
