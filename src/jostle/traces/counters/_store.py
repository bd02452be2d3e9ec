"""Traces in a dataset folder, as immutable Parquet files beside its runs.

<folder>/traces/*.parquet          traces/v1
<folder>/traced_runs/*.parquet     traced_runs/v1
"""

from __future__ import annotations

import os
from pathlib import Path

from jostle._files import parquet_files
from jostle.errors import BadData, UnreadableFile
from jostle.traces._format import TablePair
from jostle.traces.counters._counters import SAMPLES, TRACED, Traces

_PAIR = TablePair(TRACED, "traced_runs", SAMPLES, "traces")


def write_traces(path: str | os.PathLike[str], traces: Traces) -> list[Path]:
    """Add the traces to the dataset in folder `path`; returns the files written.

    What the dataset already holds as a file is not written again. Raises BadData for a run_id that it
    holds already with other content, NotPermitted when the disk is full or the folder cannot be written.
    """
    folder = Path(path)

    def require_new() -> None:
        known = TRACED.run_ids(folder / "traced_runs")
        twice = [run_id for run_id in traces.run_ids if run_id in known]
        if twice:
            raise BadData(
                f"{len(twice)} traced runs are in the dataset already, the first is {twice[0]!r}",
                where=str(folder),
                fix="Write to another folder, or give new runs run_ids of their own.",
            )

    return _PAIR.write(folder, traces.traced, traces.samples, require_new)


def read_traces(path: str | os.PathLike[str]) -> Traces:
    """All traces of the dataset in folder `path`; of a run in two files, the earlier.

    Raises UnreadableFile naming a file that is missing, truncated or foreign, BadRows for bad rows.
    """
    folder = Path(path)
    traced, samples, notes = _PAIR.read(folder)
    if not traced.num_rows:
        raise UnreadableFile(
            "the folder holds no traces",
            where=str(folder),
            fix="A dataset has them in its folders traces and traced_runs; record some with jostle trace.",
        )
    return Traces(samples, traced, where=str(folder), notes=notes)


def has_traces(path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds files of traces; none is opened."""
    return bool(parquet_files(Path(path) / "traced_runs"))
