"""Probes beside every simple rule, on made laws that differ in kind: pairs held out of known programs.

    python -m studies.slowdown.probe_laws [--seeds 3] [--laws NAME,...] [--shares 0,0.1,0.3,0.7]
        [--programs 16] [--noise 0.015] [--repeats 3] [--new 0] [--slowdown]

Every law draws programs and runs them alone and beside four stressors (`repeats` times each), and in
pairs, once. A share of the pairs, both sides together, is learned from by `jostle.fit`, the others are the
test; 0 is no pair at all. With --new N so many programs more are known from runs alone and beside stressors
only, and pairs with one of them are the test. Rules know the same: no interference, the mean or median
slowdown, effects of target and co-runner (`additive`). Errors are relative, in percent, against what was
measured; `over` is probes' error over that of the best rule, chosen on the test; `under` the share of runs
under their 90% bounds.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from studies.data import one_core

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
        found = 1 + 0.3 * wants[a] * wants[b]
        return found * (1 - gains[a]) if group[a] == group[b] else found

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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--shares", default="0,0.1,0.3,0.7")
    parser.add_argument("--programs", type=int, default=16)
    parser.add_argument("--noise", type=float, default=0.015)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--new", type=int, default=0, help="programs that are in no pair learned from"
    )
    parser.add_argument("--slowdown", action="store_true", help="also the method of that name")
    options = parser.parse_args()
    one_core()
    header: list[str] | None = None
    ratios = []
    for law in options.laws.split(","):
        for share in map(float, options.shares.split(",")):
            found = [one_campaign(law, share, seed, options) for seed in range(options.seeds)]
            error = {name: float(np.mean([f[0][name] for f in found])) for name in found[0][0]}
            under = [f[1] for f in found if np.isfinite(f[1])]
            rules = [error[name] for name in RULES if name in error]
            over = error["probes"] / min(rules)
            ratios.append(over)
            if header is None:
                header = ["law", "pairs learned from", *error, "over", "under", "standard error"]
                print(*header, sep=" | ")
            cells = [law, f"{share:g}", *(f"{100 * value:.2f}" for value in error.values())]
            cells.append(f"{over:.3f}")
            spread = np.std(under, ddof=1) / np.sqrt(len(under)) if len(under) > 1 else np.nan
            cells += [f"{np.mean(under):.1%}" if under else "no bound"]
            cells += [f"{spread:.1%}" if np.isfinite(spread) else "-"]
            print(*cells, sep=" | ")
            sys.stdout.flush()
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"over the best rule: geometric mean {mean:.3f}, worst {max(ratios):.3f}")


RULES = ("none", "mean", "median", "additive")


def one_campaign(
    law: str, share: float, seed: int, options: argparse.Namespace
) -> tuple[dict[str, float], float]:
    """({who: mean relative error}, share of the tested runs under their bounds)."""
    import jostle
    from jostle.methods import learn

    random = np.random.default_rng([seed, list(LAWS).index(law)])
    probing, both, solo = drawn(law, random, options)
    count = options.programs
    new = np.arange(count + options.new) >= count
    held = np.array([random.random() >= share or new[a] or new[b] for a, b, *_ in both])
    tested = np.array([new[a] or new[b] for a, b, *_ in both]) if options.new else held
    learned, test = as_runs(both, ~held), as_runs(both, tested)
    data = jostle.runs.Runs.concatenate([probing, learned]) if (~held).any() else probing
    model = jostle.fit(data, jostle.Probes(), seed=seed, new_names=bool(options.new))
    truth = test.runtime_seconds
    away = {"probes": model.predict(test.colocations) / truth - 1}
    if options.slowdown:
        away["slowdown"] = (
            learn(jostle.Slowdown(), data, seed=seed).predict(test.colocations) / truth - 1
        )
    for name, seconds in by_rules(
        [b for b, h in zip(both, held, strict=True) if not h],
        [b for b, t in zip(both, tested, strict=True) if t],
        solo,
    ).items():
        away[name] = seconds / truth - 1
    bound = model.bound(test.colocations, CONFIDENCE).seconds
    under = float((truth <= bound).mean()) if np.isfinite(bound).all() else float("nan")
    return {name: float(np.abs(each).mean()) for name, each in away.items()}, under


Pair = tuple[int, int, float, float]  # the two, and their seconds


def drawn(
    law: str, random: np.random.Generator, options: argparse.Namespace
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
    from jostle.runs import Runs

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
    found = {"none": alone}
    log = np.array([math.log(s / solo[a]) for a, _, s in sides])
    n = len(solo)
    if len(log):
        found |= {"mean": alone * np.exp(log).mean(), "median": alone * np.exp(np.median(log))}

        def design(rows: list[Any]) -> np.ndarray:
            table = np.zeros((len(rows), 2 * n))
            for at, (a, b, *_) in enumerate(rows):
                table[at, [a, n + b]] = 1.0
            return table

        x = design(sides)
        effects = np.linalg.solve(x.T @ x + 0.5 * np.eye(2 * n), x.T @ (log - log.mean()))
        found["additive"] = alone * np.exp(log.mean() + design(wanted) @ effects)
    else:
        found |= dict.fromkeys(("mean", "median", "additive"), alone)
    return found


if __name__ == "__main__":
    main()
