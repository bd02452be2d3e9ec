"""Which runs of a dataset are set aside: files that say so, each later one over the earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa

from jostle._base.files import parquet_files, read_parquet

SET_ASIDE = "set_aside"
ASIDE_VERSION = "set_aside/v1"


def aside_table(run_ids: Sequence[str], reason: str, at: datetime, back: bool) -> pa.Table:
    """Make the table of the rows set aside. back: they are to be read again. at: with a time zone."""
    columns = {
        "run_id": pa.array(run_ids, pa.string()),
        "is_aside": pa.array([not back] * len(run_ids), pa.bool_()),
        "reason": pa.array([reason] * len(run_ids), pa.string()),
        "recorded_at": pa.array([at] * len(run_ids), pa.timestamp("us", tz="UTC")),
    }
    return pa.table(columns).replace_schema_metadata({"schema": ASIDE_VERSION})


def rows_aside(path: Path) -> dict[str, str]:
    """Return {run_id: reason} of those set aside in the dataset of this folder. Raises UnreadableFile."""
    aside: dict[str, str] = {}
    for file in parquet_files(path / SET_ASIDE):
        for row in read_parquet(file, ASIDE_VERSION).to_pylist():
            aside.pop(row["run_id"], None)
            if row["is_aside"]:
                aside[row["run_id"]] = row["reason"]
    return aside
