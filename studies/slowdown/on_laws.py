"""Slowdown beside every simple rule, on made campaigns whose laws are known: the tables of docs/bag.md.

    python -m studies.slowdown.on_laws [--seeds 4] [--laws NAME,...] [--shares 0.1,0.2,0.5] [--noise 0.02]
                              [--data FOLDER,...] [--method bag]

Each law is a campaign of 24 workloads alone and in all pairs on three platforms; a share of the sets is
observed, the rest is the test. --data adds datasets (folders of runs). The last column is the error of
the method, `slowdown` unless another is named, over that of the best rule, chosen on the test. Takes about 20
minutes of one core.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from typing import Any

from studies.data import one_core

RULES = ("solo", "solo_constant", "additive", "additive_low_rank", "boosting")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--laws", help="only these, separated by commas; empty for none")
    parser.add_argument("--shares", default="0.1,0.2,0.5")
    parser.add_argument("--noise", type=float, default=0.02)
    parser.add_argument("--data", help="folders of runs, separated by commas")
    parser.add_argument("--method", default="slowdown", choices=("slowdown", "bag"))
    options = parser.parse_args()
    one_core()

    from jostle.evaluate import evaluate_pairs, pair_methods

    names = (*RULES, *(["slowdown_form"] if options.method == "slowdown" else []), options.method)
    methods = pair_methods("slowdown", names)
    print("campaign", "observed", *names, "CPU s", "over best rule", sep=" | ")
    ratios = []
    for name, runs in _campaigns(options):
        for share in map(float, options.shares.split(",")):
            errors, seconds = {}, 0.0
            for method in names:
                began = time.process_time()
                found = evaluate_pairs(
                    runs, share, {method: methods[method]}, seeds=range(options.seeds), bounds=False
                )
                errors[method] = found.metrics[f"slowdown_mape_{method}_ratio"]
                seconds = (time.process_time() - began) / options.seeds
            ratio = errors[options.method] / min(errors[rule] for rule in RULES)
            ratios.append(ratio)
            cells = (f"{100 * errors[method]:.2f}" for method in names)
            print(name, share, *cells, f"{seconds:.1f}", f"{ratio:.3f}", sep=" | ")
            sys.stdout.flush()
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"over the best rule: geometric mean {mean:.3f}, worst {max(ratios):.3f}")


def _campaigns(options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    from jostle.runs import read_runs
    from studies.slowdown.laws import LAWS, MadeCampaign

    for folder in options.data.split(",") if options.data else ():
        yield folder, read_runs(folder)
    wanted = list(LAWS) if options.laws is None else [n for n in options.laws.split(",") if n]
    for law in wanted:
        yield law, MadeCampaign(law, noise=options.noise).runs(seed=0)


if __name__ == "__main__":
    main()
