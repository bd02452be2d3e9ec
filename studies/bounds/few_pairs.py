"""What bounds calibrated on few pairs of several runs cover: by arithmetic, and of made campaigns.

    python -m studies.bounds.few_pairs [--pairs 16,19,29] [--runs 8] [--alike 0,0.5,1] [--campaigns 16]

A pair's runs are one unit. The arithmetic draws scores of so many pairs and one new one, whose runs correlate
by --alike, and takes the threshold as `jostle.bounds` does, of all runs and of one of each pair. Each made
campaign has 13 workloads alone and in all 78 pairs, both sides of a pair four times, with errors of pairs as
large as those of runs; eight pairs are left out, `jostle.fit` with `slowdown` does the rest, calibrated as is
usual and as the accelerator is, and every pair weighs the same.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from studies.data import one_core

CONFIDENCE = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", default="16,19,29", help="to calibrate on, by commas")
    parser.add_argument("--runs", type=int, default=8, help="of a pair")
    parser.add_argument("--alike", default="0,0.5,1", help="correlations, by commas")
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--campaigns", type=int, default=16)
    options = parser.parse_args()
    one_core()
    alike = [float(one) for one in options.alike.split(",")]
    print("pairs", *(f"runs correlate by {one:g}" for one in alike), sep=" | ")
    for pairs in map(int, options.pairs.split(",")):
        for one_of_each in (False, True):
            cells = [
                f"{covered(pairs, options.runs, one, options.draws, one_of_each):.1%}"
                for one in alike
            ]
            what = "one run of each" if one_of_each else "all runs"
            print(f"{pairs}, {what}", *cells, sep=" | ", flush=True)
    for is_close in (False, True):
        shares = []
        for seed in range(options.campaigns):
            shares.append(of_campaign(seed, is_close))
            print(f"campaign {seed}: {shares[-1]:.3f}", file=sys.stderr, flush=True)
        if len(shares) > 1:
            error = float(np.std(shares, ddof=1)) / np.sqrt(len(shares))
            what = "as the accelerator" if is_close else "as usual"
            print(
                f"{len(shares)} made campaigns, calibrated {what}: {np.mean(shares):.1%}, standard error "
                f"{error:.1%}"
            )


def covered(pairs: int, runs: int, alike: float, draws: int, one_of_each: bool) -> float:
    """Of the runs of a new pair, by the threshold at CONFIDENCE."""
    from jostle.bounds import conformal_rank
    from jostle.bounds._rank import rank_by_weight, window_weights

    random = np.random.default_rng(0)
    scores = np.sqrt(alike) * random.normal(size=(draws, pairs + 1, 1))
    scores = scores + np.sqrt(1 - alike) * random.normal(size=(draws, pairs + 1, runs))
    weight, total = window_weights(np.repeat(np.arange(pairs), runs))
    rank = rank_by_weight(np.cumsum(weight), total, CONFIDENCE)
    known = scores[:, :pairs].reshape(draws, -1)
    if one_of_each:
        known, rank = scores[:, :pairs, 0], conformal_rank(pairs, CONFIDENCE)
    if rank > known.shape[1]:
        return 1.0
    known = np.sort(known, axis=1)
    return float((scores[:, pairs] <= known[:, rank - 1, None]).mean())


def of_campaign(
    seed: int, is_close: bool, workloads: int = 13, repeats: int = 4, spread: float = 0.05
) -> float:
    """The share of runs of pairs left out that are under their bounds."""
    from dataclasses import replace

    import jostle
    from jostle.methods import Data, Prepared
    from jostle.runs import Runs

    random = np.random.default_rng(seed)
    names = [f"a{i:02d}" for i in range(workloads)]
    hit, press = random.gamma(2, 0.05, (2, workloads))
    solo = random.uniform(1, 9, workloads)
    rows: list[tuple[int, list[str], float, str]] = []
    for i in range(workloads):
        alone = solo[i] * np.exp(0.01 * random.normal(size=3))
        rows += [(i, [], float(alone[k]), f"{i} {k}") for k in range(3)]
        for j in range(i):
            own = spread * random.normal()
            for k in range(repeats):
                for a, b in ((i, j), (j, i)):
                    log = hit[a] + press[b] + own + spread * random.normal()
                    rows.append((a, [names[b]], float(solo[a] * np.exp(log)), f"{i} {j} {k}"))
    runs = Runs.from_columns(
        workload=[names[a] for a, *_ in rows],
        platform=["p"] * len(rows),
        corunners=[others for _, others, *_ in rows],
        runtime_seconds=[seconds for _, _, seconds, _ in rows],
        window_id=[window for *_, window in rows],
    )
    unit, beside = runs.units("together"), runs.colocations.number_of_corunners > 0
    left = np.random.default_rng([seed, 1]).permutation(np.unique(unit[beside]))[:8]
    tested = np.isin(unit, left) & beside

    class Calibrated(jostle.Bag):
        def prepare(self, data: Data) -> Prepared:
            return replace(super().prepare(data), is_close=is_close)

    method = Calibrated(rules=False)
    model = jostle.fit(runs.take(~tested), method, seed=seed)
    asked = runs.take(tested)
    kept = asked.runtime_seconds <= model.bound(asked.colocations, CONFIDENCE).seconds
    of = asked.units("together")
    return float(np.mean([kept[of == one].mean() for one in np.unique(of)]))


if __name__ == "__main__":
    main()
