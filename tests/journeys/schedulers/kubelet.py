"""Pods that run on the nodes of the API server: each has work to do, and is as fast as others let it be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.journeys.schedulers.api_server import ApiServer


@dataclass
class RunningPod:
    """left: work to do, in seconds alone."""

    name: str
    workload: str
    node: str
    started_at: float
    left: float


class Kubelet:
    """alone: (workload, node) -> seconds. slowdown: (workload, those beside it) -> how much longer. Pods end
    when the law says so, to the microsecond, however late this thread is. seconds: {pod: what it took}."""

    def __init__(
        self,
        api: ApiServer,
        alone: Callable[[str, str], float],
        slowdown: Callable[[str, list[str]], float],
    ) -> None:
        self.api, self.alone, self.slowdown = api, alone, slowdown
        self.seconds: dict[str, float] = {}
        self._running: dict[str, RunningPod] = {}
        self._now, self._lock, self._end = time.time(), threading.RLock(), threading.Event()
        api.when_bound = self.begin
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def begin(self, name: str, node: str) -> float:
        """When it starts, in seconds since 1970."""
        with self._lock:
            now = max(time.time(), self._now)
            self._advance(now)
            workload = self.api.pods[name]["metadata"]["labels"]["jostle/workload"]
            left = self.alone(workload, node)
            self._running[name] = RunningPod(name, workload, node, now, left)
            return now

    def _rate(self, pod: RunningPod) -> float:
        beside = [o.workload for o in self._running.values() if o.node == pod.node and o is not pod]
        return 1 / self.slowdown(pod.workload, beside)

    def _advance(self, until: float) -> None:
        while self._running:
            rates = {name: self._rate(pod) for name, pod in self._running.items()}
            left = {name: pod.left / rates[name] for name, pod in self._running.items()}
            first = min(left, key=lambda name: left[name])
            step = min(left[first], until - self._now)
            for name, pod in self._running.items():
                pod.left -= step * rates[name]
            self._now += step
            if self._now >= until:
                break
            done = self._running.pop(first)
            self.seconds[first] = self._now - done.started_at
            self.api.end_pod(first, self._now)
        self._now = until

    def _go_on(self) -> None:
        while not self._end.wait(0.02):
            with self.api._lock, self._lock:
                self._advance(max(time.time(), self._now))
