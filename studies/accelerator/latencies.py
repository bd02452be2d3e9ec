"""Latencies of services beside batch work: as predicted, and as they really are on another day.

What really happens is simulated too, since no real GPU is measured: on drifted copies (each task's time and
gap off by a random factor) and with less bandwidth of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.accelerator import Application, Device, DeviceTenant, SimulatedLoad, arranged
from studies.accelerator.made_up import drifted

MOST = 15  # instances of a batch application on a GPU
QUERIES = 4
COPIES = 3  # drifted ones, over which slowdowns are averaged


def slowdown(
    service: Application,
    beside: Sequence[Application],
    device: Device,
    sharing: str = "concurrent",
) -> float:
    """Mean latency over that alone."""
    tenants = [DeviceTenant(one) for one in (service, *beside)]
    found = arranged(tenants, device, sharing, draw=SimulatedLoad(QUERIES, lead=0))
    return found.latencies[0].mean_seconds / service.solo_seconds


def predict_slowdowns(
    services: Sequence[Application],
    batches: Sequence[Application],
    device: Device,
    sharing: str = "concurrent",
) -> np.ndarray:
    """(services, batches, 16) mean latency over solo with 0 to 15 instances."""
    table = np.ones((len(services), len(batches), MOST + 1))
    for s, b, k in np.ndindex(len(services), len(batches), MOST):
        table[s, b, k + 1] = slowdown(services[s], [batches[b]] * (k + 1), device, sharing)
    return table


@dataclass(eq=False)
class World:
    """What really happens: slowdowns of services beside batch work on drifted copies, each simulated once."""

    services: Sequence[Application]
    batches: Sequence[Application]
    device: Device
    seed: int
    _known: dict[tuple[int, int, int], np.ndarray] = field(default_factory=dict)
    _drifted: dict[tuple[str, int], Application] = field(default_factory=dict)

    def slowdowns(self, s: int, b: int, k: int) -> np.ndarray:
        """(copies,) of service s beside k of batch b."""
        if (s, b, k) not in self._known:
            memory = self.device.resources["memory"] * 0.97
            device = replace(self.device, resources={"memory": memory})
            slow = []
            for draw in (self.seed * 1_000_003 + copy for copy in range(COPIES)):
                beside = [self._copy(self.batches[b], draw * 100 + n + 7) for n in range(k)]
                slow.append(slowdown(self._copy(self.services[s], draw), beside, device))
            self._known[s, b, k] = np.array(slow)
        return self._known[s, b, k]

    def _copy(self, app: Application, draw: int) -> Application:
        key = app.name, draw
        if key not in self._drifted:
            self._drifted[key] = drifted(app, draw)
        return self._drifted[key]
