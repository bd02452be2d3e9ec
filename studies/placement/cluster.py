"""A cluster over time: jobs come, share nodes or wait, slow each other down as was measured, and go.

The truth are sets of workloads measured together that were held out. A job may join a node only where the set
that comes of it was measured. What is left when one goes runs on at its measured times, or, where it was not
measured by itself, at those of the set before.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from studies.placement.arrivals import Arrivals
from studies.placement.policies import NamedPolicy
from studies.placement.sets import MeasuredSets

LOOKED_AT = 40  # waiting jobs that are offered a place whenever one comes free


@dataclass(frozen=True)
class ClusterJob:
    """work: seconds that it takes alone. ratio: the runtime over it at most."""

    platform: int
    workload: int
    arrival: float
    work: float
    ratio: float


@dataclass(frozen=True)
class Played:
    """One policy over one draw of jobs. violated: jobs that took longer than their limit, of finished ones;
    waits: (jobs,) seconds in the queue. node_seconds: with at least one job; alone_seconds: what they would
    be without sharing. decisions: sets looked at, in so many seconds of this machine."""

    policy: str
    jobs: int
    violated: int
    shared: int
    waits: np.ndarray
    node_seconds: float
    alone_seconds: float
    most_nodes: int
    decisions: int
    seconds: float


@dataclass
class _Running:
    job: ClusterJob
    number: int
    start: float
    done: float = 0.0  # seconds of work
    rate: float = 1.0  # of work per second


@dataclass
class _Node:
    platform: int
    running: list[_Running] = field(default_factory=list)
    touched: float = 0.0
    version: int = 0


class Truth:
    """Measured sets, by platform and members, with what a policy expects of each. alone: (platforms,
    workloads) seconds."""

    def __init__(self, parts: Sequence[MeasuredSets]) -> None:
        self.parts = [_whole(part) for part in parts]
        self.at: dict[tuple[int, ...], tuple[int, int]] = {}
        for number, part in enumerate(self.parts):
            rows = np.column_stack([part.platform, part.members]).tolist()
            self.at.update({tuple(row): (number, place) for place, row in enumerate(rows)})
        self.slots = max((part.members.shape[1] for part in self.parts if len(part)), default=1)

    def times(self, platform: int, members: tuple[int, ...]) -> np.ndarray | None:
        """(k,) seconds over those alone; None where the set was not measured."""
        if len(members) == 1:
            return np.ones(1)
        results = self.at.get((platform, *members))
        if results is None:
            return None
        part, row = self.parts[results[0]], results[1]
        return part.seconds[row] / part.solo[row]


def _whole(part: MeasuredSets) -> MeasuredSets:
    """The sets of which everybody was measured, beside others and alone."""
    return part.take(
        np.flatnonzero((np.isfinite(part.seconds) & np.isfinite(part.solo)).all(axis=1))
    )


def drawn_jobs(
    truth: Truth, arrivals: Arrivals, ratios: np.ndarray, random: np.random.Generator
) -> list[ClusterJob]:
    """A job for each arrival. Measured sets are drawn, and their members come one after the other, so that
    those come near each other of whom it is known how they share."""
    sets = [
        (int(part.platform[row]), part.members[row].tolist())
        for part in truth.parts
        for row in range(len(part))
    ]
    results: list[ClusterJob] = []
    ratio: dict[tuple[int, int], float] = {}
    while len(results) < len(arrivals):
        platform, members = sets[int(random.integers(len(sets)))]
        for workload in random.permutation(members).tolist()[: len(arrivals) - len(results)]:
            n = len(results)
            limit = ratio.setdefault((platform, workload), float(random.choice(ratios)))
            at, stay = float(arrivals.seconds[n]), float(arrivals.stay_seconds[n])
            results.append(ClusterJob(platform, workload, at, stay, limit))
    return results


class Cluster:
    """nodes: as many of each platform as its share of the work, at least one."""

    def __init__(
        self,
        truth: Truth,
        jobs: Sequence[ClusterJob],
        nodes: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.truth, self.jobs, self.clock = truth, jobs, clock
        work: dict[int, float] = {}
        for job in jobs:
            work[job.platform] = work.get(job.platform, 0.0) + job.work
        total = sum(work.values())
        self.places = [
            p for p, w in sorted(work.items()) for _ in range(max(1, round(nodes * w / total)))
        ]

    def play(self, policy: NamedPolicy) -> Played:
        """All jobs, from the first arrival to the last end."""
        began = self.clock()
        self.expected = [
            policy.expected(part) if len(part) else part.seconds for part in self.truth.parts
        ]
        self.nodes = [_Node(p) for p in self.places]
        self.by_platform: dict[int, list[int]] = {}
        for number, p in enumerate(self.places):
            self.by_platform.setdefault(p, []).append(number)
        self.ends: list[tuple[float, int, int]] = []
        self.waiting: dict[int, list[int]] = {p: [] for p in self.by_platform}
        self.decisions = self.violated = self.most = 0
        self.busy = 0.0
        self.shared: set[int] = set()
        self.waits = np.zeros(len(self.jobs))
        order = sorted(range(len(self.jobs)), key=lambda n: self.jobs[n].arrival)
        place = 0
        while place < len(order) or self.ends:
            arrives = self.jobs[order[place]].arrival if place < len(order) else np.inf
            if self.ends and self.ends[0][0] <= arrives:
                self._end(*heapq.heappop(self.ends))
                continue
            number, place = order[place], place + 1
            if not self._place(number, arrives):
                self.waiting[self.jobs[number].platform].append(number)
        seconds = self.clock() - began
        alone = sum(job.work for job in self.jobs)
        return Played(
            policy.name,
            len(self.jobs),
            self.violated,
            len(self.shared),
            self.waits,
            self.busy,
            alone,
            self.most,
            self.decisions,
            seconds,
        )

    def _place(self, number: int, now: float) -> bool:
        """Onto the fullest node where the policy accepts it, else an empty one."""
        job = self.jobs[number]
        best: _Node | None = None
        at = -1
        for place in self.by_platform[job.platform]:
            node = self.nodes[place]
            if best is not None and len(node.running) <= len(best.running):
                continue
            if not node.running or self._accepts(node, job):
                best, at = node, place
        if best is None:
            return False
        self._advance(best, now)
        best.running.append(_Running(job, number, now))
        self.waits[number] = now - job.arrival
        self._changed(best, at, now)
        self.most = max(self.most, sum(bool(node.running) for node in self.nodes))
        return True

    def _accepts(self, node: _Node, job: ClusterJob) -> bool:
        people = sorted([*(one.job for one in node.running), job], key=lambda one: one.workload)
        results = self.truth.at.get((job.platform, *(one.workload for one in people)))
        if results is None:
            return False
        self.decisions += 1
        number, row = results
        limit = self.truth.parts[number].solo[row] * [one.ratio for one in people]
        return bool((self.expected[number][row] <= limit).all())

    def _advance(self, node: _Node, now: float) -> None:
        if node.running:
            self.busy += now - node.touched
        for one in node.running:
            one.done += (now - node.touched) * one.rate
        node.touched = now

    def _changed(self, node: _Node, place: int, now: float) -> None:
        """New rates, and when the next of them ends."""
        node.version += 1
        if not node.running:
            return
        node.running.sort(key=lambda one: one.job.workload)
        times = self.truth.times(node.platform, tuple(one.job.workload for one in node.running))
        if times is not None:
            for one, slow in zip(node.running, times, strict=True):
                one.rate = 1 / float(slow)
        if len(node.running) > 1:
            self.shared |= {one.number for one in node.running}
        left = min(max(0.0, one.job.work - one.done) / one.rate for one in node.running)
        heapq.heappush(self.ends, (now + left, place, node.version))

    def _end(self, now: float, place: int, version: int) -> None:
        node = self.nodes[place]
        if version != node.version:
            return  # somebody came or went since
        self._advance(node, now)
        for one in [one for one in node.running if one.done >= one.job.work * (1 - 1e-9)]:
            node.running.remove(one)
            self.violated += (now - one.start) > one.job.work * one.job.ratio * (1 + 1e-6)
        self._changed(node, place, now)
        queue = self.waiting[node.platform]
        for number in queue[:LOOKED_AT]:
            if self._place(number, now):
                queue.remove(number)


def summed_outcomes(outcomes: Sequence[Played]) -> list[dict[str, Any]]:
    """A row for each policy over all draws of jobs."""
    rows = []
    alone = sum(one.alone_seconds for one in outcomes if one.policy == "clairvoyant")
    most = alone - sum(one.node_seconds for one in outcomes if one.policy == "clairvoyant")
    for name in dict.fromkeys(one.policy for one in outcomes):
        mine = [one for one in outcomes if one.policy == name]
        jobs = sum(one.jobs for one in mine)
        waits = np.concatenate([one.waits for one in mine])
        saved = sum(one.alone_seconds - one.node_seconds for one in mine)
        saved = 0.0 if abs(saved) < 1e-9 * alone else saved
        each = [one.violated / max(1, one.jobs) for one in mine]
        error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else float("nan")
        rows.append(
            {
                "policy": name,
                "jobs": jobs,
                "violated_ratio": sum(one.violated for one in mine) / max(1, jobs),
                "violated_error_ratio": float(error),
                "shared_ratio": sum(one.shared for one in mine) / max(1, jobs),
                "node_hours": sum(one.node_seconds for one in mine) / 3600,
                "saved_ratio": saved / alone if alone else 0.0,
                "saved_of_clairvoyant_ratio": saved / most if most > 0 else 0.0,
                "wait_mean_seconds": float(waits.mean()) if len(waits) else 0.0,
                "wait_p95_seconds": float(np.quantile(waits, 0.95)) if len(waits) else 0.0,
                "most_nodes": max(one.most_nodes for one in mine),
                "decisions": sum(one.decisions for one in mine),
                "decisions_per_second": sum(one.decisions for one in mine)
                / max(1e-9, sum(one.seconds for one in mine)),
            }
        )
    return rows
