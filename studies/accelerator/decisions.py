"""`python -m studies accelerator --on decisions`: of what is called safe on a device, how much is not.

Public pairs, each from models that have not seen it, and five made devices: sets of two to four, queries at a
rate, tails. The calls are those of a user (`how_many_fit`, `arrangements`) with what was learned and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np

from jostle._report import Table
from jostle.accelerator import (
    Accelerator,
    Application,
    Device,
    DeviceTenant,
    Latency,
    LearnedRest,
    Objective,
    Tenant,
    Wish,
    applications_of,
    arrangements,
    how_many_fit,
    interval_of,
    poisson_arrivals,
    simulate,
)
from jostle.methods import Data
from jostle.models import fit
from jostle.progress import Progress, no_progress
from jostle.runs import Runs
from jostle.traces import GPUS, Profile, tasks_from_rows
from studies.accelerator.magus import CONFIDENCE, GPU, Magus, splits
from studies.accelerator.rules import Pairs, baselines
from studies.accelerator.tables import AcceleratorEvaluation
from studies.accelerator.v100_kernels import simulated_pairs

LIMITS = (1.1, 1.2, 1.5)
LEARNED, BOUNDED, ADDITIVE, RAW = "learned", "bounded", "additive", "simulator"
WORKLOADS, SETS, NOISE, QUERIES = 8, 10, 0.02, 4000
# (load, percentile, limits) of queries at a rate; the limits of tails leave room for a queue alone.
LOADS = ((None, "mean", LIMITS), (0.3, "mean", (1.5, 2.0, 3.0)), (0.3, "p95", (2.0, 3.0, 5.0)))


@dataclass(frozen=True)
class Decision:
    """calls: {who answers: whether that calls it safe}. true: whether it is."""

    where: str
    limit: float
    calls: Mapping[str, bool]
    true: bool


def public_pairs(folder: Path, seed: int, progress: Progress) -> Iterator[Decision]:
    """Of ten folds, each target beside each other; true is the mean of its runs."""
    data = Magus.read(folder)
    (_, _, parts), *_ = splits(data, seed)
    applications, device = applications_of(data.profiles, GPU)
    for number, part in enumerate(parts):
        test, known = data.pairs(part.test), data.pairs(part.train)
        source = Data(data.runs.take(np.flatnonzero(part.train)), profiles=dict(data.profiles))
        model = fit(source, Accelerator(gpu=GPU), seed=1000 * seed + number)
        rest = LearnedRest.of(model, device, CONFIDENCE)
        additive = baselines(known, test)["additive"] / test.solo
        for target, other in sorted(set(zip(test.target, test.other, strict=True))):
            rows = (test.target == target) & (test.other == other)
            names = test.names[target], test.names[other]
            yield from _pair(applications, rest, device, names, test.take(rows), additive[rows])
        progress(number + 1, len(parts), float("nan"))


def _pair(
    applications: Mapping[str, Application],
    rest: LearnedRest,
    device: Device,
    names: tuple[str, str],
    measured: Pairs,
    additive: np.ndarray,
) -> Iterator[Decision]:
    one, other = (applications[name] for name in names)
    for limit in LIMITS:
        service = Wish(one.name, DeviceTenant(one), Objective(limit))
        learned = how_many_fit(service, other, rest.device, [rest.sharing], most=1, rest=rest)
        raw = how_many_fit(service, other, device, most=1)
        calls = {
            LEARNED: learned.instances == 1,
            BOUNDED: learned.instances == 1 and learned.guaranteed == 1,
            ADDITIVE: bool(additive.mean() <= limit),
            RAW: raw.instances == 1,
        }
        true = bool((measured.corun / measured.solo).mean() <= limit)
        yield Decision("magus13", limit, calls, true)


def kernel_pairs(folder: Path) -> Iterator[Decision]:
    """Nothing is learned of them: what the simulator flags is not called safe."""
    for row in simulated_pairs(folder):
        for limit in LIMITS:
            most = limit * row.alone_seconds
            calls = row.predicted_seconds is not None and row.predicted_seconds <= most
            yield Decision("V100 kernels", limit, {RAW: calls}, row.measured_seconds <= most)


@dataclass(frozen=True)
class MadeDevice:
    """A device whose law is known. sharing, bus: of kernels and transfers. host_ratio: of a run alone, before
    its trace. law: what contention adds that no trace shows, none, sum, cliff or number."""

    name: str
    sharing: str
    bus: str
    host_ratio: float
    law: str
    seed: int

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        random = np.random.default_rng([self.seed, 1])
        made = {}
        for number in range(WORKLOADS):
            rows, at = [], 0.01
            for kind in ("htod", *["kernel"] * int(random.integers(2, 6)), "dtoh"):
                seconds = float(random.lognormal(-4.0 if kind == "kernel" else -5.5, 0.7))
                shape = {"threads_per_block": 256, "registers_per_thread": 32}
                shape |= {"blocks": int(random.integers(40, 640))}
                row = {"kind": kind, "start_seconds": at, "duration_seconds": seconds}
                rows.append({**row, **(shape if kind == "kernel" else {"pinned": False})})
                at += seconds + float(random.uniform(0, 0.01))
            name = f"w{number}"
            made[name] = tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"])
        return made

    @cached_property
    def applications(self) -> dict[str, Application]:
        return applications_of(self.profiles)[0]

    def really(self, name: str, beside: Sequence[str]) -> Application:
        """The application as this company slows it down, with its work on the host."""
        random = np.random.default_rng([self.seed, 2])
        pull, push = random.uniform(0.05, 0.3, (2, WORKLOADS))
        weight = [push[int(other[1:])] for other in beside]
        mine = pull[int(name[1:])]
        extra = {
            "none": 0.0,
            "sum": 4 * mine * sum(weight),
            "cliff": 0.4 * (sum(weight) + mine > 0.45),
            "number": 0.05 * len(beside) ** 1.5,
        }[self.law]
        app = self.applications[name]
        gaps = app.columns.gap_seconds.copy()
        gaps[0] += self.host_ratio * app.solo_seconds
        seconds = (1 + extra) * app.columns.seconds
        return Application(name, replace(app.columns, seconds=seconds, gap_seconds=gaps))

    def latency(self, members: Sequence[str], load: float | None, statistic: str) -> np.ndarray:
        """(k,) s of each member's statistic; of the first at a load of its own, if any."""
        others = [[*members[:n], *members[n + 1 :]] for n in range(len(members))]
        apps = [self.really(*one) for one in zip(members, others, strict=True)]
        device = replace(Device.of(GPUS["V100"]), bus=self.bus)
        values = []
        for n, app in enumerate(apps[: 1 if load else None]):
            queries = 4000 if load else 50
            times = None
            if load:
                alone = self.really(members[n], []).solo_seconds
                times = poisson_arrivals(load / alone, queries, self.seed)
            tenants = [Tenant(app, queries, arrivals=times)]
            for k, other in enumerate(apps):
                if k != n:
                    start = other.solo_seconds * ((0.618 * k) % 1)
                    tenants.append(Tenant(other, None, start_seconds=start))
            schedule = simulate(tenants, device, self.sharing)
            of_one = schedule.latencies[0]
            is_mean = statistic == "mean"
            values.append(of_one.mean() if is_mean else np.quantile(of_one, 0.95, method="higher"))
        return np.array(values)

    def campaign(self) -> tuple[Runs, list[tuple[str, ...]]]:
        """(runs alone, of six in ten of the pairs and of some sets of three; sets left to ask about)."""
        random = np.random.default_rng([self.seed, 3])
        names = list(self.applications)
        pairs = [tuple(map(str, pair)) for pair in random.permutation(list(combinations(names, 2)))]
        triples = [
            tuple(map(str, t)) for t in random.permutation(list(combinations(names, 3)))[:20]
        ]
        fours = [
            tuple(map(str, f)) for f in random.permutation(list(combinations(names, 4)))[:SETS]
        ]
        known = [*[(name,) for name in names] * 3, *pairs[:17], *triples[:10]]
        rows = [
            (name, [*members[:n], *members[n + 1 :]], seconds, f"set{number}")
            for number, members in enumerate(known)
            for n, (name, seconds) in enumerate(
                zip(members, self.latency(members, None, "mean"), strict=True)
            )
        ]
        noise = np.exp(random.normal(0, NOISE, len(rows)))
        runs = Runs.from_columns(
            workload=[row[0] for row in rows],
            platform=["made"] * len(rows),
            corunners=[row[1] for row in rows],
            runtime_seconds=np.array([row[2] for row in rows]) * noise,
            window_id=[row[3] for row in rows],
        )
        return runs, [*pairs[17 : 17 + SETS], *triples[10:], *fours]


