"""Many cells of a study: fitted here, in processes of their own, or on Dask workers; finished ones are kept.

A cell is one piece of a study's work, such as one fit and what it is worth. Its numbers are facts: where
there is a folder, each is one immutable Parquet file, named by a hash of all that determines it, written
whole or not at all. So a killed study loses only the cells in flight, and studies share the cells they have
in common.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from jostle._base import files as _files
from jostle._base.dask_cluster import connected
from jostle._base.progress import Progress, no_progress
from jostle.errors import NotPermitted, UnreadableFile

if TYPE_CHECKING:
    import pyarrow as pa

# A worker that dies takes its cell with it; another gets it, so often at most.
RETRIES = 3
NO_LOSS = float("nan")


class Cell(Protocol):
    """A value that other processes can be sent. file_name: equal for equal cells only."""

    @property
    def file_name(self) -> str: ...

    def measure(self, data: Any) -> pa.Table:
        """The numbers of this cell on the data that all cells of a study share."""
        ...


@dataclass(frozen=True)
class Runner:
    """workers: cells at once, each in its own process on its share of the cores; None: as many as there
    are cores. scheduler: the address of a Dask scheduler (or a client) whose workers fit instead; they are
    sent the data and send back their numbers. folder: where finished cells are kept, if anywhere.
    data: the version of the data, by which kept cells of other data differ.
    """

    workers: int | None = 1
    scheduler: Any = None
    folder: Path | None = None
    data: str = ""

    def run(
        self,
        cells: Sequence[Cell],
        read: Callable[[], Any],
        progress: Progress = no_progress,
    ) -> list[pa.Table]:
        """What every cell measures. read: called once for the data, and only if a cell is missing.

        progress: called before the first cell, after each, and at the end. Raises NotPermitted,
        UnreadableFile and what a cell raises.
        """
        results: dict[int, pa.Table] = {}
        if self.folder is not None:
            _make(self.folder)
        missing = [place for place, cell in enumerate(cells) if not self._is_kept(cell)]
        done = len(cells) - len(missing)
        progress(done, len(cells), NO_LOSS)
        if missing:
            for at, result in self._measured([cells[place] for place in missing], read()):
                if self.folder is not None:
                    write_table(self.folder / cells[missing[at]].file_name, result)
                else:
                    results[missing[at]] = result
                done += 1
                progress(done, len(cells), NO_LOSS)
        progress(done, len(cells), NO_LOSS)
        return [
            results[place] if place in results else self._kept(cell)
            for place, cell in enumerate(cells)
        ]

    def _is_kept(self, cell: Cell) -> bool:
        return self.folder is not None and (self.folder / cell.file_name).is_file()

    def _kept(self, cell: Cell) -> pa.Table:
        assert self.folder is not None
        return read_table(self.folder / cell.file_name, fix="Remove it and run again.")

    def _measured(self, cells: list[Cell], data: Any) -> Iterator[tuple[int, pa.Table]]:
        """(place, result) of every cell as they are finished; the first error stops what has not begun."""
        workers = min(self.workers or core_count(), len(cells))
        if self.scheduler is not None:
            yield from _on_cluster(self.scheduler, cells, data)
        elif workers > 1:
            yield from _in_processes(workers, cells, data)
        else:
            yield from ((n, cell.measure(data)) for n, cell in enumerate(cells))


def file_name(words: str, determined_by: tuple[Any, ...]) -> str:
    """Of a cell: words for people, and a hash of the text of all that determines its numbers."""
    digest = hashlib.sha256(repr(determined_by).encode()).hexdigest()[:12]
    return f"{words}-{digest}.parquet"


def write_table(path: Path, table: pa.Table) -> None:
    """All of it or nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    _files.write_whole(path, sink.getvalue())


def read_table(path: Path, fix: str | None = None) -> pa.Table:
    """Raises UnreadableFile for a file that is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise UnreadableFile(f"not a readable result: {error}", where=str(path), fix=fix) from None


def core_count() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotPermitted(f"cannot make the folder: {error.strerror}", where=str(folder)) from None


def _on_cluster(scheduler: Any, cells: list[Cell], data: Any) -> Iterator[tuple[int, pa.Table]]:
    """On the workers of a Dask scheduler, which get the data once each."""
    from distributed import as_completed

    with connected(scheduler) as client:
        sent = client.scatter(data, broadcast=True, hash=False)
        futures = {
            client.submit(
                type(cell).measure, cell, sent, key=cell.file_name, retries=RETRIES, pure=False
            ): place
            for place, cell in enumerate(cells)
        }
        try:
            for future in as_completed(list(futures)):
                yield futures[future], future.result()
                future.release()
        except BaseException:
            client.cancel(list(futures))
            raise


def _in_processes(workers: int, cells: list[Cell], data: Any) -> Iterator[tuple[int, pa.Table]]:
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    context = get_context("spawn")  # a forked JAX deadlocks
    turn = context.Value("i", 0)
    with ProcessPoolExecutor(
        workers, context, initializer=start_worker, initargs=(data, turn, workers)
    ) as pool:
        futures = {pool.submit(_work, cell): n for n, cell in enumerate(cells)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_WORKER: dict[str, Any] = {}


def start_worker(data: Any, turn: Any, workers: int) -> None:
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
    _WORKER["data"] = data


def _work(cell: Cell) -> pa.Table:
    return cell.measure(_WORKER["data"])
