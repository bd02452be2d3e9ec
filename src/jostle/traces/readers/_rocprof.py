"""rocprof CSV files: a plain table, one task per row.

Its Grid_Size counts work-items, not blocks, and its hardware stands in a sysinfo.csv beside it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import BadData, UnreadableFile
from jostle.traces.profiles._gpus import Gpu, amd_gpu, known_gpu
from jostle.traces.profiles._tasks import Profile, TaskBuilder, volume
from jostle.traces.readers._lines import bad_line, csv_lines, require_width
from jostle.traces.readers._recorded import RecordedRun, text_of

name = "rocprof"
_COPIES = {"hosttodevice": "htod", "devicetohost": "dtoh", "devicetodevice": "dtod"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first line has a column that only rocprof writes."""
    first = text_of(head).split("\n", 1)[0].lower().replace("-", "_")
    return any(column in first for column in ("kernel_name", "kernelname", "start_timestamp"))


def read(path: Path, recording: RecordedRun) -> Profile:
    """The device of all rows is by default what sysinfo.csv in the same folder says.

    Raises UnreadableFile for a file without times, BadRows for a row that cannot be read.
    """
    where = str(path)
    lines = csv_lines(path)
    _, columns = next(lines, (0, []))
    at = {_plain(column): place for place, column in enumerate(columns)}
    if not at.keys() & _STARTS or not at.keys() & _ENDS:
        raise UnreadableFile(
            "no start and end times in this table",
            where=where,
            fix="Counter files have none: give the timestamps.csv or kernel trace of the same run.",
        )
    builder = TaskBuilder(recording.run_id, where)
    for number, cells in lines:
        require_width(cells, columns, number, where)
        _add(builder, _RocprofRow(cells, at, number, where))
    hardware = {0: recording.gpu or _sysinfo(path.with_name("sysinfo.csv"))}
    return builder.profile(recording.workload, hardware, (), name)


_LATEST_NANOSECONDS = 10**20
_STARTS = {"starttimestamp", "beginns"}
_ENDS = {"endtimestamp", "endns"}


@dataclass(frozen=True)
class _RocprofRow:
    """The cells of a line by the plain names of their columns, of which there are several spellings."""

    cells: list[str]
    at: dict[str, int]
    number: int
    where: str

    def text(self, *columns: str) -> str | None:
        place = next((self.at[column] for column in columns if column in self.at), None)
        return None if place is None else self.cells[place]

    def whole(self, *columns: str) -> int | None:
        """A number; None where there is no such column, or nothing in it. Raises BadRows."""
        cell = self.text(*columns)
        if cell is None or not cell.strip():
            return None
        try:
            return int(float(cell)) if "." in cell else int(cell)
        except (ValueError, OverflowError):
            raise bad_line(self.number, f": {cell!r} is not a number", self.where) from None


def _add(builder: TaskBuilder, row: _RocprofRow) -> None:
    """Adds the task, unless it is a copy that does not touch the device's link or memory."""
    start, end = row.whole("starttimestamp", "beginns"), row.whole("endtimestamp", "endns")
    if start is None or end is None:
        raise bad_line(row.number, " has no times", row.where)
    if max(abs(start), abs(end)) > _LATEST_NANOSECONDS:
        raise bad_line(row.number, " has an impossible time", row.where)
    blocks, threads = _shape(row)
    vector = [row.whole(column) for column in ("archvgpr", "accumvgpr")]
    direction = row.text("direction")
    kind = "kernel"
    if direction is not None:
        kind = _COPIES.get(_plain(direction).removeprefix("memorycopy"))
        if kind is None:
            return
    builder.add(
        kind,
        start * 1e-9,
        (end - start) * 1e-9,
        name=row.text("kernelname", "name"),
        device=0,
        stream=row.whole("queueid"),
        blocks=blocks,
        threads_per_block=threads,
        registers_per_thread=None if vector == [None, None] else sum(v or 0 for v in vector),
        shared_bytes=row.whole("ldsperworkgroup", "lds", "groupsegmentsize"),
    )


def _shape(row: _RocprofRow) -> tuple[int | None, int | None]:
    """(blocks, threads per block)"""
    items, threads = row.whole("gridsize", "grd"), row.whole("workgroupsize", "wgr")
    if items and threads:
        return -(-items // threads), threads
    sides = [f"{what}size{axis}" for what in ("grid", "workgroup") for axis in "xyz"]
    if not row.at.keys() >= set(sides):
        return None, threads
    sizes = [row.whole(side) or 1 for side in sides]
    blocks = [-(-grid // group) for grid, group in zip(sizes[:3], sizes[3:], strict=True)]
    return volume(blocks), volume(sizes[3:])


def _sysinfo(path: Path) -> Gpu | None:
    """The hardware row of a rocprof folder; what it lacks comes from the table of devices.

    Raises BadData for a device that cannot be.
    """
    if not path.is_file():
        return None
    try:
        with path.open(newline="", encoding="utf-8", errors="replace") as file:
            row = next(csv.DictReader(file), None) or {}
    except (OSError, csv.Error) as error:
        text = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise UnreadableFile(text, where=str(path), fix="Remove it, or name the GPU.") from None
    named = known_gpu(row.get("gpu_model") or "") or known_gpu(row.get("gpu_arch") or "")
    try:
        units, bandwidth = int(row.get("cu_per_gpu") or 0), float(row.get("hbm_bw") or 0)
    except (ValueError, OverflowError):
        return named
    if not units:
        return named
    rest = named.l2_bytes if named else None
    try:
        return amd_gpu(row.get("gpu_model") or "AMD", units, bandwidth or 1.0, (rest or 0) / 2**20)
    except BadData as error:
        raise BadData(error.what, where=str(path), fix="Remove it, or name the GPU.") from None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
