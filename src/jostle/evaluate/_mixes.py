"""A cluster of 700 GPUs with services and batch work beside them: which mixes are safe, and what it brings.

After Prophet (ASPLOS 2017), Sec. 7.3 and 7.4: 7 services on 100 K40s each, 1000 instances of each of 11
batch applications, at most 15 on a GPU. Its traces are not published: the applications here are made
up, with the paper's names and its division into compute and transfer work (Fig. 11). What decides is the
simulator on the applications as profiled; what judges is the simulator on drifted ones (each task's time
and gap off by a random factor, the bandwidth of memory lower), since no real GPU is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.accelerator import (
    Application,
    Concurrent,
    Device,
    Model,
    Task,
    service_latency,
)
from jostle.traces import gpu_named

MOST = 15
POLICIES = (0.95, 0.90, 0.85, 0.80, 0.75, 0.70)
GPUS_PER_SERVICE, INSTANCES_PER_BATCH = 100, 1000
DRIFT = 0.05  # standard deviation of the log of a task's time
QUERIES = 4
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
    return Application(name, tuple(tasks))


def drifted(app: Application, seed: int) -> Application:
    """The application on another day: every task's time and gap off by a random factor."""
    random = np.random.default_rng([seed, 1])
    off = np.exp(random.normal(0, DRIFT, (len(app.tasks), 2)))
    tasks = [
        replace(task, seconds=task.seconds * a, gap_seconds=task.gap_seconds * b)
        for task, (a, b) in zip(app.tasks, off.tolist(), strict=True)
    ]
    return Application(app.name, tuple(tasks))


def k40() -> Device:
    """The paper's GPU."""
    return Device.of(gpu_named("K40"))


def predict_slowdowns(
    services: list[Application],
    batches: list[Application],
    device: Device,
    kernels: str | Model,
    *,
    engine: str = "auto",
) -> tuple[np.ndarray, int]:
    """((services, batches, 16) mean latency over solo with 0 to 15 instances, simulations)."""
    table = np.ones((len(services), len(batches), MOST + 1))
    for s, service in enumerate(services):
        for b, batch in enumerate(batches):
            for k in range(1, MOST + 1):
                latency = service_latency(
                    service, [batch] * k, device, queries=QUERIES, kernels=kernels, engine=engine
                )
                table[s, b, k] = latency.mean_seconds / service.solo_seconds
    return table, table.size


def safe_instances(slowdowns: np.ndarray, policy: float) -> np.ndarray:
    """(services, batches) the most instances such that every number up to it keeps solo / latency at or
    above the policy."""
    safe = slowdowns <= 1 / policy + 1e-9
    return np.cumprod(safe, axis=2).sum(axis=2) - 1


def place(fits: np.ndarray) -> np.ndarray:
    """(services, batches) GPUs of a service that take a batch application, each as many as fit, such that
    most instances run: an integer program over the whole cluster."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    services, batches = fits.shape
    gpus = np.kron(np.eye(services), np.ones(batches))
    taken = np.kron(np.ones(services), np.eye(batches)) * fits.reshape(-1)
    rows: list[Any] = [
        LinearConstraint(gpus, -np.inf, GPUS_PER_SERVICE),
        LinearConstraint(taken, -np.inf, INSTANCES_PER_BATCH),
    ]
    found = milp(
        -fits.reshape(-1).astype(float),
        integrality=np.ones(fits.size),
        bounds=Bounds(0, GPUS_PER_SERVICE),
        constraints=rows,
        options={"time_limit": 10.0, "mip_rel_gap": 1e-4},
    )
    return np.round(found.x).astype(int).reshape(fits.shape)


@dataclass(frozen=True)
class Outcome:
    """One scheduler under one policy. utilisation: batch instances over 15 for each GPU. violations: share
    of the GPUs with batch work whose service misses the policy; worst: by how much of it at most."""

    scheduler: str
    policy: float
    utilisation_ratio: float
    violations_ratio: float
    worst_ratio: float


def judge(
    scheduler: str,
    policy: float,
    gpus: np.ndarray,
    fits: np.ndarray,
    truth: dict[tuple[int, int, int], np.ndarray],
) -> Outcome:
    """truth: (service, batch, instances) -> slowdowns on drifted copies."""
    placed = total = missed = 0.0
    worst = 0.0
    for s, b in zip(*np.nonzero(gpus * fits), strict=True):
        k, n = int(fits[s, b]), int(gpus[s, b])
        slow = truth[int(s), int(b), k]
        late = slow > 1 / policy + 1e-9
        placed += n * k
        total += n
        missed += n * late.mean()
        worst = max(worst, float(np.max(1 - 1 / (slow * policy))))
    everything = len(gpus) * GPUS_PER_SERVICE * MOST
    return Outcome(scheduler, policy, placed / everything, missed / max(total, 1), worst)


def scale_out(seed: int = 0, copies: int = 3, engine: str = "auto") -> tuple[list[Outcome], dict]:
    """All schedulers under all policies; and seconds of CPU time: of the study of 77 pairs, of all."""
    import time

    device = k40()
    services = [made_up(name, seed) for name in SERVICES]
    batches = [made_up(name, seed) for name in BATCHES]
    # Start groups merged within a tenth of a batch: the ends of runs hardly move.
    model = Concurrent(merge_ratio=0.1)
    service_latency(services[0], batches[:1], device, kernels=model, engine=engine)  # compiles
    began = time.process_time()
    slowdowns, simulations = predict_slowdowns(services, batches, device, model, engine=engine)
    study = time.process_time() - began
    sequential, _ = predict_slowdowns(services, batches, device, "sequential", engine=engine)
    plans = []
    for policy in POLICIES:
        for name, table in (
            ("simulator", slowdowns),
            ("simulator with 3% to spare", slowdowns * 1.03),
            ("sequential model", sequential),
        ):
            fits = np.maximum(safe_instances(table, policy), 0)
            plans.append((name, policy, place(fits), fits))
        everything = np.full(slowdowns.shape[:2], MOST)
        plans.append(("pack all", policy, place(everything), everything))
        none = np.zeros_like(everything)
        plans.append(("no sharing", policy, none, none))
    asked = {
        (int(s), int(b), int(fits[s, b]))
        for _, _, gpus, fits in plans
        for s, b in zip(*np.nonzero(gpus * fits), strict=True)
    }
    truth = {}
    weak = replace(device, resources={"memory": device.resources["memory"] * 0.97})
    for s, b, k in sorted(asked):
        slow = []
        for copy in range(copies):
            draw = seed * 1_000_003 + copy
            service = drifted(services[s], draw)
            beside = [drifted(batches[b], draw * 100 + n + 7) for n in range(k)]
            latency = service_latency(
                service, beside, weak, queries=QUERIES, kernels=model, engine=engine
            )
            slow.append(latency.mean_seconds / service.solo_seconds)
        truth[s, b, k] = np.array(slow)
    outcomes = [judge(name, policy, gpus, fits, truth) for name, policy, gpus, fits in plans]
    spent = {
        "study_seconds": study,
        "scale_out_seconds": time.process_time() - began,
        "simulations": simulations,
    }
    return outcomes, spent
