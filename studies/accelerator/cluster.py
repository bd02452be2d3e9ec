"""A cluster of 700 GPUs with services and batch work beside them: which mixes are safe, and what it brings.

After Prophet (ASPLOS 2017), Sec. 7.3 and 7.4: 7 services on 100 K40s each, 1000 instances of each of 11
batch applications, at most 15 on a GPU. Its traces are not published: the applications here are made
up, with the paper's names and its division into compute and transfer work (Fig. 11). What decides is the
simulator on the applications as profiled; what assesses it is the simulator on drifted ones (`_latencies`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._report import Table
from jostle.accelerator import Tenant, simulate
from studies.accelerator.latencies import MOST, World, predict_slowdowns, slowdown
from studies.accelerator.made_up import BATCHES, SERVICES, k40, made_up
from studies.accelerator.tables import AcceleratorEvaluation

POLICIES = (0.95, 0.90, 0.85, 0.80, 0.75, 0.70)
# Of the study of pairs: under twice the solo latency and 100 ms.
QOS_SLOWDOWN, QOS_SECONDS = 2.0, 0.1
MISSED_BY = (0.0, 0.02, 0.05, 0.10)  # of the policy: how violations are told apart in Fig. 19
GPUS_PER_SERVICE, INSTANCES_PER_BATCH = 100, 1000


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


def assess(
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


def study_pairs(slowdowns: np.ndarray, world: World) -> PairStudy:
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


def scale_out(seed: int = 0) -> ScaleOut:
    """All schedulers under all policies, and the study of pairs."""
    device = k40()
    services = [made_up(name, seed) for name in SERVICES]
    batches = [made_up(name, seed) for name in BATCHES]
    slowdown(services[0], batches[:1], device)  # compiles
    began = time.process_time()
    slowdowns = predict_slowdowns(services, batches, device)
    study = time.process_time() - began
    sequential = predict_slowdowns(services, batches, device, "sequential")
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
    world = World(services, batches, device, seed)
    truth = {
        (int(s), int(b), int(fits[s, b])): world.slowdowns(int(s), int(b), int(fits[s, b]))
        for _, _, gpus, fits in plans
        for s, b in zip(*np.nonzero(gpus * fits), strict=True)
    }
    outcomes = [assess(name, policy, gpus, fits, truth) for name, policy, gpus, fits in plans]
    spent = {
        "study_seconds": study,
        "scale_out_seconds": time.process_time() - began,
        "simulations": slowdowns.size,
    }
    return ScaleOut(outcomes, study_pairs(slowdowns, world), spent)


def evaluate_accelerator_scale_out(seed: int = 0) -> AcceleratorEvaluation:
    """700 GPUs, 7 services, 11 000 batch instances of 11 kinds; made-up applications."""
    found = scale_out(seed)
    last = [o for o in found.outcomes if o.scheduler == "simulator"][-1]
    study = found.study
    metrics: dict[str, float] = {
        "utilisation_ratio": last.utilisation_ratio,
        "violations_ratio": last.violations_ratio,
        "worst_violation_ratio": last.worst_ratio,
        "pairs_utilisation_ratio": float(study.fits.mean() / MOST),
        "pairs_oracle_utilisation_ratio": float(study.oracle.mean() / MOST),
        "pairs_violations_ratio": float((study.reached > 1 + 1e-9).mean()),
        "pairs_worst_violation_ratio": float(max(0.0, study.reached.max() - 1)),
        **{name: float(value) for name, value in found.spent.items()},
        "tasks_per_second": tasks_per_second(),
    }
    rows = []
    for outcome in found.outcomes:
        name = outcome.scheduler.replace(" ", "_").replace("%", "_percent")
        at = f"{name}_at_{100 * outcome.policy:.0f}"
        ratios = outcome.utilisation_ratio, outcome.violations_ratio, outcome.worst_ratio
        metrics[f"utilisation_{at}_ratio"], metrics[f"violations_{at}_ratio"] = ratios[:2]
        shares = [f"{100 * ratio:.1f}%" for ratio in ratios]
        rows.append((f"{100 * outcome.policy:.0f}%", outcome.scheduler, *shares))
    columns = ("policy", "scheduler", "utilisation", "violations", "worst by")
    return AcceleratorEvaluation(metrics, Table(columns, rows, right=(2, 3, 4)), found)


def tasks_per_second(tenants: int = 2) -> float:
    """Tasks that the simulator does in a second of CPU time, exactly, for so many made-up applications."""
    apps = [made_up(name) for name in ("asr", "bp", "imc", "hs")][:tenants]
    beside = [Tenant(app, 400 if n == 0 else None) for n, app in enumerate(apps)]
    simulate([replace(beside[0], runs=1), *beside[1:]], k40())
    best = 0.0
    for _ in range(3):
        began = time.process_time()
        done = simulate(beside, k40()).tasks
        best = max(best, done / (time.process_time() - began))
    return best
