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
    Service,
    SimulationOptions,
    Task,
    service_latency,
)
from jostle.traces import gpu_named

MOST = 15
POLICIES = (0.95, 0.90, 0.85, 0.80, 0.75, 0.70)
QOS_SLOWDOWN, QOS_SECONDS = (
    2.0,
    0.1,
)  # of the study of pairs: under twice the solo latency and 100 ms
MISSED_BY = (0.0, 0.02, 0.05, 0.10)  # of the policy: how violations are told apart in Fig. 19
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


def predict_slowdowns(
    services: list[Application],
    batches: list[Application],
    device: Device,
    options: SimulationOptions | None = None,
) -> tuple[np.ndarray, int]:
    """((services, batches, 16) mean latency over solo with 0 to 15 instances, simulations)."""
    table = np.ones((len(services), len(batches), MOST + 1))
    for s, service in enumerate(services):
        for b, batch in enumerate(batches):
            for k in range(1, MOST + 1):
                asked = Service(service, queries=QUERIES)
                latency = service_latency(asked, [batch] * k, device, options)
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
    of the GPUs with batch work whose service misses the policy; worst: by how much of it at most. missed:
    shares of the same GPUs that miss it by more than each of MISSED_BY."""

    scheduler: str
    policy: float
    utilisation_ratio: float
    violations_ratio: float
    worst_ratio: float
    missed: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class PairStudy:
    """The 77 pairs under QOS_SLOWDOWN and QOS_SECONDS, (services, batches) each. fits: instances that the
    simulator calls safe, oracle: that are. reached: latency really had, over its limit."""

    services: tuple[str, ...]
    batches: tuple[str, ...]
    fits: np.ndarray
    oracle: np.ndarray
    reached: np.ndarray


@dataclass(frozen=True, eq=False)
class ScaleOut:
    """outcomes: of all schedulers under all policies. spent: seconds of CPU time and how many simulations."""

    outcomes: list[Outcome]
    study: PairStudy
    spent: dict[str, float]


def judge(
    scheduler: str,
    policy: float,
    gpus: np.ndarray,
    fits: np.ndarray,
    truth: dict[tuple[int, int, int], np.ndarray],
) -> Outcome:
    """truth: (service, batch, instances) -> slowdowns on drifted copies."""
    placed = total = worst = 0.0
    missed = np.zeros(len(MISSED_BY))
    for s, b in zip(*np.nonzero(gpus * fits), strict=True):
        k, n = int(fits[s, b]), int(gpus[s, b])
        slow = truth[int(s), int(b), k]
        short = 1 - 1 / (slow * policy)
        placed += n * k
        total += n
        missed += n * (short > np.array(MISSED_BY)[:, None] + 1e-9).mean(axis=1)
        worst = max(worst, float(np.max(short)))
    everything = len(gpus) * GPUS_PER_SERVICE * MOST
    shares = tuple((missed / max(total, 1)).tolist())
    return Outcome(scheduler, policy, placed / everything, shares[0], worst, shares)


class _World:
    """What really happens: slowdowns of services beside batch work on drifted copies, each asked once."""

    def __init__(
        self,
        services: list[Application],
        batches: list[Application],
        device: Device,
        options: SimulationOptions,
        seed: int,
        copies: int,
    ) -> None:
        self.services, self.batches, self.options = services, batches, options
        self.draws = [seed * 1_000_003 + copy for copy in range(copies)]
        self.device = replace(device, resources={"memory": device.resources["memory"] * 0.97})
        self.known: dict[tuple[int, int, int], np.ndarray] = {}
        self.drifted: dict[tuple[str, int], Application] = {}

    def _copy(self, app: Application, draw: int) -> Application:
        key = app.name, draw
        if key not in self.drifted:
            self.drifted[key] = drifted(app, draw)
        return self.drifted[key]

    def slowdowns(self, s: int, b: int, k: int) -> np.ndarray:
        """(copies,) of service s beside k of batch b."""
        if (s, b, k) not in self.known:
            slow = []
            for draw in self.draws:
                service = self._copy(self.services[s], draw)
                beside = [self._copy(self.batches[b], draw * 100 + n + 7) for n in range(k)]
                asked = Service(service, queries=QUERIES)
                latency = service_latency(asked, beside, self.device, self.options)
                slow.append(latency.mean_seconds / service.solo_seconds)
            self.known[s, b, k] = np.array(slow)
        return self.known[s, b, k]


def study_pairs(slowdowns: np.ndarray, world: _World) -> PairStudy:
    """Fig. 16 and 17: slowdowns (services, batches, 16) as predicted, against what really happens."""
    solo = np.array([app.solo_seconds for app in world.services])
    limit = np.minimum(QOS_SLOWDOWN, QOS_SECONDS / solo)  # as a slowdown
    shape = slowdowns.shape[:2]
    fits, oracle, reached = np.zeros(shape, int), np.zeros(shape, int), np.ones(shape)
    for s, b in np.ndindex(*shape):
        policy = float(1 / limit[s])
        fits[s, b] = max(0, safe_instances(slowdowns[s : s + 1, b : b + 1], policy)[0, 0])
        while oracle[s, b] < MOST:
            if world.slowdowns(s, b, int(oracle[s, b]) + 1).mean() > limit[s] + 1e-9:
                break
            oracle[s, b] += 1
        reached[s, b] = world.slowdowns(s, b, int(fits[s, b])).mean() / limit[s]
    names = [tuple(app.name for app in apps) for apps in (world.services, world.batches)]
    return PairStudy(names[0], names[1], fits, oracle, reached)


def scale_out(seed: int = 0, copies: int = 3, engine: str = "auto") -> ScaleOut:
    """All schedulers under all policies, and the study of pairs."""
    import time

    device = k40()
    services = [made_up(name, seed) for name in SERVICES]
    batches = [made_up(name, seed) for name in BATCHES]
    # Start groups merged within a tenth of a batch: the ends of runs hardly move.
    options = SimulationOptions(Concurrent(merge_ratio=0.1), engine=engine)
    service_latency(Service(services[0]), batches[:1], device, options)  # compiles
    began = time.process_time()
    slowdowns, simulations = predict_slowdowns(services, batches, device, options)
    study = time.process_time() - began
    in_turn = SimulationOptions("sequential", engine=engine)
    sequential, _ = predict_slowdowns(services, batches, device, in_turn)
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
    world = _World(services, batches, device, options, seed, copies)
    truth = {
        (int(s), int(b), int(fits[s, b])): world.slowdowns(int(s), int(b), int(fits[s, b]))
        for _, _, gpus, fits in plans
        for s, b in zip(*np.nonzero(gpus * fits), strict=True)
    }
    outcomes = [judge(name, policy, gpus, fits, truth) for name, policy, gpus, fits in plans]
    spent = {
        "study_seconds": study,
        "scale_out_seconds": time.process_time() - began,
        "simulations": simulations,
    }
    return ScaleOut(outcomes, study_pairs(slowdowns, world), spent)