MADE = (
    MadeDevice("side by side", "concurrent", "per_direction", 0.3, "none", 1),
    MadeDevice("time slices", "time-sliced", "shared", 0.1, "none", 2),
    MadeDevice("caches", "concurrent", "shared", 0.2, "sum", 3),
    MadeDevice("one by one", "sequential", "per_direction", 0.0, "number", 4),
    MadeDevice("a capacity", "concurrent", "per_direction", 0.5, "cliff", 5),
)


def made_sets(made: MadeDevice, seed: int) -> Iterator[Decision]:
    """Sets that were not measured: batch work, and services at a rate by mean and tail."""
    runs, left = made.campaign()
    model = fit(Data(runs, profiles=made.profiles), Accelerator(), seed=seed)
    device = Device.of(GPUS["V100"])
    rest = LearnedRest.of(model, device, CONFIDENCE)
    effects = _pair_effects(runs)
    for load, statistic, limits in LOADS:
        for members in left:
            solo = made.latency(members[:1], None, "mean")[0]
            true = made.latency(members, load, statistic)[0] / solo
            rate = None if load is None else load / solo
            tenants = [
                DeviceTenant(made.applications[name], rate if name == members[0] else None)
                for name in members
            ]
            queries = QUERIES if load else 50
            (way,) = arrangements(
                tenants, rest.device, rest.sharing, queries=queries, seed=seed, rest=rest
            )
            (plain,) = arrangements(tenants, device, "concurrent", queries=queries, seed=seed)
            how = {"queries": queries, "seed": seed, "rest": rest.at_most}
            (most,) = arrangements(tenants, rest.device, rest.sharing, **how)
            alone = rest.seconds(members[0]), made.applications[members[0]].solo_seconds
            values = [
                _at_most(one.seconds[0], statistic, load) / solo_seconds
                for one, solo_seconds in zip((way, plain), alone, strict=True)
            ]
            one = (members[0], members[1:], statistic)
            ((bound, _),) = rest.bounds([one], is_like_runs=way.is_like_runs)
            if load is not None:
                bound = _at_most(most.seconds[0], statistic, load)
            slowdown = 1 + sum(effects[members[0], other] for other in members[1:])
            for limit in limits:
                calls = {LEARNED: values[0] <= limit, RAW: values[1] <= limit}
                calls[BOUNDED] = values[0] <= limit and bound / alone[0] <= limit
                if load is None:
                    calls[ADDITIVE] = slowdown <= limit
                what = statistic if load is None else f"{statistic} at a load of {load:g}"
                yield Decision(f"made, {what}", limit, calls, bool(true <= limit))


