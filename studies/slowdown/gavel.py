"""Slowdown of pairs never measured together, on the public throughputs of Gavel: the table of docs/bag.md.

    python -m studies.slowdown.gavel [--seeds 5] [--quick] [--methods NAME,...]

Needs $JOSTLE_DATA (or ../shared/data) with gavel/. --quick: the slowdown method alone, without bounds. Takes
about half an hour of one core; --methods takes some of the rows.
"""

from __future__ import annotations

import argparse
import sys
import time

from studies.data import data_folder, one_core

GPUS = ("k80", "p100", "v100")
ON_ONE_GPU = ("solo_constant", "additive", "additive_low_rank", "boosting", "slowdown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--methods", help="only these, separated by commas")
    options = parser.parse_args()
    folder = data_folder("gavel/oracle_throughputs.json").parent
    one_core()

    from jostle.evaluate import evaluate_pairs, pair_methods
    from jostle.runs import GavelImport

    every = options.methods.split(",") if options.methods else None
    methods = pair_methods("slowdown", ["slowdown"] if options.quick else every)
    columns = ("MAPE %", "± draws", *GPUS, "coverage 90 %", "± s.e.", "margin %", "CPU s")
    print("campaign", "observed", "on", "method", *columns, sep=" | ")
    for campaign in ("oracle", "simulation"):
        runs = GavelImport(folder, campaign=campaign).read().runs
        tests = [(share, None) for share in (0.5, 0.1)]
        tests += [(share, gpu) for share in (0.2, 0.05) for gpu in GPUS]
        for share, gpu in tests:
            for name in (name for name in methods if gpu is None or name in ON_ONE_GPU):
                began = time.process_time()
                found = evaluate_pairs(
                    runs,
                    share,
                    {name: methods[name]},
                    seeds=range(options.seeds),
                    platform=gpu,
                    bounds=not options.quick,
                ).metrics
                keys = [f"slowdown_mape_{name}", f"slowdown_mape_sd_{name}"]
                keys += [f"slowdown_mape_{name}_{place}" for place in GPUS]
                keys += [f"coverage_90_{name}", f"coverage_90_standard_error_{name}"]
                keys.append(f"margin_90_{name}")
                values = [found.get(f"{key}_ratio") for key in keys]
                cells = ["–" if value is None else f"{100 * value:.1f}" for value in values]
                seconds = (time.process_time() - began) / options.seeds
                where = gpu or "all GPUs"
                print(campaign, share, where, name, *cells, f"{seconds:.1f}", sep=" | ")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
