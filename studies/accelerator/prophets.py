"""Made-up services and batch applications, with the names of Prophet's (ASPLOS 2017) and its division into
compute and transfer work (Fig. 11), and latencies of services beside batch work.

What really happens is simulated too, since no real GPU is measured: on drifted copies (each task's time and
gap off by a random factor) and with less bandwidth of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.data import gpu_named
from jostle.gpu import Application, Device, DeviceTenant, SimulatedLoad, Task, arranged

MOST = 15  # instances of a batch application on a GPU
QUERIES = 4
COPIES = 3  # drifted ones, over which slowdowns are averaged
DRIFT = 0.05  # standard deviation of the log of a task's time
# name: (ms alone, share of compute, kernels, most PEs' worth of blocks, share of GB needed, pinned)
SERVICES = {
    "asr": (42, 0.95, 40, 1.5, 0.5, False),
    "gmm": (30, 0.9, 12, 2.0, 0.7, False),
    "stemmer": (22, 0.35, 6, 0.7, 0.3, False),
    "dig": (8, 0.8, 24, 0.8, 0.4, False),
    "imc": (26, 0.85, 32, 1.2, 0.6, False),
    "ner": (12, 0.4, 16, 0.4, 0.2, False),
    "pos": (10, 0.35, 14, 0.4, 0.2, False),
}
BATCHES = {
    "hw": (60, 0.95, 20, 3.0, 0.3, False),
    "md": (50, 0.9, 10, 4.0, 0.1, False),
    "kms": (40, 0.6, 24, 1.0, 0.9, False),
    "mc": (35, 0.95, 60, 0.15, 0.0, False),
    "bp": (24, 0.5, 8, 1.5, 0.8, False),
    "bfs": (30, 0.3, 20, 0.8, 0.7, False),
    "pf": (28, 0.25, 12, 0.6, 0.4, False),
    "hs": (36, 0.7, 20, 1.2, 0.5, False),
    "nn": (18, 0.2, 4, 0.5, 0.5, False),
    "bfs-ex": (22, 0.4, 20, 0.8, 0.7, True),
    "pf-ex": (20, 0.35, 12, 0.6, 0.4, True),
}


def made_up(name: str, seed: int = 0) -> Application:
    """One of SERVICES or BATCHES: transfers in, kernels with short gaps, transfers out."""
    milliseconds, compute, kernels, most, need, pinned = {**SERVICES, **BATCHES}[name]
    device = k40()
    random = np.random.default_rng([seed, *name.encode()])
    weights = random.lognormal(0, 0.6, kernels)
    seconds = milliseconds * 1e-3 * compute * weights / weights.sum()
    moved = milliseconds * 1e-3 * (1 - compute)
    bandwidth = device.resources["memory"] / device.pes
    tasks = [Task("htod", moved * part, 2e-5, exclusive=pinned) for part in (0.35, 0.25)]
    for time in seconds:
        pes = most * device.pes * random.uniform(0.3, 1.0)
        blocks = max(1, round(pes * 8))  # 8 blocks of 8 warps fill a PE
        needs = {"memory": float(need * bandwidth * random.uniform(0.6, 1.2))}
        tasks.append(Task("kernel", float(time), 1e-5, blocks, 8, 1.0, needs))
    tasks.append(Task("dtoh", moved * 0.4, 2e-5, exclusive=pinned))
    return Application.of(name, *tasks)


def drifted(app: Application, seed: int) -> Application:
    """The application on another day: every task's time and gap off by a random factor."""
    random = np.random.default_rng([seed, 1])
    off = np.exp(random.normal(0, DRIFT, (len(app), 2)))
    old = app.columns
    seconds, gaps = old.seconds * off[:, 0], old.gap_seconds * off[:, 1]
    return Application(app.name, replace(old, seconds=seconds, gap_seconds=gaps))


def k40() -> Device:
    """The paper's GPU."""
    return Device.of(gpu_named("K40"))


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
