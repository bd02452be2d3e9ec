"""What a measured dataset shows: who slows whom, and how well the factorization predicts the rest.

    python -m studies.collect.sample_tables DATASET [--seed 0]

Prints two tables. Interference: pairs on one platform that were measured at least five times; slowdown
is the runtime over the median alone, with a 95 % bootstrap interval of the median; pairs whose interval
begins above 1.05 are named. Accuracy: a quarter of the sets held out, the rest learned from; mean error
of the factorization and of both naive guesses on the held-out runs, and the factor between them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from jostle.data import Runs, read_runs, solo_seconds
from jostle.models import fit
from jostle.operations import error_measures
from jostle.operations.tour import tour_method

FEWEST = 5
SLOWED = 1.05


def hold_out_sets(runs: Runs, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(held, rest) indices: a share of the distinct sets with co-runners, all runs of a set together."""
    c = runs.colocations
    names = c.to_columns()
    key = [
        (platform, tuple(sorted([workload, *beside]))) if beside else None
        for workload, platform, beside in zip(*names.values(), strict=True)
    ]
    sets = sorted({k for k in key if k is not None})
    places = np.random.default_rng(seed).permutation(len(sets))[: round(share * len(sets))]
    held_sets = {sets[i] for i in places}
    held = np.array([k in held_sets for k in key], bool)
    return np.flatnonzero(held), np.flatnonzero(~held)


def interference(runs: Runs, seed: int) -> list[tuple[str, str, str, float, float, float, int]]:
    """(platform, workload, beside, slowdown, low, high, times), the most slowed first."""
    draw = np.random.default_rng(seed)
    solo = solo_seconds(runs, runs.colocations)
    results: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in np.flatnonzero(runs.colocations.number_of_corunners == 1):
        workload, platform, beside = runs.colocations.row(int(row))
        if np.isfinite(solo[row]):
            results[platform, workload, beside[0]].append(runs.runtime_seconds[row] / solo[row])
    rows = []
    for (platform, workload, other), slowdowns in results.items():
        if len(slowdowns) < FEWEST:
            continue
        values = np.array(slowdowns)
        again = np.median(draw.choice(values, (2000, len(values))), axis=1)
        low, high = np.quantile(again, [0.025, 0.975])
        rows.append((platform, workload, other, float(np.median(values)), low, high, len(values)))
    return sorted(rows, key=lambda row: -row[3])


def accuracy(runs: Runs, seed: int) -> dict[str, float]:
    """Mean errors on the held-out co-locations, and the factors by which the naive ones are larger."""
    held, rest = hold_out_sets(runs, 0.25, seed)
    asked, learned = runs.take(held), runs.take(rest)
    solo = solo_seconds(learned, asked.colocations)
    model = fit(learned, tour_method(), seed=seed)
    error = error_measures(model.predict(asked.colocations), asked.runtime_seconds)["mape"]
    alone = error_measures(solo, asked.runtime_seconds)["mape"]
    in_turns = solo * (asked.colocations.number_of_corunners + 1)
    share = error_measures(in_turns, asked.runtime_seconds)["mape"]
    return {
        "held_out_runs": float(len(held)),
        "mape_factorization_ratio": error,
        "mape_naive_solo_ratio": alone,
        "mape_naive_share_ratio": share,
        "better_than_solo_factor": alone / error,
        "better_than_share_factor": share / error,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    runs = read_runs(asked.dataset).ok()
    print("| platform | workload | beside | slowdown | 95 % interval | times | slowed |")
    print("|---|---|---|---|---|---|---|")
    for platform, workload, other, middle, low, high, times in interference(runs, asked.seed):
        slowed = "yes" if low > SLOWED else "no"
        interval = f"{low:.2f} to {high:.2f}"
        print(
            f"| {platform} | {workload} | {other} | {middle:.2f} | {interval} | {times} | {slowed} |"
        )
    print()
    for name, value in accuracy(runs, asked.seed).items():
        print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    main()
