"""Probes beside every simple rule, on made laws that differ in kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from jostle.methods import learn
from jostle.runs import Runs
from studies._runner import Measures, TableStudy, error_of_mean, numbers, over_best

CONFIDENCE = 0.9
STRESSORS = 4
Slow = Callable[[int, int], float]  # of one beside the other, by number; stressors come last


def cache(random: np.random.Generator, programs: int) -> Slow:
    """Two keep what they touch last in one cache, in proportion to how often they do; misses are a power."""
    n = programs + STRESSORS
    speed = np.r_[random.lognormal(0, 0.8, programs), 0.3, 1.0, 3.0, 6.0]
    size = np.r_[random.lognormal(0, 0.6, programs), 0.4, 1.0, 2.0, 4.0]
    power, weight = random.uniform(0.3, 1.2, n), random.uniform(0.02, 0.35, n)

    def slow(a: int, b: int) -> float:
        kept = speed[a] * size[a] / (speed[a] * size[a] + speed[b] * size[b])
        here = min(1.0, 1.5 * kept / size[a]) if size[a] + size[b] > 1.5 else 1.0
        alone = min(1.0, 1.5 / size[a])
        return 1 + weight[a] * ((here / alone) ** -power[a] - 1)

    return slow


def bus(random: np.random.Generator, programs: int) -> Slow:
    """Demands on one bus, shared max-min; what is not demand is computing."""
    wants = np.r_[random.beta(0.8, 1.2, programs), 0.3, 0.55, 0.8, 1.0]

    def slow(a: int, b: int) -> float:
        total = wants[a] + wants[b]
        got = wants[a] if total <= 1 else max(min(wants[a], 0.5), 1 - wants[b])
        return 1 + wants[a] * (wants[a] / got - 1)

    return slow


def turns(random: np.random.Generator, programs: int) -> Slow:
    """One core for both, each of which waits for a part of its time."""
    busy = np.r_[random.uniform(0.05, 1, programs), 0.25, 0.5, 0.75, 1.0]

    def slow(a: int, b: int) -> float:
        mine, other, wait = busy[a], busy[b], 0.0
        for _ in range(60):  # who runs more slowly asks for the core less often
            share = min(1.0, max(1 - other, 0.5))
            wait = max(0.0, mine * min(other, 0.5) / max(share, 0.5))
            other = busy[b] / (1 + 0.3 * wait)
        return 1 + wait

    return slow


def sharing(random: np.random.Generator, programs: int) -> Slow:
    """Some read the same data and fetch it for each other; all press a little on a bus."""
    group = np.r_[random.integers(0, 4, programs), 10, 11, 12, 13]
    wants = np.r_[random.uniform(0, 0.4, programs), 0.3, 0.5, 0.7, 0.9]
    gains = random.uniform(0.05, 0.3, programs + STRESSORS)

    def slow(a: int, b: int) -> float:
        results = 1 + 0.3 * wants[a] * wants[b]
        return results * (1 - gains[a]) if group[a] == group[b] else results

    return slow


def names(random: np.random.Generator, programs: int) -> Slow:
    """Who asks a disk waits for it, and no stressor asks one."""
    hit = np.r_[random.uniform(0, 0.4, programs), np.zeros(STRESSORS)]
    press = np.r_[random.uniform(0, 0.4, programs), np.zeros(STRESSORS)]
    wants = np.r_[random.uniform(0, 0.5, programs), 0.3, 0.5, 0.7, 0.9]

    def slow(a: int, b: int) -> float:
        waits = hit[a] + press[b] if hit[a] > 0 and press[b] > 0 else 0.0
        return math.exp(waits + 0.3 * wants[a] * wants[b])

    return slow


def idle(random: np.random.Generator, programs: int) -> Slow:
    """Programs suffer from stressors, and do nothing to each other."""
    hit = random.uniform(0.1, 0.8, programs + STRESSORS)
    press = np.r_[np.zeros(programs), 0.3, 0.5, 0.7, 0.9]
    return lambda a, b: 1 + hit[a] * press[b]


def readers(random: np.random.Generator, programs: int) -> Slow:
    """All read the same data and are the quicker for it, but for stressors; the bus is loaded a little."""
    gains, serves = random.uniform(0, 0.5, (2, programs + STRESSORS))
    gains[programs:] = serves[programs:] = 0
    wants = np.r_[random.uniform(0, 0.5, programs), 0.3, 0.5, 0.7, 0.9]
    return lambda a, b: (1 + 0.3 * wants[a] * wants[b]) * (1 - gains[a] * serves[b])


def none(random: np.random.Generator, programs: int) -> Slow:
    """Nobody disturbs anybody."""
    return lambda a, b: 1.0


def pairs(random: np.random.Generator, programs: int) -> Slow:
    """Each pair has a slowdown of its own."""
    own = np.exp(np.abs(random.normal(0.1, 0.12, (programs + STRESSORS,) * 2)))
    return lambda a, b: float(own[a, b])


def threads(random: np.random.Generator, programs: int) -> Slow:
    """Two threads of one core: issue slots and one port, whichever is short."""
    use = np.r_[random.dirichlet([1, 1, 1], programs)[:, :2], [[0.9, 0.1], [0.1, 0.9]]]
    use = np.r_[use, [[0.5, 0.5], [0.25, 0.25]]]

    def slow(a: int, b: int) -> float:
        return 1 + 0.7 * float((use[a] * np.maximum(0, use[a] + use[b] - 0.8)).sum() / 0.6)

    return slow


@dataclass(frozen=True)
class Noise:
    """width: of log runtimes. disturbed: share of runs that take up to so much longer."""

    width: float
    disturbed: float = 0.0
    longest: float = 0.0

    def __call__(self, random: np.random.Generator) -> float:
        hit = random.random() < self.disturbed
        return math.exp(self.width * random.normal() + hit * random.uniform(0, self.longest))


LAWS: dict[str, tuple[Callable[[np.random.Generator, int], Slow], Noise | None]] = {
    "cache": (cache, None),
    "bus": (bus, None),
    "turns": (turns, None),
    "threads": (threads, None),
    "sharing": (sharing, None),
    "readers": (readers, None),
    "names": (names, None),
    "pairs": (pairs, None),
    "idle": (idle, None),
    "none": (none, None),
    "noise": (none, Noise(0.06, 0.2, 0.5)),
}


RULES = ("none", "mean", "median", "additive")


@dataclass(frozen=True)
class ProbeLaws(TableStudy):
    """Probes beside every simple rule, on made laws that differ in kind: pairs held out of known programs.

    Every law draws programs and runs them alone and beside four stressors, and in pairs, once. A share of
    the pairs, both sides together, is learned from by `jostle.fit`, the others are the test; 0 is no pair at
    all. Programs that are new are known from runs alone and beside stressors only, and pairs with one of
    them are then the test. Rules know the same: no interference, the mean or median slowdown, effects of
    target and co-runner (`additive`). Errors are relative, in percent, against what was measured; `over` is
    probes' error over that of the best rule, chosen on the test; `under` the share of runs under their 90%
    bounds.
    """

    laws: Annotated[str, "Separated by commas."] = ",".join(LAWS)
    shares: Annotated[str, "Of the pairs, learned from."] = "0,0.1,0.3,0.7"
    programs: Annotated[int, "That are known."] = 16
    noise: Annotated[float, "Standard deviation of log runtimes."] = 0.015
    repeats: Annotated[int, "Of runs alone and beside stressors."] = 3
    new: Annotated[int, "Programs that are in no pair learned from."] = 0
    slowdown: Annotated[bool, "Also the method of that name."] = False
    seeds: Annotated[int, "Draws of programs."] = 3

    name: ClassVar[str] = "probe_laws"
    places: ClassVar[Sequence[str]] = ("law", "pairs learned from")
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(("probes", "slowdown", *RULES), ".2f") | {
        "over": ".3f",
        "under": ".1%",
        "standard error": ".1%",
    }

    def rows(self) -> list[tuple[Any, ...]]:
        return [(law, share) for law in self.laws.split(",") for share in numbers(self.shares)]

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        means = dict(super().of_draws(draws))
        spread = error_of_mean([one["under"] for one in draws])
        over = means["probes"] / min(means[name] for name in RULES)
        return means | {"over": over, "standard error": spread}

    def closing(self, measured: Sequence[Measures]) -> dict[str, float]:
        return over_best([m["over"] for m in measured])

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        """Mean relative errors, and the share of the tested runs under their bounds."""
        law, share = row
        random = np.random.default_rng([seed, list(LAWS).index(law)])
        probing, both, solo = drawn(law, random, self)
        new = np.arange(self.programs + self.new) >= self.programs
        held = np.array([random.random() >= share or new[a] or new[b] for a, b, *_ in both])
        tested = np.array([new[a] or new[b] for a, b, *_ in both]) if self.new else held
        learned, test = as_runs(both, ~held), as_runs(both, tested)
        data = Runs.concatenate([probing, learned]) if (~held).any() else probing
        model = jostle.fit(data, jostle.Probes(), seed=seed, new_names=bool(self.new))
        truth, query = test.runtime_seconds, test.colocations
        seconds = {"probes": model.predict(query)}
        if self.slowdown:
            seconds["slowdown"] = learn(jostle.Slowdown(), data, seed=seed).predict(query)
        seconds |= by_rules(
            [b for b, h in zip(both, held, strict=True) if not h],
            [b for b, t in zip(both, tested, strict=True) if t],
            solo,
        )
        bound = model.bound(query, CONFIDENCE).seconds
        under = float((truth <= bound).mean()) if np.isfinite(bound).all() else math.nan
        errors = {name: 100 * np.abs(s / truth - 1).mean() for name, s in seconds.items()}
        return {name: float(error) for name, error in errors.items()} | {"under": under}


Pair = tuple[int, int, float, float]  # the two, and their seconds


def drawn(
    law: str, random: np.random.Generator, options: ProbeLaws
) -> tuple[Any, list[Pair], np.ndarray]:
    """(runs alone and beside stressors, all pairs, (programs,) median seconds alone)."""
    make, noise = LAWS[law]
    noise = noise or Noise(options.noise)
    programs = options.programs + options.new
    slow = make(random, programs)
    n = programs + STRESSORS
    usual = random.lognormal(0, 1, n)
    rows: list[tuple[int, int | None, float, str]] = []
    for turn in range(options.repeats):
        for a in range(n):
            rows.append((a, None, usual[a] * noise(random), f"{turn}-{a}"))
            for b in range(programs, n):
                if a >= b:
                    continue
                window = f"{turn}-{a}-{b}"
                rows.append((a, b, usual[a] * slow(a, b) * noise(random), window))
                rows.append((b, a, usual[b] * slow(b, a) * noise(random), window))
    both = [
        (a, b, usual[a] * slow(a, b) * noise(random), usual[b] * slow(b, a) * noise(random))
        for a, b in combinations(range(programs), 2)
    ]
    alone = [[s for a, b, s, _ in rows if a == i and b is None] for i in range(programs)]
    return runs_of(rows, programs), both, np.array([np.median(each) for each in alone])


def as_runs(both: list[Pair], keep: np.ndarray) -> Any:
    rows = []
    for (a, b, first, second), kept in zip(both, keep, strict=True):
        if kept:
            rows += [(a, b, first, f"{a}+{b}"), (b, a, second, f"{a}+{b}")]
    return runs_of(rows, 1 << 30)


def runs_of(rows: list[Any], programs: int) -> Any:
    def name(i: int) -> str:
        return f"w{i:02d}" if i < programs else f"probe-{i - programs}"

    return Runs.from_columns(
        workload=[name(a) for a, *_ in rows],
        platform=["host"] * len(rows),
        corunners=[[] if b is None else [name(b)] for _, b, *_ in rows],
        runtime_seconds=[seconds for *_, seconds, _ in rows],
        window_id=[window for *_, window in rows],
    )


def by_rules(learned: list[Pair], asked: list[Pair], solo: np.ndarray) -> dict[str, np.ndarray]:
    """{rule: seconds of both sides of each pair}."""
    sides = [(a, b, s) for x, y, one, two in learned for a, b, s in ((x, y, one), (y, x, two))]
    wanted = [(a, b) for x, y, *_ in asked for a, b in ((x, y), (y, x))]
    alone = solo[[a for a, _ in wanted]]
    results = {"none": alone}
    log = np.array([math.log(s / solo[a]) for a, _, s in sides])
    n = len(solo)
    if len(log):
        results |= {"mean": alone * np.exp(log).mean(), "median": alone * np.exp(np.median(log))}

        def design(rows: list[Any]) -> np.ndarray:
            table = np.zeros((len(rows), 2 * n))
            for at, (a, b, *_) in enumerate(rows):
                table[at, [a, n + b]] = 1.0
            return table

        x = design(sides)
        effects = np.linalg.solve(x.T @ x + 0.5 * np.eye(2 * n), x.T @ (log - log.mean()))
        results["additive"] = alone * np.exp(log.mean() + design(wanted) @ effects)
    else:
        results |= dict.fromkeys(("mean", "median", "additive"), alone)
    return results
