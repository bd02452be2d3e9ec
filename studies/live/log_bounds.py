"""Bounds of jobs of four kinds of logs, at moments of their runs, beside what people would try first.

    python -m studies.live.log_bounds [--laws repeats,inputs] [--jobs 2500] [-c 0.9]

The first four fifths of a log are learned from, the others asked about when 0, 50 and 90% of their time has
passed, by the time alone or by the run's own count of its work, with what was known then. Printed are the
median error, the share of runs within the bound, the least of names with 30 runs, the mean margin, and the
margin where bounds are multiplied so that just that share is within them.
Rivals know who is there as the job begins; trees are LightGBM's if it is installed, else scikit-learn's, and
their quantiles are conformalised on the last fifth of what they may learn from.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

import jostle
from jostle.data import Colocations, Runs
from jostle.models import Ages, past_and_future
from jostle.operations import BoostedQuantiles, NameQuantiles, quantile_rivals
from studies.data import one_core
from studies.worlds.node_logs import LAWS, node_log

MOMENTS = (0.0, 0.5, 0.9)


def line(
    name: str, told: np.ndarray, bound: np.ndarray, actual: np.ndarray, who: np.ndarray, c: float
) -> str:
    """A row of the table; of those with a bound."""
    good = np.isfinite(bound)
    inside = (actual <= bound)[good]
    least = min(
        (
            inside[who[good] == one].mean()
            for one in np.unique(who)
            if (who[good] == one).sum() >= 30
        ),
        default=np.nan,
    )
    over = np.sort((actual / bound)[good])
    equal = bound * over[min(int(np.ceil(c * len(over))), len(over)) - 1]
    margins = [np.mean(np.maximum(b / actual - 1, 0)[good]) for b in (bound, equal)]
    cells = [np.median(np.abs(told / actual - 1)), inside.mean(), least, *margins]
    return " | ".join([name, *(f"{one:.3f}" for one in cells)])


def first_companies(runs: Runs) -> Colocations:
    """Of each run of a log that beside which it began."""
    parts = runs.stretches
    return parts.colocations.take(np.flatnonzero(np.diff(parts.row, prepend=-1)))


def rivals_of(asked: Colocations, seconds: np.ndarray) -> dict[str, Any]:
    """Each by its name, learned from these in order of time; the last fifth conformalises trees."""
    held = np.arange(len(asked)) >= int(0.8 * len(asked))
    by_name, trees = quantile_rivals()
    return {by_name: NameQuantiles(asked, seconds), trees: BoostedQuantiles(asked, seconds, held)}


def rows_of(law: str, jobs: int, seed: int, c: float) -> list[str]:
    """The table of one log."""
    runs, cut = node_log(law, jobs, seed), int(0.8 * jobs)
    model = jostle.fit(runs.take(np.arange(cut)), seed=seed)
    rows = np.arange(cut, jobs)
    actual, who = runs.runtime_seconds[rows], runs.colocations.workload[rows]
    ages = Ages.of(runs, model)
    found = []
    whole = replace(past_and_future(runs, rows, 0 * actual, is_open=False), elapsed_seconds=actual)
    logs = np.log(model.predict(whole.colocations))
    for moment in MOMENTS:
        elapsed = moment * actual
        asked = ages.with_residents(past_and_future(runs, rows, elapsed, is_open=True), rows)
        asks = {"": asked}
        if moment:
            done = replace(whole, elapsed_seconds=elapsed).lawful(logs) / whole.lawful(logs)
            asks[", its own count"] = replace(asked, done_ratio=np.minimum(done, 0.999))
        for how, one in asks.items():
            told, bounds = model.predict_and_bound(one, c)
            found.append(line(f"future at {moment:.0%}{how}", told, bounds.seconds, actual, who, c))
    first = first_companies(runs)
    for name, rival in rivals_of(first.take(np.arange(cut)), runs.runtime_seconds[:cut]).items():
        told, bound = rival.predict_and_bound(first.take(rows), c)
        found.append(line(name, told, bound, actual, who, c))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", default=",".join(LAWS), help="separated by commas")
    parser.add_argument("--jobs", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--confidence", type=float, default=0.9)
    options = parser.parse_args()
    one_core()
    for law in options.laws.split(","):
        print(f"{law} | error | covers | least of a name | margin | at equal coverage")
        print(*rows_of(law, options.jobs, options.seed, options.confidence), sep="\n", flush=True)


if __name__ == "__main__":
    main()
