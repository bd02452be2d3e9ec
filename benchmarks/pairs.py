"""Slowdown of pairs never measured together, on the public throughputs of Gavel: the table of docs/bag.md.

    python benchmarks/pairs.py [--seeds 5] [--quick]

Needs $JOSTLE_DATA (or ../shared/data) with gavel/. --quick: the slowdown form alone, without bounds.
"""

from __future__ import annotations

import argparse
import sys
import time

from _data import data_folder, one_core

GPUS = ("k80", "p100", "v100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    folder = data_folder("gavel/oracle_throughputs.json").parent
    one_core()

    from jostle.evaluate import evaluate_pairs, pair_methods
    from jostle.runs import import_gavel

    names = (
        ["slowdown"] if given.quick else ["solo", "solo_constant", "bag_tree", "bag", "slowdown"]
    )
    methods = pair_methods("slowdown", names)
    print("campaign | observed | on | method | MAPE % | coverage 90 % | margin % | CPU s")
    for campaign in ("oracle", "simulation"):
        runs = import_gavel(folder, campaign=campaign).runs
        tests = [(share, None) for share in (0.5, 0.1)]
        tests += [(share, gpu) for share in (0.2, 0.05) for gpu in GPUS]
        for share, gpu in tests:
            for name in names if gpu is None else names[-1:]:
                began = time.process_time()
                found = evaluate_pairs(
                    runs,
                    share,
                    {name: methods[name]},
                    seeds=range(given.seeds),
                    platform=gpu,
                    bounds=not given.quick,
                ).metrics
                values = [
                    found.get(f"{what}_{name}_ratio", float("nan"))
                    for what in ("slowdown_mape", "coverage_90", "margin_90")
                ]
                cells = [f"{100 * value:.1f}" for value in values]
                seconds = (time.process_time() - began) / given.seeds
                where = gpu or "all GPUs"
                print(campaign, share, where, name, *cells, f"{seconds:.1f}", sep=" | ")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
