"""Traces in a dataset folder, as immutable Parquet files beside its runs.

<folder>/traces/*.parquet          traces/v1
<folder>/traced_runs/*.parquet     traced_runs/v1
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from jostle._files import distinct_files, parquet_files, read_parquet, staged
from jostle.errors import BadData, UnreadableFile
from jostle.traces.counters._counters import (
    SAMPLES,
    SAMPLES_VERSION,
    TRACED,
    TRACED_VERSION,
    Traces,
    conform,
    schema_of,
)

_FOLDERS = {"traces": SAMPLES_VERSION, "traced_runs": TRACED_VERSION}


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
            known = set(_read(folder, "traced_runs", ["run_id"]).column("run_id").to_pylist())
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
    traced = _read(folder, "traced_runs")
    if not traced.num_rows:
        raise UnreadableFile(
            "the folder holds no traces",
            where=str(folder),
            fix="A dataset has them in its folders traces and traced_runs; record some with jostle trace.",
        )
    samples = _read(folder, "traces")
    ids = traced.column("run_id").combine_chunks()
    listed = samples.filter(_is_in(samples.column("run_id"), ids))
    return Traces(listed, traced, where=str(folder))


def has_traces(path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds files of traces; none is opened."""
    return bool(parquet_files(Path(path) / "traced_runs"))


def _is_in(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    return pc.is_in(column, value_set=values)  # pyright: ignore[reportAttributeAccessIssue]


def _read(folder: Path, kind: str, columns: list[str] | None = None) -> pa.Table:
    version = _FOLDERS[kind]
    files = distinct_files(folder / kind)
    tables = [read_parquet(file, version, columns) for file in files]
    if columns is None:
        tables = [conform(t, version, str(file)) for t, file in zip(tables, files, strict=True)]
    if tables:
        return pa.concat_tables(tables)
    schema = schema_of(SAMPLES if kind == "traces" else TRACED, version)
    return (
        schema if columns is None else pa.schema([schema.field(c) for c in columns])
    ).empty_table()
