"""Profiles in a dataset folder, as immutable Parquet files beside its runs.

<folder>/tasks/*.parquet       tasks/v1
<folder>/profiles/*.parquet    profiles/v1: one row per run and device, with its hardware
"""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.files import parquet_files
from jostle.data.traces._gpus import Gpu
from jostle.data.traces._profile_tasks import TASKS, Profile
from jostle.data.traces._table_format import TableFormat, TablePair
from jostle.errors import BadData, UnreadableFile

_WHOLE = {"int": pa.int64(), "str": pa.string(), "int | None": pa.int64()}
PROFILES = TableFormat(
    "profiles/v1",
    {
        "run_id": (pa.string(), "name", "the run that was profiled"),
        "workload": (pa.string(), "name", "the program with its input"),
        "format": (pa.string(), "name", "what recorded it"),
        "note": (pa.string(), "text", "what the reader left out or could not know"),
        "device": (pa.int32(), "number", "of the accelerator within the run"),
        "memory_bytes": (
            pa.float64(),
            "B",
            "of the device, that the run takes, null where unknown",
        ),
    }
    | {
        f"gpu_{f.name}": (_WHOLE.get(str(f.type), pa.float64()), "", "hardware, null where unknown")
        for f in fields(Gpu)
    },
    optional=("memory_bytes",),
)
_PAIR = TablePair(PROFILES, "profiles", TASKS, "tasks")


def write_profiles(path: str | os.PathLike[str], profiles: list[Profile]) -> list[Path]:
    """Add profiles to the dataset in folder `path`; returns the files written.

    Raises BadData for a run_id that the dataset holds already, NotPermitted when the disk is full.
    """
    folder = Path(path)
    ids = [profile.run_id for profile in profiles]
    known = PROFILES.run_ids(folder / "profiles")
    twice = [run_id for run_id in ids if run_id in known or ids.count(run_id) > 1]
    if twice:
        raise BadData(
            f"the profile {twice[0]!r} is there already",
            where=str(folder),
            fix="Give it another `run_id`, or write to another folder.",
        )
    rows = [
        {
            "run_id": profile.run_id,
            "workload": profile.workload,
            "format": profile.format,
            "note": "; ".join(profile.notes) or None,
            "device": device,
            "memory_bytes": profile.memory_bytes,
            **{f"gpu_{k}": v for k, v in (asdict(gpu) if gpu else {}).items()},
        }
        for profile in profiles
        for device, gpu in sorted(profile.gpus.items())
    ]
    heads = pa.Table.from_pylist(rows, schema=PROFILES.schema)
    tasks = pa.concat_tables([profile.tasks for profile in profiles])
    return _PAIR.write(folder, heads, tasks)


def read_profiles(path: str | os.PathLike[str]) -> dict[str, Profile]:
    """Return {run_id: profile} of the dataset in folder `path`, in the order of run_id. A run in two files is
    read from the earlier one, and its notes say so.

    Raises UnreadableFile naming a file that is missing, truncated or foreign, or a folder without any.
    """
    folder = Path(path)
    table, tasks, settled = _PAIR.read(folder)
    heads = table.to_pylist()
    if not heads:
        raise UnreadableFile(
            "the folder holds no profiles of accelerators",
            where=str(folder),
            fix="Bring some in with jostle import FILE -o FOLDER. What ran side by side is "
            "answered without them: jostle fit FOLDER -o MODEL, then jostle place safe MODEL.",
        )
    names = tasks.column("run_id").to_numpy()
    profiles = {}
    for run_id in sorted({head["run_id"] for head in heads}):
        mine = [head for head in heads if head["run_id"] == run_id]
        part = tasks.filter(pa.array(names == run_id))
        order = np.argsort(part.column("sequence").to_numpy(), kind="stable")
        gpus = {head["device"]: _gpu(head) for head in mine}
        notes = tuple(mine[0]["note"].split("; ")) if mine[0]["note"] else ()
        notes += tuple(text for text in settled if text.startswith(f"the run {run_id!r} "))
        about = notes, mine[0]["format"], (), mine[0]["memory_bytes"]
        profiles[run_id] = Profile(
            run_id, mine[0]["workload"], part.take(pa.array(order)), gpus, *about
        )
    return profiles


def has_profiles(path: str | os.PathLike[str]) -> bool:
    """Return whether the folder holds files of profiles; none is opened."""
    return bool(parquet_files(Path(path) / "profiles"))


def _gpu(head: dict[str, Any]) -> Gpu | None:
    if head["gpu_name"] is None:
        return None
    return Gpu(**{f.name: head[f"gpu_{f.name}"] for f in fields(Gpu)})
