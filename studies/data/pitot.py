"""The published Pitot measurements (WebAssembly on small computers), 2024 and 2023, as runs.

Their files hold index arrays and times in microseconds (the 2024 notes say nanoseconds, but runs
were cut off at 30 s and no time exceeds 3e7). Every row is kept, in the published order, with the
file and row it stood in. A co-run was measured once for all its members and published as one row
for each: those rows get one window.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data import Runs, windows_of
from jostle.errors import BadData, UnreadableFile

_SIZE = re.compile(r"_(?:l|m|s|sm)$")  # toast_sm is how the 2023 files spell toast_s
_SIZE_FOLDER = re.compile(r"/(?:mini|small|medium|large|extralarge)/")
_FILES_2024 = ("data.npz", "if2.npz", "if3.npz", "if4.npz")
_FILES_2023 = ("two_way.npz", "three_way.npz")
# The last columns of the 2023 platform table have no published names. The first follows the
# 2024 `cpufreq`, the rest are logarithms of cache sizes whose order nobody wrote down.
_CPUFREQ = "cpufreq"


def read_pitot(folder: Path) -> Runs:
    """Read a folder of published files: `data.npz`, `if2.npz` ... (2024, campaign `pitot-2024`), or
    `two_way.npz`, `three_way.npz` (2023, campaign `pitot-2023`).

    Free columns: `source_file` and `source_row` (row number within it). Workload features: raw
    opcode counts `opcode_x04` ..., and the texts `suite` and `program` (the name without its
    size). Platform features: the published columns, and the texts `device` and, in 2024, `runtime`.
    Raises UnreadableFile, BadData or BadRows naming the file.
    """
    is_2024 = (folder / "data.npz").exists()
    files_2023 = [folder / name for name in _FILES_2023 if (folder / name).exists()]
    if is_2024 and files_2023:
        text = "the folder holds files of both the 2024 and the 2023 campaign"
        raise BadData(text, where=str(folder), fix="They name things differently: part them.")
    if not is_2024 and not files_2023:
        fix = "Expected data.npz (2024), or two_way.npz or three_way.npz (2023)."
        raise UnreadableFile("the folder holds no Pitot measurements", where=str(folder), fix=fix)
    return _read_2024(folder) if is_2024 else _read_2023(files_2023)


def _read_2024(folder: Path) -> Runs:
    main = np.load(folder / "data.npz")
    workloads, platforms = main["n_workload"].tolist(), main["n_platform"].tolist()
    # Published as log1p of counts in single precision, which is exact enough to round back.
    counts = np.rint(np.expm1(main["d_workload"].astype(np.float64)))
    features = (
        _workload_table(workloads, main["f_workload"].tolist(), counts),
        _platform_table(platforms, main["f_platform"].tolist(), main["d_platform"]),
    )
    tables = []
    for file in (folder / name for name in _FILES_2024 if (folder / name).exists()):
        arrays = np.load(file)
        beside = [arrays[key] for key in sorted(arrays) if key.startswith("i_interference")]
        rows = _row_table(
            (workloads, platforms),
            arrays["i_workload"],
            arrays["i_platform"],
            arrays["t"],
            np.stack(beside, axis=1) if beside else None,
            source=file.name,
            campaign="pitot-2024",
        )
        tables.append(Runs(rows, *features, where=str(file)).table)
    return Runs(pa.concat_tables(tables), *features)


def _read_2023(files: list[Path]) -> Runs:
    tables, features = [], (None, None)
    for file in files:
        arrays = np.load(file)
        names = workloads, platforms = arrays["module"].tolist(), arrays["platform"].tolist()
        opcodes = [f"x{number:02X}" for number in arrays["module_features"].reshape(-1)]
        titles = [f"uarch={name}" for name in arrays["platform_features"]] + [_CPUFREQ]
        width = arrays["platform_data"].shape[1]
        titles += [f"unnamed_{column}" for column in range(len(titles), width)]
        features = (
            _workload_table(workloads, opcodes, arrays["module_data"]),
            _platform_table(platforms, titles[:width], arrays["platform_data"]),
        )
        parts = []
        if not tables:  # both files repeat the same runs alone
            alone = arrays["data"]
            row, column = np.nonzero(np.nan_to_num(alone) > 0)  # the others were not measured
            at = row * len(workloads) + column
            parts.append((column, row, alone[row, column], None, f"{file.name}/data", at))
        told = (arrays[f"if_{key}"] for key in ("module", "platform", "data", "interferer"))
        parts.append((*told, file.name, None))
        for *columns, source, at in parts:
            rows = _row_table(names, *columns, source=source, campaign="pitot-2023", row_number=at)
            tables.append(Runs(rows, *features, where=str(file)).table)
    return Runs(pa.concat_tables(tables), *features)


def _row_table(
    names: tuple[list[str], list[str]],
    workload: np.ndarray,
    platform: np.ndarray,
    microseconds: np.ndarray,
    beside: np.ndarray | None,
    *,
    source: str,
    campaign: str,
    row_number: np.ndarray | None = None,
) -> pa.Table:
    """Make n rows of runs from indices as published. beside: (n, k), or None for runs alone. source: the file
    and the array in it, for run_ids. row_number: (n,) where they stood, None where in this order."""
    n = len(microseconds)
    beside = np.zeros((n, 0), np.int64) if beside is None else beside
    for title, codes, known in [
        ("workload", workload, names[0]),
        ("platform", platform, names[1]),
        ("co-runner", beside, names[0]),
    ]:
        if len(codes) != n or ((codes < 0) | (codes >= len(known))).any():
            text = f"the {title} indices are not {n} of 0..{len(known) - 1}"
            raise BadData(text, where=source, fix="Fetch the file again.")
    rows = np.arange(n) if row_number is None else row_number
    # Names in order, so that sorted codes are sorted names.
    order = np.argsort(np.array(names[0], object), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    members = np.sort(rank[beside], axis=1)
    seconds = np.asarray(microseconds, np.float64) / 1e6
    window = windows_of(platform.astype(np.int64), rank[workload], members, seconds)
    run_id = pa.array([f"{source}:{row}" for row in rows.tolist()], pa.string())
    workloads, platforms = (pa.array(known, pa.string()) for known in names)
    offsets = pa.array(np.arange(n + 1) * members.shape[1], pa.int32())
    return Runs.from_columns(
        workload=workloads.take(pa.array(workload)),
        platform=platforms.take(pa.array(platform)),
        corunners=pa.ListArray.from_arrays(
            offsets, workloads.take(pa.array(order[members].reshape(-1)))
        ),
        runtime_seconds=seconds,
        campaign=campaign,
        window_id=run_id.take(pa.array(window)),
        run_id=run_id,
        source_file=pa.repeat(source, n),
        source_row=pa.array(rows, pa.int64()),
    ).table


def _workload_table(names: list[str], opcodes: list[str], counts: np.ndarray) -> pa.Table:
    columns: dict[str, Any] = {
        "workload": names,
        "suite": [re.split(r"[/:]", name, maxsplit=1)[0] for name in names],
        "program": [_SIZE.sub("", _SIZE_FOLDER.sub("/", name, count=1)) for name in names],
    }
    whole = counts.astype(np.int64)
    return pa.table(
        columns | {f"opcode_{code}": whole[:, column] for column, code in enumerate(opcodes)}
    )


def _platform_table(names: list[str], titles: list[str], values: np.ndarray) -> pa.Table:
    columns: dict[str, Any] = {"platform": names}
    if all(":" in name for name in names):
        columns["runtime"] = [name.split(":", 1)[0] for name in names]
    columns["device"] = [name.rsplit(":", 1)[-1] for name in names]
    values = values.astype(np.float64)
    return pa.table(columns | {title: values[:, column] for column, title in enumerate(titles)})
