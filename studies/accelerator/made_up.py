"""Made-up services and batch applications, with the names of Prophet's (ASPLOS 2017) and its division into
compute and transfer work (Fig. 11): its traces are not published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.accelerator import Application, Device, Task
from jostle.traces import gpu_named

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
