"""Bounds of few rows: what a tenth of the public Pitot runs, or a made campaign with as few, keeps.

    python -m studies.bounds.few_rows PITOT|made [--observed 0.1] [--draws 8] [--method NAME]
        [--workers 1] [--kept FILE]

Each draw observes that share of the windows and fits with `jostle.fit`; the rest is asked about at 0.9:
coverage and margin of runs alone and beside one, and coverage of the tenth of platforms that are covered
least, with what that would be if every run were covered with the same chance. `made`: two runs of a workload
on a platform, of laws of `studies.live.drift_made`, whose widths differ by name or do not.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from studies.bounds.kept import add_options, drawn
from studies.data.pitot import read_pitot
from studies.live.drift_made import campaign

CONFIDENCE, WORST, MADE_ASKED = 0.9, 0.1, 20_000
MADE = ("crossed", "crossed widths heavy", "widths of both one-sided")
HEADS = ("alone", "beside one", "margin alone", "margin beside", "worst tenth", "by chance")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", metavar="PITOT|made")
    parser.add_argument("--observed", type=float, default=0.1)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--fitted", type=int, default=600, help="runs of a made campaign")
    parser.add_argument("--method", help="by default what `jostle fit` takes")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    print("data | draw", *HEADS, sep=" | ")
    found: dict[str, list[list[float]]] = {}
    seeds = range(options.seed, options.seed + options.draws)
    for (seed,), rows in drawn(_rows, ((seed,) for seed in seeds), options).items():
        for name, row in rows:
            found.setdefault(name, []).append(row)
            print(name, seed, *(f"{value:.3f}" for value in row), sep=" | ")
    for name, rows in found.items():
        errors = np.std(rows, axis=0, ddof=min(len(rows) - 1, 1)) / np.sqrt(len(rows))
        pairs = zip(np.mean(rows, axis=0), errors, strict=True)
        print(name, "all", *(f"{mean:.3f} ± {error:.3f}" for mean, error in pairs), sep=" | ")


def _rows(options: Any, seed: int) -> list[tuple[str, list[float]]]:
    import jostle

    rows, method = [], [] if options.method is None else [options.method]
    for name, learn, ask in _campaigns(options, seed):
        bounds = jostle.fit(learn, *method, seed=seed).bound(ask.colocations, CONFIDENCE)
        rows.append((name, measured(bounds.seconds, ask, np.random.default_rng(seed))))
    return rows


def _campaigns(options: Any, seed: int) -> Iterator[tuple[str, Any, Any]]:
    """(name, runs to learn, runs to ask about)."""
    if options.data == "made":
        for law in MADE:
            make = campaign(law, seed)
            yield law, make(options.fitted), make(MADE_ASKED)
        return
    from jostle.runs import split_rows

    runs = read_pitot(Path(options.data)).ok()
    observed, asked = split_rows(runs, (options.observed, 1 - options.observed), seed, by="window")
    yield "pitot", runs.take(observed), runs.take(asked)


def measured(seconds: np.ndarray, asked: Any, random: np.random.Generator) -> list[float]:
    """As HEADS, of bounds (n,)."""
    import jostle

    took, degree = asked.runtime_seconds, asked.colocations.number_of_corunners
    parts, covered = (degree == 0, degree == 1), took <= seconds
    margins = [
        jostle.bounds.margin(
            seconds[part & np.isfinite(seconds)], took[part & np.isfinite(seconds)]
        )
        for part in parts
    ]
    platform = asked.colocations.platform
    by_chance = random.random(len(took)) < covered.mean()
    worst = []
    for one in (covered, by_chance):
        share = np.bincount(platform, one) / np.maximum(np.bincount(platform), 1)
        share = np.sort(share[np.unique(platform)])
        worst.append(float(share[: max(1, round(WORST * len(share)))].mean()))
    return [*(float(covered[part].mean()) for part in parts), *margins, *worst]


if __name__ == "__main__":
    main()
