"""What was recorded on GPUs, each set answered by who has not seen it: errors, bounds, decisions.

Whole jobs on an H100 and kernels on an H200 (two to four at once, under MPS and in time slices), and public
pairs of programs on a GTX 1080 Ti (processes, in time slices). Everybody learns from the same runs, by the
calls of a user.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from jostle.data import all_names, solo_medians
from jostle.gpu import DeviceTenant, SimulatedLoad, applications_of, arranged
from jostle.learn import learn, method_named
from jostle.models import fit
from jostle.operations import SimpleRule
from studies.one_model.campaigns import KnownData, read_campaign

LIMITS = (1.1, 1.2, 1.5)
CONFIDENCE = 0.9
QUERIES = 30  # of the workload that takes longest, while the others repeat
DRAWS = 2000  # of sets, for intervals
MOST = (
    10.0  # times the measured time, as which an error counts that is larger (a starved workload's)
)
RULES = {
    "solo": "none",
    "constant": "level",
    "constant, seconds": "level of seconds",
    "additive": "effects",
    "additive, seconds": "effects of seconds",
}
SIMULATOR, ACCELERATOR, DEFAULT, BOUNDED = "simulator", "accelerator", "default", "default, bounded"
FOLDS, FIFTH, PROGRAM = "sets, in folds", "four fifths of the sets", "a program"


@dataclass(frozen=True)
class RecordedGpu:
    """campaign: of studies.one_model. sharing: of kernels, by the end of the platform's name. parts: in which
    sets are left out. ways: what is left out."""

    name: str
    campaign: str
    sharing: dict[str, str]
    parts: int = 5
    ways: tuple[str, ...] = (FOLDS,)


RECORDED = (
    RecordedGpu("H100 jobs", "jobs", {"mps": "concurrent", "time-sliced": "time-sliced"}),
    RecordedGpu("H200 kernels", "kernels", {"mps": "concurrent", "time-sliced": "time-sliced"}),
    RecordedGpu("1080 Ti", "magus13", {"no-mps": "time-sliced"}, 10, (FOLDS, FIFTH, PROGRAM)),
)


@dataclass(frozen=True, eq=False)
class Answered:
    """n runs left out. where: (n,) how the platform's name ends. seconds, solo: (n,) measured. unit: (n,) the
    set of each. cell: (n,) what ran beside whom. predicted: {who answers: (n,) s}."""

    where: np.ndarray
    seconds: np.ndarray
    solo: np.ndarray
    unit: np.ndarray
    cell: np.ndarray
    predicted: dict[str, np.ndarray]

    def on(self, where: str) -> Answered:
        rows = self.where == where
        own = {name: value[rows] for name, value in vars(self).items() if name != "predicted"}
        return Answered(**own, predicted={who: s[rows] for who, s in self.predicted.items()})

    @staticmethod
    def joined(parts: Sequence[Answered]) -> Answered:
        names = [name for name in vars(parts[0]) if name != "predicted"]
        own = {name: np.concatenate([vars(part)[name] for part in parts]) for name in names}
        every = {
            who: np.concatenate([p.predicted[who] for p in parts]) for who in parts[0].predicted
        }
        return Answered(**own, predicted=every)


def folds(
    data: KnownData, way: str, parts: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (known, asked) rows. All sides and runs of a set are left out together; runs alone are known."""
    c, unit = data.runs.colocations, data.runs.units("together")
    beside = c.number_of_corunners > 0
    units = np.random.default_rng(seed).permutation(np.unique(unit[beside]))
    rows = [c.row(n) for n in range(len(c))]
    parts = {PROGRAM: len(c.workload_names), FIFTH: 5}.get(way, parts)
    for number in range(parts):
        if way == PROGRAM:
            name = c.workload_names[number]
            asked = beside & np.array([name == w or name in others for w, _, others in rows])
        else:
            asked = beside & (np.isin(unit, units[number::parts]) ^ (way == FIFTH))
        yield np.flatnonzero(~asked), np.flatnonzero(asked)


def simulated_slowdowns(gpu: RecordedGpu, data: KnownData) -> Callable[..., float]:
    """Return what the raw simulator says of (workload, platform, co-runners): queries back to back, mean
    latency over that alone."""
    applications, device = applications_of(dict(data.profiles))
    known: dict[tuple[str, ...], float] = {}

    def slowdown(workload: str, platform: str, corunners: Sequence[str]) -> float:
        key = platform, workload, *sorted(corunners)
        if key not in known:
            tenants = [DeviceTenant(applications[name]) for name in key[1:]]
            sharing, load = gpu.sharing[ending(platform)], SimulatedLoad(QUERIES)
            found = arranged(tenants, device, sharing, draw=load).latencies[0]
            known[key] = found.mean_seconds / applications[workload].solo_seconds
        return known[key]

    return slowdown


def ending(platform: str) -> str:
    return platform.rpartition("|")[2]


