"""Cells of the protocol in processes of their own, or on Dask workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._cluster import connected
from jostle.evaluate.factorization._cells import Cell, cell_table, run_cell, write_whole

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.runs import Runs

# A worker that dies takes its cell with it; another gets it, so often at most.
RETRIES = 3


def run_on_cluster(
    scheduler: Any,
    runs: Runs,
    home: Path,
    cells: Sequence[Cell],
    report: Callable[[int, str], None],
) -> None:
    """Cells on the workers of a Dask scheduler, which get the runs once each. The files are written here,
    as cells come back; the first error stops what has not begun."""
    from distributed import as_completed

    with connected(scheduler) as client:
        report(0, f"{len(client.scheduler_info()['workers'])} workers")
        data = client.scatter(runs, broadcast=True, hash=False)
        futures = {
            client.submit(_table, data, cell, key=cell.file_name, retries=RETRIES, pure=False): cell
            for cell in cells
        }
        try:
            for number, future in enumerate(as_completed(list(futures)), start=1):
                cell = futures[future]
                write_whole(home / cell.file_name, future.result())
                future.release()
                report(number, str(cell))
        except BaseException:
            client.cancel(list(futures))
            raise


def _table(runs: Runs, cell: Cell) -> pa.Table:
    return cell_table(runs, cell)


def read_ok(dataset: str) -> Runs:
    """The runs of a dataset that ended well."""
    from jostle.runs import read_runs

    return read_runs(dataset).ok()


def core_count() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def run_in_processes(
    dataset: str,
    home: Path,
    cells: Sequence[Cell],
    workers: int,
    report: Callable[[int, str], None],
) -> None:
    """Cells in processes of their own; the first error stops what has not begun."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    context = get_context("spawn")  # a forked JAX deadlocks
    turn = context.Value("i", 0)
    report(0, f"{workers} at once")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(dataset, turn, workers)
    ) as pool:
        futures = {pool.submit(_work, cell, str(home)): cell for cell in cells}
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()
                report(number, str(futures[future]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_WORKER: dict[str, Any] = {}


def _start_worker(dataset: str, turn: Any, workers: int) -> None:
    """Take this worker's cores, and end with the parent, even if that is killed."""
    import threading
    from multiprocessing import parent_process

    with turn.get_lock():
        number, turn.value = turn.value, turn.value + 1
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[number % workers :: workers] or cores)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    _WORKER["dataset"] = dataset


def _work(cell: Cell, home: str) -> None:
    if "runs" not in _WORKER:
        _WORKER["runs"] = read_ok(_WORKER["dataset"])
    run_cell(_WORKER["runs"], cell, Path(home))
