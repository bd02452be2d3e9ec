"""90% bounds of workloads that never ran on a platform, or never alone there, on ten made laws.

    python -m studies.bounds.never_there [--draws 2] [--laws NAME,...] [--fitted 900] [--workers 1]

Campaigns of 24 workloads on 8 platforms, alone or beside one or two others, from which all runs of a fifth of
the pairs of workload and platform are left out, and all runs alone on one platform. `jostle.fit` learns from
the rest; 3000 runs of the whole mix are asked about, in three parts: what never ran there, what only ran
there beside others, and what ran there alone. Error: of the prediction, mean, relative.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from studies.bounds.kept import add_options, drawn
from studies.worlds.noisy_worlds import LAWS, PLATFORMS, WORKLOADS, NoisyWorld

CONFIDENCE, ASKED, LEFT_OUT = 0.9, 3000, 0.2
PARTS = ("never there", "only beside others there", "alone there")
HEADS = ("asked", "error", "answered", "kept at 0.9", "least of a draw", "margin")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--fitted", type=int, default=900, help="runs, of which some are left out")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    seeds, laws = range(options.seed, options.seed + options.draws), options.laws.split(",")
    found = drawn(_of_draw, ((law, seed) for law in laws for seed in seeds), options)
    print("law | part", *HEADS, sep=" | ")
    for law in [*laws, "all"]:
        rows = np.array([rows for (name, _), rows in found.items() if law in (name, "all")])
        for part, mine in zip(PARTS, rows.transpose(1, 0, 2), strict=True):
            n, error, answered, kept, margin = np.nanmean(mine, axis=0)
            least = np.nanmin(mine[:, 3])
            cells = (
                f"{error:.3f}",
                f"{answered:.0%}",
                f"{kept:.3f}",
                f"{least:.3f}",
                f"{margin:.3f}",
            )
            print(law, part, round(n), *cells, sep=" | ")


def _of_draw(options: Any, law: str, seed: int) -> list[list[float]]:
    import jostle

    world, random = NoisyWorld(law, seed), np.random.default_rng([seed, 17])
    left_out = random.random((PLATFORMS, WORKLOADS)) < LEFT_OUT
    left_out[0] = False
    runs, come = world.runs(options.fitted), world.runs(ASKED)
    platform, workload = _codes(runs)
    alone = runs.colocations.number_of_corunners == 0
    runs = runs.take(~left_out[platform, workload] & ~(alone & (platform == 0)))
    model = jostle.fit(runs, seed=seed)
    known = np.zeros((2, PLATFORMS, WORKLOADS), bool)
    platform, workload = _codes(runs)
    alone = runs.colocations.number_of_corunners == 0
    known[0, platform, workload] = True
    known[1, platform[alone], workload[alone]] = True
    known = known[:, *_codes(come)]
    predicted, took = model.predict(come.colocations), come.runtime_seconds
    bounds, rows = model.bound(come.colocations, CONFIDENCE), []
    for part in (~known[0], known[0] & ~known[1], known[1]):
        valid = part & bounds.is_valid
        error = np.nanmean(np.abs(predicted[part] / took[part] - 1))
        kept = np.mean((took <= bounds.seconds)[valid]) if valid.any() else np.nan
        margin = (
            jostle.conformal.margin(bounds.seconds[valid], took[valid]) if valid.any() else np.nan
        )
        rows.append([float(part.sum()), error, valid.sum() / part.sum(), kept, margin])
    return rows


def _codes(runs: Any) -> tuple[np.ndarray, np.ndarray]:
    """((n,) platform, (n,) workload), as the world numbers them."""
    c = runs.colocations
    numbers = [
        np.array([int(name.strip("made:w")) for name in n])
        for n in (c.platform_names, c.workload_names)
    ]
    return numbers[0][c.platform], numbers[1][c.workload]


if __name__ == "__main__":
    main()
