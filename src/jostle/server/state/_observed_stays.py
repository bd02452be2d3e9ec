"""Pods and jobs that have ended as runs with stretches: who was on their node from when on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True)
class ObservedStay:
    """A workload's stay on a node. start, end: seconds since 1970; end is infinite while it is there.
    is_measured: whether its time is that of one run that succeeded."""

    workload: str
    node: str
    start: float
    end: float = math.inf
    is_measured: bool = False


class ObservedStays:
    """Stays on nodes, from which co-runners of a run are read. since: seconds since 1970; who was beside one
    that began before is not known."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._stays: dict[str, ObservedStay] = {}
        self._told: set[str] = set()

    def see(
        self, there: Mapping[str, ObservedStay], platform_of: Mapping[str, str], now: float
    ) -> list[dict[str, Any]]:
        """Return the runs that have ended since, as they are sent to a service. there: all that are there
        now, by id."""
        for id, stay in self._stays.items():
            if id not in there and stay.end > now:  # taken away before it had ended
                self._stays[id] = replace(stay, end=now)
        self._stays |= there
        runs = []
        for id, stay in there.items():
            if id in self._told or stay.end > now:
                continue
            self._told.add(id)
            is_known = stay.is_measured and stay.start >= self.since and stay.end > stay.start
            if is_known and stay.node in platform_of:
                runs.append(self._run(id, stay, platform_of[stay.node]))
        self._forget(there, now)
        return runs

    def _run(self, id: str, stay: ObservedStay, platform: str) -> dict[str, Any]:
        beside = [
            other
            for key, other in self._stays.items()
            if key != id and other.node == stay.node
            and other.start < stay.end and other.end > stay.start
        ]  # fmt: skip
        times = {t for one in beside for t in (one.start, one.end) if stay.start < t < stay.end}
        stretches: list[dict[str, Any]] = []
        for time in sorted({stay.start, *times}):
            company = sorted(one.workload for one in beside if one.start <= time < one.end)
            if not stretches or stretches[-1]["corunners"] != company:
                stretches.append({"start_seconds": time - stay.start, "corunners": company})
        item = {
            "id": id,
            "workload": stay.workload,
            "platform": platform,
            "runtime_seconds": stay.end - stay.start,
            "measured_at": datetime.fromtimestamp(stay.start, UTC).isoformat(),
        }
        if len(stretches) == 1:
            return {**item, "corunners": stretches[0]["corunners"]}
        return {**item, "stretches": stretches}

    def _forget(self, there: Mapping[str, ObservedStay], now: float) -> None:
        """Drop stays that no unreported run can have overlapped: those that ended before the earliest start
        of a run that still has to be recorded."""
        open_ = (
            stay.start
            for id, stay in self._stays.items()
            if id not in self._told and stay.end > now
        )
        earliest = min(open_, default=now)
        self._stays = {
            id: one for id, one in self._stays.items() if one.end > earliest or id in there
        }
        self._told &= set(there)
