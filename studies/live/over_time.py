"""Company that changes: what is told of the last 100 jobs of the shipped log as they are placed, by the
default method from those before them.

    python -m studies.live.over_time

`future`: whatever may come; `start`: the set at the start throughout; `largest`: the largest set that there
was, known afterwards only. Rivals know the set at the start: the quantile of a name on its kind of node, and
conformalised quantiles of boosted trees.
"""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.data import Runs, SacctImport
from jostle.models import Ages, past_and_future
from studies.data import one_core
from studies.live.log_bounds import first_companies, rivals_of


def told(model: jostle.Model, log: Runs, rows: np.ndarray, c: float) -> dict[str, Any]:
    """{what: (told, bound)} of jobs as they began."""
    zero = np.zeros(len(rows))
    ages = Ages.of(log, model)
    future = ages.with_residents(past_and_future(log, rows, zero, is_open=True), rows)
    known = past_and_future(log, rows, zero, is_open=False)
    start, sizes = future.colocations, known.colocations.number_of_corunners
    largest = np.array(
        [m[np.argmax(sizes[m])] for m in np.split(np.arange(len(sizes)), known.last[:-1] + 1)]
    )
    sets = {"start": start, "largest": known.colocations.take(largest)}
    return {
        "future": _pair(model, future, c),
        "timeline": _pair(model, known, c),
        **{name: _pair(model, one, c) for name, one in sets.items()},
    }


def _pair(model: jostle.Model, asked: Any, c: float) -> tuple[np.ndarray, np.ndarray]:
    seconds, bounds = model.predict_and_bound(asked, c)
    return seconds, bounds.seconds


def line(name: str, seconds: np.ndarray, bound: np.ndarray, actual: np.ndarray) -> str:
    """Median error, share covered, mean margin of those with a bound, share with one."""
    error = 100 * np.median(np.abs(seconds / actual - 1))
    good = np.isfinite(bound)
    margin = np.mean(np.maximum(bound - actual, 0)[good] / actual[good])
    covers = (actual <= bound)[good].mean()
    return f"{name} | {error:.1f}% | {covers:.3f} | {margin:.3f} | {good.mean():.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--confidence", type=float, default=0.9)
    options = parser.parse_args()
    one_core()
    text = jostle.data.slurm_log().read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        nodes = Path(folder) / "nodes.csv"
        nodes.write_text("node,platform\n" + "".join(f"n{k},small\n" for k in range(1, 7)))
        edges: dict[str, Any] = {"since": "2026-11-24T13:00:00", "until": "2026-11-24T13:30:00"}
        rule = "{User}/{JobName:^[a-z]+}"
        runs = SacctImport(io.BytesIO(text.encode()), rule, nodes=nodes, **edges).read().runs().ok()
    at = runs.table.column("measured_at").combine_chunks().cast("int64").to_numpy()
    runs = runs.take(np.argsort(at, kind="stable"))
    rows = np.arange(len(runs) - 100, len(runs))
    before = runs.take(np.arange(len(runs) - 100))
    model = jostle.fit(before, seed=options.seed)
    actual = runs.runtime_seconds[rows]
    print("last 100 jobs | median error | covers | margin | with a bound")
    for name, (seconds, bound) in told(model, runs, rows, options.confidence).items():
        print(line(name, seconds, bound, actual))
    asked = {
        row["JobID"]: 60.0 * float(row["TimelimitRaw"])
        for row in csv.DictReader(io.StringIO(text), delimiter="|")
        if row["TimelimitRaw"]
    }
    ids = [one.split(":")[1] for one in runs.table.column("run_id").to_pylist()]
    limit = np.array([asked.get(ids[row], np.nan) for row in rows])
    first = first_companies(runs)
    told_by = rivals_of(first.take(np.arange(len(before))), before.runtime_seconds)
    for name, rival in told_by.items():
        seconds, bound = rival.predict_and_bound(first.take(rows), options.confidence)
        print(line(name, seconds, bound, actual))
    print(line("time that the user asked for", limit, limit, actual))


if __name__ == "__main__":
    main()
