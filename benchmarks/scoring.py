"""Co-locations scored from and to Parquet, on Dask workers: rows a second of CPU, memory, and a check.

    python benchmarks/scoring.py [--rows 2000000] [--workers 2] [--folder FOLDER]

A model of a tenth of the public Pitot runs is fitted; a table of so many co-locations, half of them beside
another workload, each with a limit of 1.5 times alone, is written and scored with `Placement.score`, on so
many local Dask workers of one thread each (0: in this process). Two thousand rows are then answered one by
one with `Model.bound` and compared. FOLDER, where tables lie, is by default a temporary one.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from _data import pitot_folder

AT_ONCE = 500_000
CHECKED = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    import jostle
    from jostle.placement import place
    from studies.data.pitot import read_pitot

    runs = read_pitot(pitot_folder()).ok()
    some = np.random.default_rng(0).permutation(len(runs))[: len(runs) // 10]
    model = jostle.fit(runs.take(np.sort(some)), jostle.Factorization())
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        write_table(model, given.rows, folder / "asked.parquet")
        size = (folder / "asked.parquet").stat().st_size / 2**20
        print(f"{given.rows} rows, {size:.0f} MiB", flush=True)
        scheduler = None
        if given.workers:
            from distributed import Client

            scheduler = stack.enter_context(
                Client(n_workers=given.workers, threads_per_worker=1, dashboard_address=None)
            )
        began, cpu = time.monotonic(), time.process_time()
        before = used(scheduler)
        found = place(model, []).score(
            folder / "asked.parquet", folder / "scored.parquet", scheduler=scheduler
        )
        took, mine = time.monotonic() - began, time.process_time() - cpu
        after = used(scheduler)
        seconds = mine + sum(after[k][0] - before[k][0] for k in after)
        peak = max([one[1] for one in after.values()], default=0)
        here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{found.rows} rows scored in {took:.0f} s, {seconds:.0f} CPU-s in all: "
            f"{found.rows / seconds:.0f} rows a CPU-second; this process at most {here} MiB, "
            f"a worker {peak} MiB; safe {found.safe}, reasons {found.reasons}",
            flush=True,
        )
        check(model, folder)


def write_table(model: Any, rows: int, path: Path) -> None:
    """Co-locations drawn at random, half of them beside another workload."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(1)
    workloads = pa.array(model.predictor.workload_names)
    platforms = pa.array(model.predictor.platform_names)
    writer = None
    for first in range(0, rows, AT_ONCE):
        n = min(AT_ONCE, rows - first)
        beside = random.random(n) < 0.5
        offsets = np.concatenate([[0], np.cumsum(beside)]).astype(np.int32)
        others = pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, len(workloads), int(offsets[-1])), pa.int32()), workloads
        )
        table = pa.table(
            {
                "workload": workloads.take(pa.array(random.integers(0, len(workloads), n))),
                "platform": platforms.take(pa.array(random.integers(0, len(platforms), n))),
                "corunners": pa.ListArray.from_arrays(pa.array(offsets), others.cast(pa.string())),
                "slowdown": np.full(n, 1.5),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table, row_group_size=AT_ONCE)
    if writer is not None:
        writer.close()


def used(client: Any) -> dict[str, tuple[float, int]]:
    """{worker: (CPU-seconds so far, MiB at most)}."""
    if client is None:
        return {}

    def told() -> tuple[float, int]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return sum(os.times()[:2]), usage.ru_maxrss // 1024

    return client.run(told)


def check(model: Any, folder: Path) -> None:
    """Some rows of some row groups against single answers."""
    import pyarrow.parquet as pq

    from jostle.runs import Colocations

    asked, scored = (pq.ParquetFile(folder / f"{name}.parquet") for name in ("asked", "scored"))
    assert asked.metadata.num_rows == scored.metadata.num_rows
    random, worst, seen = np.random.default_rng(2), 0.0, 0
    starts = np.cumsum(
        [0, *(scored.metadata.row_group(g).num_rows for g in range(scored.num_row_groups))]
    )
    for group in random.permutation(scored.num_row_groups)[:4].tolist():
        table = scored.read_row_group(group)
        rows = np.sort(random.choice(len(table), min(CHECKED // 4, len(table)), replace=False))
        some = table.take(rows).to_pydict()
        question = Colocations.from_columns(
            workload=some["workload"], platform=some["platform"], corunners=some["corunners"]
        )
        alone = Colocations.from_columns(workload=some["workload"], platform=some["platform"])
        # Nobody is promised less beside others than alone.
        bounds = model.bound(question).seconds
        bounds = np.maximum(bounds, model.bound(alone).seconds)
        found = np.array([np.inf if b is None else b for b in some["bound_seconds"]], float)
        both = np.isfinite(bounds) & np.isfinite(found)
        assert (np.isfinite(bounds) == np.isfinite(found)).all()
        worst = max(worst, float(np.abs(found[both] / bounds[both] - 1).max(initial=0.0)))
        seen += len(rows)
        # The same row as was asked, where it was asked.
        first = int(starts[group] + rows[0])
        there = asked.read_row_group(first // AT_ONCE).slice(first % AT_ONCE, 1).to_pylist()[0]
        assert (there["workload"], there["platform"]) == (some["workload"][0], some["platform"][0])
    print(f"{seen} rows asked one by one: bounds differ by at most {worst:.1e} of themselves")


if __name__ == "__main__":
    main()
