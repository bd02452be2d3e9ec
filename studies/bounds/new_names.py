"""Coverage and margin of bounds for names that never or hardly ran, through jostle.fit(..., new_names=True).

    python -m studies.bounds.new_names DATASET
        [--draws 5] [--confidence 0.9] [--method factorization] [--alone]

Of a draw a fifth of the workloads and of the platforms never run, another tenth of each has 1, 3 or 10 runs,
and of the rest half of the runs is learned from. Coverage and margin are means over names. Beside the
mean error of the prediction stands that of a simple rule: the mean log runtime of what is known of the
other name. With --alone every name keeps its runs alone, for methods that answer relative to them. Takes
some five minutes of one core a draw on the public Pitot data.
"""

from __future__ import annotations

import argparse

import numpy as np

import jostle
from jostle.data import Runs
from jostle.learn import method_named
from studies.data import one_core

ALL = 10**9
AMOUNTS = (0, 1, 3, 10)


class NamesDraw:
    """What is left of each name, and which runs are learned from."""

    def __init__(self, runs: Runs, seed: int, alone: bool = False) -> None:
        c = runs.colocations
        random = np.random.default_rng([seed, 99])

        def plan(names: tuple[str, ...]) -> np.ndarray:
            n, order, left = len(names), random.permutation(len(names)), np.full(len(names), ALL)
            left[order[: n // 5]] = 0
            for j, i in enumerate(order[n // 5 : n // 5 + n // 10]):
                left[i] = AMOUNTS[1 + j % 3]
            return left

        self.w, self.p = c.workload, c.platform
        self.left_w, self.left_p = plan(c.workload_names), plan(c.platform_names)
        row = np.repeat(np.arange(len(c)), c.number_of_corunners)
        missing = self.left_w[c.corunner] < ALL
        self.near = np.zeros(len(c), bool)
        self.near[row[missing]] = True
        self.first_new_beside = np.full(len(c), -1)
        new = self.left_w[c.corunner] == 0
        self.first_new_beside[row[new][::-1]] = c.corunner[new][::-1]
        observed = random.random(len(c)) < 0.5
        self.old = (self.left_w[self.w] == ALL) & (self.left_p[self.p] == ALL) & ~self.near
        self.kept = self.old & observed
        for codes, left, other in (
            (self.w, self.left_w, self.left_p[self.p] == ALL),
            (self.p, self.left_p, self.left_w[self.w] == ALL),
        ):
            for name in np.flatnonzero((left > 0) & (left < ALL)):
                mine = np.flatnonzero((codes == name) & other & ~self.near)
                self.kept[random.permutation(mine)[: left[name]]] = True
        if alone:
            self.kept |= c.number_of_corunners == 0

    def questions(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """{what: (rows asked about, the name each stands for)}."""
        w, p = self.w, self.p
        results = {}
        for amount in AMOUNTS:
            for what, codes, left, other in (
                ("workload", w, self.left_w, self.left_p[p] == ALL),
                ("platform", p, self.left_p, self.left_w[w] == ALL),
            ):
                rows = np.flatnonzero((left[codes] == amount) & other & ~self.near & ~self.kept)
                results[f"{what} with {amount} runs"] = (rows, codes[rows])
        both = np.flatnonzero((self.left_w[w] == 0) & (self.left_p[p] == 0) & ~self.near)
        results["both new"] = (both, w[both])
        known = (self.left_w[w] == ALL) & (self.left_p[p] == ALL)
        beside = np.flatnonzero(known & (self.first_new_beside >= 0))
        results["new co-runner only"] = (beside, self.first_new_beside[beside])
        rest = np.flatnonzero(self.old & ~self.kept)
        results["names with all their runs"] = (rest, w[rest])
        return results


def rule_errors(runs: Runs, draw: NamesDraw, rows: np.ndarray) -> np.ndarray:
    """(len(rows),) absolute log errors of the mean level of whichever of the two names is known."""
    log = np.log(runs.runtime_seconds)
    level = float(log[draw.kept].mean())
    guess = np.full(len(rows), level)
    for codes in (draw.w, draw.p):
        counts = np.bincount(codes[draw.kept], minlength=codes.max() + 1)
        sums = np.bincount(codes[draw.kept], log[draw.kept], minlength=codes.max() + 1)
        effect = np.where(counts > 0, sums / np.maximum(counts, 1) - level, 0.0)
        guess += effect[codes[rows]]
    return np.abs(guess - log[rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--method", default="factorization")
    parser.add_argument("--alone", action="store_true", help="names keep their runs alone")
    options = parser.parse_args()
    one_core()
    runs = jostle.read(options.dataset).runs.ok()
    print(f"{'':<4} {'':<26} names  finite  coverage  margin  error  error of the rule")
    for seed in range(options.draws):
        draw = NamesDraw(runs, seed, options.alone)
        learned = runs.take(draw.kept)
        model = jostle.fit(learned, method_named(options.method)(), seed=seed, new_names=True)
        for what, (rows, name) in draw.questions().items():
            if not len(rows):
                continue  # no such name in this draw
            asked = runs.take(rows)
            bounds = model.bound(asked.colocations, options.confidence)
            finite = np.flatnonzero(bounds.is_valid)
            time, limit = asked.runtime_seconds[finite], bounds.seconds[finite]
            _, code, size = np.unique(name[finite], return_inverse=True, return_counts=True)
            covered = (np.bincount(code, time <= limit) / size).mean()
            margin = (np.bincount(code, np.maximum(limit / time - 1, 0)) / size).mean()
            error = np.abs(np.log(model.predict(asked.colocations) / asked.runtime_seconds))
            print(
                f"{seed:<4} {what:<26} {len(np.unique(name)):>5}  {len(finite) / len(rows):>6.3f}  "
                f"{covered:>8.3f}  {margin:>6.3f}  {np.nanmean(error):>5.3f}  "
                f"{rule_errors(runs, draw, rows).mean():>17.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
