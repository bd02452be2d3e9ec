"""The published Pitot measurements (WebAssembly on small computers), 2024 and 2023, as runs.

Their files hold index arrays and times in microseconds (the 2024 notes say nanoseconds, but runs
were cut off at 30 s and no time exceeds 3e7). Every row is kept, in the published order, with the
file and row it stood in. A co-run was measured once for all its members and published as one row
for each: those rows get one window.
"""

from __future__ import annotations

import math
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from jostle._options import Positional
from jostle._untrusted import understands, understood
from jostle.errors import BadData, BadRows, UnreadableFile
from jostle.runs._runs import Runs, columns_table
from jostle.runs._solo import windows_of
from jostle.runs.importers._imported import Imported

_AGAIN = "Fetch the file again."
_MOST_BYTES = 1 << 32
_MOST_TIMES_LARGER = 1000  # by which arrays of measurements are packed at the very most


class Arrays(dict[str, np.ndarray]):
    """The arrays of an npz file; a missing one, or one of another kind, is an error that names the file."""

    def __init__(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(arrays)
        self.file = file

    def __missing__(self, key: str) -> np.ndarray:
        raise BadData(f"the file has no array {key!r}", where=str(self.file), fix=_AGAIN)

    def numbers(self, key: str, *shape: int | None) -> np.ndarray:
        """float64 of this shape, None for any length. Raises BadData."""
        return self._shaped(key, "iuf", "numbers", shape).astype(np.float64)

    def codes(self, key: str, *shape: int | None) -> np.ndarray:
        """int64, as many dimensions as `shape` has entries beyond the first. Raises BadData."""
        return self._shaped(key, "iu", "whole numbers", (None, *shape), exact=False).astype(
            np.int64
        )

    def texts(self, key: str) -> list[str]:
        """Names, which must be text and different. Raises BadData."""
        names = [
            str(value)
            for value in self._shaped(key, "U", "texts", (None,), exact=False).reshape(-1)
        ]
        if len(set(names)) < len(names):
            raise BadData(
                f"the array {key!r} names something twice", where=str(self.file), fix=_AGAIN
            )
        return names

    def _shaped(
        self, key: str, kinds: str, what: str, shape: tuple[int | None, ...], exact: bool = True
    ) -> np.ndarray:
        array = self[key]
        if array.dtype.kind not in kinds and array.size:
            raise BadData(
                f"the array {key!r} holds {array.dtype}, not {what}",
                where=str(self.file),
                fix=_AGAIN,
            )
        fits = 1 <= array.ndim <= len(shape) and (not exact or array.ndim == len(shape))
        sides = zip(array.shape, shape, strict=False)
        if not fits or any(expected is not None and side != expected for side, expected in sides):
            expected = ", ".join("any" if side is None else str(side) for side in shape)
            text = f"the array {key!r} has shape {array.shape}, not ({expected})"
            raise BadData(text, where=str(self.file), fix=_AGAIN)
        return array


def read_npz(file: Path) -> Arrays:
    """All arrays of a file. Raises UnreadableFile for one that is damaged, holds objects, or declares more
    than it has."""
    where = str(file)
    with understood(file, _AGAIN), zipfile.ZipFile(file) as opened:
        packed = sum(member.compress_size for member in opened.infolist())
        whole = sum(member.file_size for member in opened.infolist())
        if whole > _MOST_BYTES or whole > _MOST_TIMES_LARGER * packed + (1 << 20):
            text = f"unpacks to {whole} bytes from {packed}, which no measurements do"
            raise UnreadableFile(text, where=where, fix=_AGAIN)
        for member in opened.infolist():
            if not member.filename.endswith(".npy"):
                raise UnreadableFile(
                    f"{member.filename!r:.80} is no array", where=where, fix=_AGAIN
                )
            with opened.open(member) as stream:
                needed = _declared_bytes(stream)
            if needed is None or needed > member.file_size:
                text = f"the array {member.filename!r:.80} holds objects, or less than it declares"
                raise UnreadableFile(text, where=where, fix=_AGAIN)
        with np.load(file, allow_pickle=False) as arrays:
            return Arrays(file, {key: arrays[key] for key in arrays.files})


def _declared_bytes(stream: Any) -> int | None:
    """What the header of an array says that follows it; None for objects. Raises ValueError."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise ValueError(f"version {version} of npy")
    shape, _, kind = read[version](stream)
    if min(shape, default=0) < 0 or kind.hasobject:
        return None
    return math.prod(shape) * kind.itemsize


_SIZE = re.compile(r"_(?:l|m|s|sm)$")  # toast_sm is how the 2023 files spell toast_s
_SIZE_FOLDER = re.compile(r"/(?:mini|small|medium|large|extralarge)/")
_FILES_2024 = ("if2.npz", "if3.npz", "if4.npz")
_FILES_2023 = ("two_way.npz", "three_way.npz")
# The last columns of the 2023 platform table have no published names. The first follows the
# 2024 `cpufreq`, the rest are logarithms of cache sizes whose order nobody wrote down.
_CPUFREQ = "cpufreq"


@dataclass(frozen=True)
class PitotImport:
    """Import the published Pitot measurements: WebAssembly programs on small computers."""

    name: ClassVar[str] = "pitot"
    folder: Annotated[
        Path, "Where data.npz and if2.npz are, or the 2023 two_way.npz.", Positional()
    ]

    @understands("folder")
    def read(self) -> Imported:
        """The runs in a folder of published files: `data.npz`, `if2.npz` ... (2024, campaign
        `pitot-2024`) or `two_way.npz`, `three_way.npz` (2023, campaign `pitot-2023`).

        Free columns: `source_file` and `source_row` (row number within it). Workload features: raw
        opcode counts `opcode_x04` ..., and the texts `suite` and `program` (the name without its
        size). Platform features: the published columns, and the texts `device` and, in 2024, `runtime`.
        Raises UnreadableFile, BadData or BadRows naming the file.
        """
        path = Path(self.folder)
        if not path.is_dir():
            raise UnreadableFile("there is no such folder", where=str(path))
        is_2024 = (path / "data.npz").exists()
        files_2023 = [path / name for name in _FILES_2023 if (path / name).exists()]
        if is_2024 and files_2023:
            raise BadData(
                "the folder holds files of both the 2024 and the 2023 campaign",
                where=str(path),
                fix="They name workloads and platforms differently: import them from two folders.",
            )
        if not is_2024 and not files_2023:
            raise UnreadableFile(
                "the folder holds no Pitot measurements",
                where=str(path),
                fix="Expected data.npz (2024), or two_way.npz or three_way.npz (2023).",
            )
        runs = _read_2024(path) if is_2024 else _read_2023(files_2023)
        return Imported(runs, str(self.folder), apart="pitot-")


def _read_2024(path: Path) -> Runs:
    main = read_npz(path / "data.npz")
    names = main.texts("n_workload"), main.texts("n_platform")
    opcodes, titles = main.texts("f_workload"), main.texts("f_platform")
    # Published as log1p of counts in single precision, which is exact enough to round back.
    with np.errstate(over="ignore"):
        counts = np.rint(np.expm1(main.numbers("d_workload", len(names[0]), len(opcodes))))
    workload_features = _workload_table(names[0], opcodes, counts)
    values = main.numbers("d_platform", len(names[1]), len(titles))
    platform_features = _platform_table(names[1], titles, values)
    parts = []
    for file in [path / "data.npz", *(path / name for name in _FILES_2024)]:
        if not file.exists():
            continue
        arrays = main if file.name == "data.npz" else read_npz(file)
        beside = sorted(key for key in arrays if key.startswith("i_interference"))
        published = _Published(
            file,
            *names,
            arrays.codes("i_workload"),
            arrays.codes("i_platform"),
            arrays.numbers("t", None),
            _stacked([arrays.codes(key) for key in beside], str(file)),
        )
        table = published.table(file.name, "pitot-2024")
        parts.append(Runs(table, workload_features, platform_features, where=str(file)))
    return _joined(parts)


def _read_2023(files: list[Path]) -> Runs:
    parts: list[Runs] = []
    for file in files:
        arrays = read_npz(file)
        names = workloads, platforms = arrays.texts("module"), arrays.texts("platform")
        opcodes = [f"x{number:02X}" for number in arrays.codes("module_features", None).reshape(-1)]
        counts = arrays.numbers("module_data", len(workloads), len(opcodes))
        workload_features = _workload_table(workloads, opcodes, counts)
        named = [f"uarch={name}" for name in arrays.texts("platform_features")] + [_CPUFREQ]
        values = arrays.numbers("platform_data", len(platforms), None)
        width = values.shape[1]
        named += [f"unnamed_{column}" for column in range(len(named), width)]
        platform_features = _platform_table(platforms, named[:width], values)
        tables = []
        if not parts:  # both files repeat the same runs alone
            alone = arrays.numbers("data", len(platforms), len(workloads))
            row, column = np.nonzero(np.nan_to_num(alone) > 0)  # the others were not measured
            at = row * len(workloads) + column
            published = _Published(file, *names, column, row, alone[row, column], row_number=at)
            tables.append(published.table(f"{file.name}/data", "pitot-2023"))
        published = _Published(
            file,
            *names,
            arrays.codes("if_module"),
            arrays.codes("if_platform"),
            arrays.numbers("if_data", None),
            arrays.codes("if_interferer", None),
        )
        tables.append(published.table(file.name, "pitot-2023"))
        parts += [Runs(t, workload_features, platform_features, where=str(file)) for t in tables]
    return _joined(parts)


def _joined(parts: list[Runs]) -> Runs:
    """All parts; merging their equal feature tables would cost more than reading the files."""
    first = parts[0]
    for part in parts[1:]:
        for a, b in [
            (first.workload_features, part.workload_features),
            (first.platform_features, part.platform_features),
        ]:
            if a is None or b is None or not a.equals(b):
                return Runs.concatenate(parts)  # which names the difference
    table = pa.concat_tables([part.table for part in parts])
    return Runs(table, first.workload_features, first.platform_features)


def _stacked(columns: list[np.ndarray], where: str) -> np.ndarray | None:
    """(n, k) from k columns of n; None without any. Raises BadData for columns of different lengths."""
    if len({len(column) for column in columns}) > 1:
        raise BadData("the columns of co-runners have different lengths", where=where)
    return np.stack(columns, axis=1) if columns else None


@dataclass(frozen=True)
class _Published:
    """n rows as they were published. workload, platform, microseconds: (n,). beside: (n, k) indices, or None
    for runs alone. row_number: (n,) where they stood, None where in this order."""

    file: Path
    workload_names: list[str]
    platform_names: list[str]
    workload: np.ndarray
    platform: np.ndarray
    microseconds: np.ndarray
    beside: np.ndarray | None = None
    row_number: np.ndarray | None = None

    def table(self, source: str, campaign: str) -> pa.Table:
        """`runs/v1`. source: the file and the array in it, for run_ids. Raises BadData, BadRows."""
        n = len(self.microseconds)
        beside = np.zeros((n, 0), np.int64) if self.beside is None else self.beside
        self._check("workload", self.workload, len(self.workload_names))
        self._check("platform", self.platform, len(self.platform_names))
        self._check("co-runner", beside, len(self.workload_names))
        rows = np.arange(n) if self.row_number is None else self.row_number
        # Names in order, so that sorted codes are sorted names.
        order = np.argsort(np.array(self.workload_names, object), kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        members = np.sort(rank[beside], axis=1)
        seconds = np.asarray(self.microseconds, np.float64) / 1e6
        place = np.asarray(self.platform, np.int64)
        window = windows_of(place, rank[self.workload], members, seconds)
        run_id = pa.array([f"{source}:{row}" for row in rows.tolist()], pa.string())
        workloads = pa.array(self.workload_names, pa.string())
        platforms = pa.array(self.platform_names, pa.string())
        offsets = pa.array(np.arange(n + 1) * members.shape[1], pa.int32())
        return columns_table(
            workload=workloads.take(pa.array(self.workload)),
            platform=platforms.take(pa.array(self.platform)),
            corunners=pa.ListArray.from_arrays(
                offsets, workloads.take(pa.array(order[members].reshape(-1)))
            ),
            runtime_seconds=seconds,
            campaign=campaign,
            window_id=run_id.take(pa.array(window)),
            run_id=run_id,
            source_file=pa.repeat(source, n),
            source_row=pa.array(rows, pa.int64()),
        )

    def _check(self, title: str, codes: np.ndarray, limit: int) -> None:
        n, where = len(self.microseconds), str(self.file)
        if len(codes) != n:
            raise BadData(f"{n} times but {len(codes)} {title} indices", where=where)
        wrong = (codes < 0) | (codes >= limit)
        at = np.flatnonzero(wrong.any(axis=1) if wrong.ndim > 1 else wrong)
        if len(at):
            bad = [(int(row), f"the {title} index is outside 0..{limit - 1}") for row in at[:20]]
            raise BadRows(f"{len(at)} bad rows, first row {at[0]}", rows=bad, where=where)


def _workload_table(names: list[str], opcodes: list[str], counts: Any) -> pa.Table:
    columns: dict[str, Any] = {
        "workload": names,
        "suite": [re.split(r"[/:]", name, maxsplit=1)[0] for name in names],
        "program": [_SIZE.sub("", _SIZE_FOLDER.sub("/", name, count=1)) for name in names],
    }
    # What no count can be is none: the largest that fits says so as well as any.
    whole = np.clip(np.nan_to_num(np.asarray(counts, np.float64)), -(2.0**62), 2.0**62).astype(
        np.int64
    )
    columns |= {f"opcode_{code}": whole[:, column] for column, code in enumerate(opcodes)}
    return pa.table(columns)


def _platform_table(names: list[str], titles: list[str], values: np.ndarray) -> pa.Table:
    columns: dict[str, Any] = {"platform": names}
    if all(":" in name for name in names):
        columns["runtime"] = [name.split(":", 1)[0] for name in names]
    columns["device"] = [name.rsplit(":", 1)[-1] for name in names]
    values = np.asarray(values, np.float64)
    columns |= {title: values[:, column] for column, title in enumerate(titles)}
    return pa.table(columns)
