"""Limits on the peaks of runs, beside what people do, on eight made processes.

    python -m studies.live.limits [--processes bursts,leaks] [--runs 5,20] [--draws 400] [-c 0.95]
        [--node] [--order]

Of each process some runs are recorded, a limit is asked for, and 200 new runs say how often it is exceeded.
Printed are the shares of runs that stay at or below each limit, over all draws, and in brackets its median
over the true quantile. `limit` is `jostle.usage.Peaks.limit`, `rest` the same for what is left of new runs
at sample 20 of theirs (over the true quantile of what is left of all, whatever they have shown); where a
confidence has no limit from so few runs, the share of draws that have one stands behind. max: the largest
peak seen, and 1.2 times it. vpa: the target of Kubernetes' vertical pod autoscaler (a decaying histogram of
peaks, its 90th percentile and 15%; weights halve every 24 runs). New runs of `cut` have no limit; recorded
ones that their limit ended are open for `limit`, and what they seem for the others. --node: of three such
residents, each of a workload of its own runs, the sum at any time: `node` is `jostle.usage.Residents`,
`drawn` the quantile of sums of recorded runs, and the others are sums of what they say of each. --order: of
eight processes whose peaks turn on their order, or may; each draw has one new run, and where `limit` gives
none, others are counted without it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.usage import Peaks, Residents
from studies.data import one_core
from studies.worlds.usage_processes import LAWS, ORDERED, a_run, peaks_in_order, whole_runs

NEW, TRUTH, MOMENT = 200, 20_000, 20
RULES: tuple[str, ...] = ("limit", "rest", "max", "max*1.2", "vpa")
NODE_RULES: tuple[str, ...] = ("node", "drawn", "max", "vpa")
ORDER_RULES: tuple[str, ...] = ("limit", "max", "max*1.2", "vpa")
NODE_TRUTH = 5000
FIRST_BUCKET, GROWTH, SAFETY, HALF_LIFE, PERCENTILE = 1e7, 1.05, 1.15, 24.0, 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", help="separated by commas, all by default")
    parser.add_argument("--runs", default="5,20,100")
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--node", action="store_true", help="the sum of three residents")
    parser.add_argument("--order", action="store_true", help="peaks that turn on their order")
    parser.add_argument("-c", "--confidence", type=float, default=0.95)
    options = parser.parse_args()
    one_core()
    exact_confidence(options.confidence)
    rules, act = (NODE_RULES, node_scores) if options.node else (RULES, scores)
    if options.order:
        rules, act = ORDER_RULES, order_scores
    laws = list(ORDERED if options.order else LAWS)
    print("process", "runs", *rules, sep=" | ", flush=True)
    for name in options.processes.split(",") if options.processes else laws:
        if name not in laws:
            parser.error(f"{name} is none of {', '.join(laws)}")
        for count in map(int, options.runs.split(",")):
            began = time.process_time()
            cells = act(name, count, options.draws, options.confidence, options.seed)
            print(name, count, *cells, sep=" | ", flush=True)
            spent = time.process_time() - began
            print(f"{name} {count}: {spent:.0f} CPU s", file=sys.stderr, flush=True)


def vpa_target(peaks: np.ndarray) -> float:
    """What the recommender would set after these peaks, the newest last."""
    bucket = np.floor(np.log1p((GROWTH - 1) * peaks / FIRST_BUCKET) / np.log(GROWTH))
    weight = 2.0 ** (np.arange(len(peaks)) / HALF_LIFE)
    order = np.argsort(bucket, kind="stable")
    below = np.cumsum(weight[order])
    place = int(bucket[order[np.searchsorted(below, PERCENTILE * below[-1] * (1 - 1e-12))]])
    # A bucket stands for its end, as the recommender has it.
    return float(SAFETY * FIRST_BUCKET * (GROWTH ** (place + 1) - 1) / (GROWTH - 1))


def scores(name: str, count: int, draws: int, confidence: float, seed: int) -> list[str]:
    """A cell for each rule."""
    random = np.random.default_rng([seed, list(LAWS).index(name), count])
    pool = whole_runs(name, TRUTH, random)
    truth = np.quantile([run.max() for run in pool], confidence)
    left_of_all = [run[MOMENT:].max() for run in pool if len(run) > MOMENT]
    left_truth = np.quantile(left_of_all, confidence)
    inside: dict[str, list[float]] = {rule: [] for rule in RULES}
    ratios: dict[str, list[float]] = {rule: [] for rule in RULES}
    asked = dict.fromkeys(RULES, 0)
    for _ in range(draws):
        runs = [a_run(name, random) for _ in range(count)]
        items = [{"values": run.tolist(), "end": ("done", "limit")[cut]} for run, cut in runs]
        peaks = Peaks.from_items(items)
        fresh = [pool[i] for i in random.integers(TRUTH, size=NEW)]
        top = np.array([run.max() for run in fresh])
        seen = np.array([run.max() for run, _ in runs])
        limits: dict[str, float] = {
            "limit": peaks.ranked(confidence).value,
            "vpa": vpa_target(seen),
        }
        limits |= {"max": seen.max(), "max*1.2": 1.2 * seen.max()}
        for rule, value in limits.items():
            asked[rule] += 1
            if np.isfinite(value):
                inside[rule].append(float((top <= value).mean()))
                ratios[rule].append(value / truth)
        going = [run for run in fresh if len(run) > MOMENT]
        for run in going[:4]:
            asked["rest"] += 1
            live = peaks.seen(np.arange(1.0, MOMENT + 1), run[:MOMENT])
            value = live.ranked(confidence).value
            if np.isfinite(value):
                inside["rest"].append(float(run[MOMENT:].max() <= value))
                ratios["rest"].append(value / left_truth)
    return [_cell(inside[rule], ratios[rule], asked[rule]) for rule in RULES]


def node_scores(name: str, count: int, draws: int, confidence: float, seed: int) -> list[str]:
    """A cell for each rule, of three residents."""
    random = np.random.default_rng([seed, list(LAWS).index(name), count, 1])
    pool = whole_runs(name, NODE_TRUTH, random)
    sums = _sums(pool, random, NODE_TRUTH)
    truth = float(np.quantile(sums, confidence))
    inside: dict[str, list[float]] = {rule: [] for rule in NODE_RULES}
    ratios: dict[str, list[float]] = {rule: [] for rule in NODE_RULES}
    for draw in range(draws):
        every = [[a_run(name, random) for _ in range(count)] for _ in range(3)]
        residents = [
            Peaks.from_items(
                {"values": run.tolist(), "end": ("done", "limit")[cut]} for run, cut in runs
            )
            for runs in every
        ]
        tops = [np.array([run.max() for run, _ in runs]) for runs in every]
        drawn = _sums([run for runs in every for run, _ in runs], random, 300, count)
        limits = {
            "node": Residents(residents, seed=draw).ranked(confidence).value,
            "drawn": float(np.quantile(drawn, confidence)),
            "max": float(sum(top.max() for top in tops)),
            "vpa": float(sum(vpa_target(top) for top in tops)),
        }
        for rule, value in limits.items():
            inside[rule].append(float((sums <= value).mean()))
            ratios[rule].append(value / truth)
    return [_cell(inside[rule], ratios[rule], draws) for rule in NODE_RULES]


def order_scores(name: str, count: int, draws: int, confidence: float, seed: int) -> list[str]:
    """A cell for each rule, of one new run a draw; ratios are over that run."""
    random = np.random.default_rng([seed, list(ORDERED).index(name), count, 2])
    inside: dict[str, list[float]] = {rule: [] for rule in ORDER_RULES}
    ratios: dict[str, list[float]] = {rule: [] for rule in ORDER_RULES}
    for _ in range(draws):
        *seen, new = peaks_in_order(name, count + 1, random)
        top = np.array(seen)
        peaks = Peaks.from_items([{"values": [peak]} for peak in seen])
        limits = {"limit": peaks.ranked(confidence).value, "vpa": vpa_target(top)}
        limits |= {"max": top.max(), "max*1.2": 1.2 * top.max()}
        for rule, value in limits.items():
            if np.isfinite(value):
                inside[rule].append(float(new <= value))
                ratios[rule].append(value / new)
    return [_cell(inside[rule], ratios[rule], draws) for rule in ORDER_RULES]


def _sums(
    runs: Sequence[np.ndarray], random: np.random.Generator, size: int, each: int | None = None
) -> np.ndarray:
    """(size,) highest sums of three runs, of any, or one of each so many."""
    highest = np.empty(size)
    for number in range(size):
        rows = random.integers(each or len(runs), size=3) + (
            0 if each is None else each
        ) * np.arange(3)
        total = np.zeros(max(len(runs[row]) for row in rows))
        for row in rows:
            total[: len(runs[row])] += runs[row]
        highest[number] = total.max()
    return highest


def _cell(inside: Sequence[float], ratios: Sequence[float], asked: int) -> str:
    if not inside:
        return "none"
    text = f"{np.mean(inside):.1%} ({np.median(ratios):.2f})"
    return text if len(inside) == asked else f"{text} of {len(inside) / asked:.0%}"


if __name__ == "__main__":
    main()