def answers(
    data: KnownData, way: str, parts: int, simulated: Callable[..., float], seed: int
) -> Iterator[Answered]:
    """Learn from each part of the runs, and answer the others."""
    names = all_names(data.runs)
    log_solo = solo_medians(data.runs, *names)
    for number, (known, asked) in enumerate(folds(data, way, parts, seed)):
        part, test = data.data(known), data.runs.take(asked)
        query = test.colocations
        workload, platform, _ = query.recode(*names)
        solo = np.exp(log_solo[platform, workload])
        rows = [query.row(n) for n in range(len(query))]
        found = {
            who: learn(SimpleRule(rule), part, seed=seed).predict(query)
            for who, rule in RULES.items()
        }
        found[SIMULATOR] = solo * np.array([simulated(*row) for row in rows])
        found[ACCELERATOR] = learn(method_named(ACCELERATOR)(), part, seed=seed).predict(query)
        model = fit(part, seed=1000 * seed + number)
        found[DEFAULT] = model.predict(query)
        found[BOUNDED] = model.bound(query, CONFIDENCE).seconds
        cell = np.array([" ".join((w, p, *sorted(others))) for w, p, others in rows])
        where = np.array([ending(p) for _, p, _ in rows])
        unit = data.runs.units("together")[asked]
        yield Answered(where, test.runtime_seconds, solo, unit, cell, found)


def error_rows(found: Answered, seed: int) -> Iterator[list[str]]:
    """Yield who answers, mean error, its 95% interval over sets, median and 95th percentile."""
    _, at = np.unique(found.unit, return_inverse=True)
    drawn = np.random.default_rng(seed).multinomial(
        at.max() + 1, [1 / (at.max() + 1)] * (at.max() + 1), DRAWS
    )
    for who, seconds in found.predicted.items():
        if who != BOUNDED:
            off = np.minimum(np.abs(seconds / found.seconds - 1), MOST)
            means = (drawn @ np.bincount(at, off)) / (drawn @ np.bincount(at))
            values = (
                off.mean(),
                *np.quantile(means, (0.025, 0.975)),
                *np.quantile(off, (0.5, 0.95)),
            )
            yield [who, *(f"{100 * value:.2f}%" for value in values)]


def bound_row(found: Answered) -> list[str]:
    """Return the share kept, each set weighing the same, its standard error, the mean margin of those that
    have a bound, and the share without one."""
    bound = found.predicted[BOUNDED]
    _, at = np.unique(found.unit, return_inverse=True)
    kept = np.bincount(at, found.seconds <= bound) / np.bincount(at)
    has = np.isfinite(bound)
    margin = np.maximum(bound[has] / found.seconds[has] - 1, 0).mean()
    values = (kept.mean(), kept.std(ddof=1) / np.sqrt(len(kept)), margin, 1 - has.mean())
    return [percent(value) for value in values]


def decision_rows(found: Answered) -> Iterator[list[str]]:
    """Yield who answers and, by limit, how much of what it calls safe is not, and how much of what is safe it
    calls so. A co-location is safe whose mean measured slowdown keeps the limit."""
    _, first, at = np.unique(found.cell, return_index=True, return_inverse=True)
    count = np.bincount(at)
    true = np.bincount(at, found.seconds / found.solo) / count
    for who, seconds in found.predicted.items():
        ratio = (
            (np.bincount(at, seconds / found.solo) / count)
            if who != BOUNDED
            else (seconds[first] / found.solo[first])
        )
        cells = []
        for limit in LIMITS:
            called, safe = ratio <= limit, true <= limit
            wrong = percent((called & ~safe).sum() / called.sum()) if called.any() else "–"
            cells += [wrong, percent((called & safe).sum() / safe.sum()) if safe.any() else "–"]
        yield [who, *cells]


def evaluate_recorded(on: str, seed: int, progress: Progress) -> list[Table]:
    """Make the tables of errors, of bounds and of decisions, of one campaign or of all (`recorded`)."""
    errors, bounds, decisions = [], [], []
    asked = [gpu for gpu in RECORDED if on in ("recorded", gpu.campaign)]
    total = sum(len(gpu.ways) for gpu in asked)
    for gpu in asked:
        data = read_campaign(gpu.campaign, seed)
        simulated = simulated_slowdowns(gpu, data)
        for way in gpu.ways:
            progress(len(bounds), total, float("nan"))
            found = Answered.joined(list(answers(data, way, gpu.parts, simulated, seed)))
            for where in gpu.sharing:
                heads, mine = [f"{gpu.name}, {where}", way], found.on(where)
                errors += [[*heads, *row] for row in error_rows(mine, seed)]
                bounds.append([*heads, *bound_row(mine)])
                decisions += [[*heads, *row] for row in decision_rows(mine)]
    choices = [f"{limit}x {what}" for limit in LIMITS for what in ("wrong", "found")]
    return [
        Table(["error on", "left out", "by", "mean error", "from", "to", "median", "p95"], errors),
        Table(["bounds on", "left out", "kept", "standard error", "margin", "no bound"], bounds),
        Table(["decisions on", "left out", "by", *choices], decisions),
    ]
