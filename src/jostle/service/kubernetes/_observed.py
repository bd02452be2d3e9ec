"""Pods that have ended as runs with stretches: who was on their node from when on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jostle.service.kubernetes._pods import Pod


@dataclass(frozen=True)
class PodStay:
    """A pod on a node. start, end: seconds since 1970; end is infinite while it is there."""

    workload: str
    node: str
    start: float
    end: float = float("inf")


class ObservedPods:
    """since: seconds since 1970; who was beside a pod that began before is not known."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._stays: dict[str, PodStay] = {}
        self._told: set[str] = set()

    def see(
        self, pods: Sequence[Pod], platform_of: Mapping[str, str], now: float
    ) -> list[dict[str, Any]]:
        """Runs that have ended since, as they are sent to a service. pods: all that are there now."""
        there = {pod.id: pod for pod in pods if pod.node and pod.started_at is not None}
        for id, pod in there.items():
            start = pod.started_at
            assert start is not None
            end = float("inf") if pod.ended_at is None else pod.ended_at
            self._stays[id] = PodStay(pod.workload, pod.node, start, end)
        for id, stay in self._stays.items():
            if id not in there and stay.end > now:  # taken away before it had ended
                self._stays[id] = replace(stay, end=now)
        runs = []
        for id, pod in there.items():
            stay = self._stays[id]
            if id in self._told or stay.end > now:
                continue
            self._told.add(id)
            is_known = pod.is_measured and stay.start >= self.since and stay.end > stay.start
            if is_known and stay.node in platform_of:
                runs.append(self._run(id, stay, platform_of[stay.node]))
        self._forget(there, now)
        return runs

    def _run(self, id: str, stay: PodStay, platform: str) -> dict[str, Any]:
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

    def _forget(self, there: Mapping[str, Pod], now: float) -> None:
        """What ended before everybody that is still to be told of began."""
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
