"""A cluster of 700 GPUs with services and batch work beside them: which mixes are safe, and what it brings.

After Prophet (ASPLOS 2017), Sec. 7.3 and 7.4: 7 services on 100 K40s each, 1000 instances of each of 11
batch applications, at most 15 on a GPU. Its traces are not published: the applications here are made up
(`prophets`). What decides is the simulator on the applications as profiled; what assesses it is the simulator
on drifted ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.figure_files import save
from jostle._base.figure_style import COLOURS, plotting
from jostle._base.report import Table
from studies.accelerator.errors import AcceleratorEvaluation
from studies.accelerator.prophets import (
    BATCHES,
    MOST,
    SERVICES,
    World,
    k40,
    made_up,
    predict_slowdowns,
)

POLICIES = (0.95, 0.90, 0.85, 0.80, 0.75, 0.70)
# Of the study of pairs: under twice the solo latency and 100 ms.
QOS_SLOWDOWN, QOS_SECONDS = 2.0, 0.1
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
    of the GPUs with batch work whose service misses the policy; worst: by how much of it at most."""

    scheduler: str
    policy: float
    utilisation_ratio: float
    violations_ratio: float
    worst_ratio: float


@dataclass(frozen=True, eq=False)
class PairStudy:
    """The 77 pairs under QOS_SLOWDOWN and QOS_SECONDS, (services, batches) each. fits: instances that the
    simulator calls safe, oracle: that are. reached: latency really had, over its limit."""

    pairs: tuple[str, ...]
    fits: np.ndarray
    oracle: np.ndarray
    reached: np.ndarray


def assess(
    scheduler: str,
    policy: float,
    gpus: np.ndarray,
    fits: np.ndarray,
    truth: dict[tuple[int, int, int], np.ndarray],
) -> Outcome:
    """truth: (service, batch, instances) -> slowdowns on drifted copies."""
    placed = total = missed = worst = 0.0
    for s, b in zip(*np.nonzero(gpus * fits), strict=True):
        k, n = int(fits[s, b]), int(gpus[s, b])
        short = 1 - 1 / (truth[int(s), int(b), k] * policy)
        placed += n * k
        total += n
        missed += n * (short > 1e-9).mean()
        worst = max(worst, float(np.max(short)))
    everything = len(gpus) * GPUS_PER_SERVICE * MOST
    return Outcome(scheduler, policy, placed / everything, float(missed) / max(total, 1), worst)


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
    names = tuple(f"{s.name} + {b.name}" for s in world.services for b in world.batches)
    return PairStudy(names, fits, oracle, reached)


def scale_out(seed: int = 0) -> tuple[list[Outcome], PairStudy]:
    """All schedulers under all policies, and the study of pairs."""
    device = k40()
    services = [made_up(name, seed) for name in SERVICES]
    batches = [made_up(name, seed) for name in BATCHES]
    slowdowns = predict_slowdowns(services, batches, device)
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
    return outcomes, study_pairs(slowdowns, world)


def evaluate_accelerator_scale_out(seed: int = 0) -> AcceleratorEvaluation:
    """700 GPUs, 7 services, 11 000 batch instances of 11 kinds; made-up applications."""
    outcomes, study = scale_out(seed)
    metrics = {
        "pairs_utilisation_ratio": float(study.fits.mean() / MOST),
        "pairs_oracle_utilisation_ratio": float(study.oracle.mean() / MOST),
        "pairs_violations_ratio": float((study.reached > 1 + 1e-9).mean()),
        "pairs_worst_violation_ratio": float(max(0.0, study.reached.max() - 1)),
    }
    rows = []
    for one in outcomes:
        at = f"{one.scheduler.replace(' ', '_').replace('%', '_percent')}_at_{100 * one.policy:.0f}"
        metrics[f"utilisation_{at}_ratio"] = one.utilisation_ratio
        metrics[f"violations_{at}_ratio"] = one.violations_ratio
        ratios = one.utilisation_ratio, one.violations_ratio, one.worst_ratio
        shares = [f"{100 * ratio:.1f}%" for ratio in ratios]
        rows.append((f"{100 * one.policy:.0f}%", one.scheduler, *shares))
    columns = ("policy", "scheduler", "utilisation", "violations", "worst by")
    table = Table(columns, rows)
    return AcceleratorEvaluation(metrics, table, (outcomes, study))


def draw_scale_out(
    found: tuple[Sequence[Outcome], PairStudy], folder: str | os.PathLike[str]
) -> list[Path]:
    """Prophet's Fig. 16, utilisation by pairs, as decided and with perfect knowledge; and 18, utilisation of
    the cluster by policy. PNG and SVG in folder/figures. Raises MissingExtra without matplotlib."""
    outcomes, study = found
    figure, axis = plotting().subplots(figsize=(13.0, 3.4))
    group = study.fits.shape[1]
    at = np.arange(len(study.pairs)) + np.arange(len(study.pairs)) // group
    bars = [
        ("simulator", 100 * study.fits.reshape(-1) / MOST, COLOURS[1]),
        ("perfect knowledge", 100 * study.oracle.reshape(-1) / MOST, COLOURS[5]),
    ]
    _draw_bars(axis, bars, at)
    axis.set_xticks(at, study.pairs, rotation=90, fontsize=6)
    axis.set_xlim(-1, at[-1] + 1)
    axis.grid(axis="x", visible=False)
    axis.set_ylabel("utilisation (%)")
    axis.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    drawn = save(figure, Path(folder), "figure-16-utilisation-pairs")

    figure, axis = plotting().subplots(figsize=(6.4, 3.0))
    schedulers = ("no sharing", "sequential model", "simulator", "simulator with 3% to spare")
    by_name = {
        name: [100 * one.utilisation_ratio for one in outcomes if one.scheduler == name]
        for name in schedulers
    }
    colours = (COLOURS[n] for n in (7, 6, 1, 3))
    _draw_bars(axis, [(*one, c) for one, c in zip(by_name.items(), colours, strict=True)])
    axis.set_xticks(range(len(POLICIES)), [f"{100 * policy:.0f}%" for policy in POLICIES])
    axis.set_xlabel("QoS policy")
    axis.set_ylabel("utilisation of the cluster (%)")
    axis.legend()
    return drawn + save(figure, Path(folder), "figure-18-utilisation")


def _draw_bars(axes: Any, series: Sequence[tuple[str, Any, str]], places: Any = None) -> None:
    """Draw bars side by side, one of each (label, heights, colour) at every place; by default 0, 1, 2, ..."""
    width = 0.8 / len(series)
    for number, (label, heights, colour) in enumerate(series):
        at = np.arange(len(heights)) if places is None else places
        middle = at + (number - (len(series) - 1) / 2) * width
        axes.bar(middle, heights, width, label=label, color=colour)
