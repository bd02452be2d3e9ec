"""Traces in a dataset folder, as immutable Parquet files beside its runs.

<folder>/traces/*.parquet          traces/v1
<folder>/traced_runs/*.parquet     traced_runs/v1
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.compute

from jostle._files import parquet_files, staged
from jostle.errors import BadData, UnreadableFile
from jostle.traces.counters._counters import SAMPLES, TRACED, Traces

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute


def write_traces(path: str | os.PathLike[str], traces: Traces) -> list[Path]:
    """Add the traces to the dataset in folder `path`; returns the files written.

    What the dataset already holds as a file is not written again. Raises BadData for a run_id that it
    holds already with other content, NotPermitted when the disk is full or the folder cannot be written.
    """
    folder = Path(path)
    with ExitStack() as stack:
        samples = stack.enter_context(staged(traces.samples, folder / "traces"))
        traced = stack.enter_context(staged(traces.traced, folder / "traced_runs"))
        if not traced.is_there():
            known = TRACED.run_ids(folder / "traced_runs")
            twice = [run_id for run_id in traces.run_ids if run_id in known]
            if twice:
                raise BadData(
                    f"{len(twice)} traced runs are in the dataset already, the first is {twice[0]!r}",
                    where=str(folder),
                    fix="Write to another folder, or give new runs run_ids of their own.",
                )
        # Samples first: a reader passes over samples whose run is not listed yet.
        written = [samples.publish(), traced.publish()]
    return [file for file in written if file is not None]


def read_traces(path: str | os.PathLike[str]) -> Traces:
    """All traces of the dataset in folder `path`.

    Raises UnreadableFile naming a file that is missing, truncated or foreign, BadRows for bad rows.
    """
    folder = Path(path)
    traced = TRACED.read(folder / "traced_runs")
    if not traced.num_rows:
        raise UnreadableFile(
            "the folder holds no traces",
            where=str(folder),
            fix="A dataset has them in its folders traces and traced_runs; record some with jostle trace.",
        )
    samples = SAMPLES.read(folder / "traces")
    ids = traced.column("run_id").combine_chunks()
    listed = samples.filter(pc.is_in(samples.column("run_id"), value_set=ids))
    return Traces(listed, traced, where=str(folder))


def has_traces(path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds files of traces; none is opened."""
    return bool(parquet_files(Path(path) / "traced_runs"))
