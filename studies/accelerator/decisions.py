"""`python -m studies accelerator --on decisions`: of what is called safe on a device, how much is not.

Public pairs, each from models that have not seen it, and five made devices: sets of two to four. The calls
are those of a user (`how_many_fit`, `arrangements`) with what was learned and without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Table
from jostle.data import GPUS, Runs
from jostle.gpu import (
    Device,
    DeviceTenant,
    Latency,
    LearnedRest,
    Objective,
    Wish,
    applications_of,
    arrangements,
    how_many_fit,
)
from jostle.learn import Data
from jostle.learn.learners.simulation import Accelerator
from jostle.models import fit
from studies.accelerator.errors import AcceleratorEvaluation, Pairs, baselines
from studies.accelerator.magus import CONFIDENCE, GPU, Magus, splits
from studies.worlds.made_devices import MADE, QUERIES, MadeDevice

LIMITS = (1.1, 1.2, 1.5)
LEARNED, BOUNDED, ADDITIVE, RAW = "learned", "bounded", "additive", "simulator"
SETS = 10


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
            one, beside = (applications[test.names[place]] for place in (target, other))
            measured = float((test.corun[rows] / test.solo[rows]).mean())
            for limit in LIMITS:
                service = Wish(one.name, DeviceTenant(one), Objective(limit))
                ways = [rest.sharing]
                learned = how_many_fit(service, beside, rest.device, ways, most=1, rest=rest)
                calls = {
                    LEARNED: learned.instances == 1,
                    BOUNDED: learned.instances == 1 and learned.guaranteed == 1,
                    ADDITIVE: bool(additive[rows].mean() <= limit),
                    RAW: how_many_fit(service, beside, device, most=1).instances == 1,
                }
                yield Decision("magus13", limit, calls, measured <= limit)
        progress(number + 1, len(parts), float("nan"))


def made_sets(made: MadeDevice, seed: int) -> Iterator[Decision]:
    """Sets that were not measured, from runs alone, of six in ten of the pairs and of ten sets of three."""
    random = np.random.default_rng([made.seed, 3])
    names = list(made.applications)
    pairs, triples, fours = (
        [tuple(map(str, one)) for one in random.permutation(list(combinations(names, k)))[:most]]
        for k, most in ((2, None), (3, 2 * SETS), (4, SETS))
    )
    known = [*[(name,) for name in names] * 3, *pairs[:17], *triples[:SETS]]
    runs = made.runs(known, random)
    model = fit(Data(runs, profiles=made.profiles), Accelerator(), seed=seed)
    device = Device.of(GPUS["V100"])
    rest = LearnedRest.of(model, device, CONFIDENCE)
    effects = _pair_effects(runs)
    for members in (*pairs[17 : 17 + SETS], *triples[SETS:], *fours):
        name, beside = members[0], members[1:]
        true = made.latency(members)[0] / made.latency(members[:1])[0]
        tenants = [DeviceTenant(made.applications[one]) for one in members]
        (way,) = arrangements(
            tenants, rest.device, rest.sharing, queries=QUERIES, seed=seed, rest=rest
        )
        (plain,) = arrangements(tenants, device, "concurrent", queries=QUERIES, seed=seed)
        learned, raw = (Latency.of(one.seconds[0]).mean_seconds for one in (way, plain))
        asked = [(name, beside, "mean")]
        ((bound, _),) = rest.bounds(asked, is_like_runs=way.is_like_runs)
        solo = rest.seconds(name)
        additive = 1 + sum(effects[name, other] for other in beside)
        for limit in LIMITS:
            calls = {
                LEARNED: learned / solo <= limit,
                BOUNDED: learned / solo <= limit and bool(bound / solo <= limit),
                ADDITIVE: additive <= limit,
                RAW: raw / made.applications[name].solo_seconds <= limit,
            }
            yield Decision("made, mean", limit, calls, bool(true <= limit))


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
    left = Pairs(names, every[:, 0], every[:, 1], solo[every[:, 0]], np.ones(len(every)))
    off = baselines(known, left)["additive"] / left.solo - 1
    return {(names[t], names[o]): float(v) for (t, o), v in zip(every.tolist(), off, strict=True)}


def evaluate_decisions(
    magus: Path, seed: int = 0, progress: Progress = no_progress
) -> AcceleratorEvaluation:
    """magus: the folder of public pairs."""
    decisions = list(public_pairs(magus, seed, progress))
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
        for who in mine[0].calls:
            called = [one.true for one in mine if one.calls[who]]
            wrong, hits = called.count(False), called.count(True)
            name = f"{who}_{where.replace(',', '').replace(' ', '_')}_{limit:g}"
            metrics[f"{name}_wrong_ratio"] = wrong / max(1, len(called))
            metrics[f"{name}_recall_ratio"] = hits / max(1, safe)
            share = f"{100 * wrong / len(called):.0f}%" if called else "–"
            recall = f"{100 * hits / safe:.0f}%" if safe else "–"
            rows.append((where, f"{limit:g}x", who, f"{wrong} of {len(called)}", share, recall))
    columns = ("what", "limit", "by", "wrongly called safe", "", "of the safe called so")
    return AcceleratorEvaluation(metrics, Table(columns, rows))