def _at_most(seconds: np.ndarray, statistic: str, load: float | None) -> float:
    """The statistic; at a rate, what it comes to with 95%, as `jostle safe` holds it."""
    value = Latency.of(seconds).of_statistic(statistic)
    return float(np.fmax(value, interval_of(seconds, statistic)[1])) if load else value


def _pair_effects(runs: Runs) -> dict[tuple[str, str], float]:
    """Of each target and partner the slowdown less 1, additive in both, from pairs that were measured."""
    columns = runs.colocations.to_columns()
    names = tuple(sorted(set(columns["workload"])))
    code = {name: n for n, name in enumerate(names)}
    target = np.array([code[name] for name in columns["workload"]])
    number = np.array([len(others) for others in columns["corunners"]])
    seconds = runs.runtime_seconds
    solo = np.array([np.median(seconds[(target == n) & (number == 0)]) for n in range(len(names))])
    rows = number == 1
    other = np.array([code[o[0]] if len(o) == 1 else 0 for o in columns["corunners"]])
    known = Pairs(names, target[rows], other[rows], solo[target[rows]], seconds[rows])
    every = np.array([(t, o) for t in range(len(names)) for o in range(len(names))])
    nothing = np.ones(len(every))
    left = Pairs(names, every[:, 0], every[:, 1], solo[every[:, 0]], nothing)
    off = baselines(known, left)["additive"] / left.solo - 1
    return {(names[t], names[o]): float(v) for (t, o), v in zip(every.tolist(), off, strict=True)}


def evaluate_decisions(
    magus: Path | None, v100: Path | None, seed: int = 0, progress: Progress = no_progress
) -> AcceleratorEvaluation:
    """magus, v100: folders of public measurements, None to leave them out."""
    decisions = list(public_pairs(magus, seed, progress)) if magus else []
    decisions += list(kernel_pairs(v100)) if v100 else []
    for number, made in enumerate(MADE):
        decisions += made_sets(made, seed)
        progress(number + 1, len(MADE), float("nan"))
    return tabulated(decisions)


def tabulated(decisions: Sequence[Decision]) -> AcceleratorEvaluation:
    """Wrongly called safe, of what is called so; and what is called so, of what is safe."""
    metrics: dict[str, float] = {}
    rows = []
    for where, limit in dict.fromkeys((one.where, one.limit) for one in decisions):
        mine = [one for one in decisions if (one.where, one.limit) == (where, limit)]
        safe = sum(one.true for one in mine)
        for who in (LEARNED, BOUNDED, ADDITIVE, RAW):
            if who not in mine[0].calls:
                continue
            called = [one.true for one in mine if one.calls[who]]
            wrong, hits = called.count(False), called.count(True)
            name = f"{who}_{where.replace(',', '').replace(' ', '_')}_{limit:g}"
            metrics[f"{name}_wrong_ratio"] = wrong / max(1, len(called))
            metrics[f"{name}_recall_ratio"] = hits / max(1, safe)
            share = f"{100 * wrong / len(called):.0f}%" if called else "–"
            recall = f"{100 * hits / safe:.0f}%" if safe else "–"
            rows.append((where, f"{limit:g}x", who, f"{wrong} of {len(called)}", share, recall))
    columns = ("what", "limit", "by", "wrongly called safe", "", "of the safe called so")
    return AcceleratorEvaluation(metrics, Table(columns, rows, right=range(3, 6)))
