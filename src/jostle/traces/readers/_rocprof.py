"""rocprof CSV files, of its versions 1 to 3: a plain table, one task per row.

Its Grid_Size counts work-items, not blocks. Hardware stands in a sysinfo.csv beside it, or with rocprofv3 in
NAME_agent_info.csv, where each agent (device) has a row; copies then are in NAME_memory_copy_trace.csv, which
is read with NAME_kernel_trace.csv.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from jostle.errors import BadData, UnreadableFile
from jostle.traces.profiles._gpus import Gpu, amd_gpu, known_gpu
from jostle.traces.profiles._tasks import Profile, TaskBuilder, volume
from jostle.traces.readers._lines import bad_line, csv_lines, require_width
from jostle.traces.readers._recorded import RecordedRun, text_of

name = "rocprof"
MOST_DIGITS = 18  # of a number: no stream, queue or count has more, and Python refuses thousands
_COPIES = {"hosttodevice": "htod", "devicetohost": "dtoh", "devicetodevice": "dtod"}


def sniff(head: bytes, path: Path) -> bool:
    """Whether the first line has a column that only rocprof writes."""
    first = text_of(head).split("\n", 1)[0].lower().replace("-", "_")
    return any(column in first for column in ("kernel_name", "kernelname", "start_timestamp"))


def read(path: Path, recording: RecordedRun) -> Profile:
    """The device of all rows is by default what sysinfo.csv in the same folder says.

    Raises UnreadableFile for a file without times, BadRows for a row that cannot be read.
    """
    builder = TaskBuilder(recording.run_id, str(path))
    agents = RocmAgents.beside(path)
    left_out = _read_into(builder, path, agents)
    notes = []
    if path.name.endswith(_KERNELS):
        copies = path.with_name(path.name.removesuffix(_KERNELS) + _COPY_FILE)
        if copies.is_file():
            left_out += _read_into(builder, copies, agents)
            notes.append(f"copies are from {copies.name}")
        else:
            notes.append(f"no {copies.name} beside it: copies are not known (--memory-copy-trace)")
    if left_out:
        notes.append(f"{left_out} copies between hosts, or of no known direction, were left out")
    if unknown := sorted(set(agents.numbers) - set(agents.known)) if agents.known else []:
        notes.append(f"agents that the agents' file does not have: {', '.join(unknown)}")
    usual = recording.gpu or _sysinfo(path.with_name("sysinfo.csv"))
    hardware = {
        number: recording.gpu or agents.known.get(agent) or usual
        for agent, number in agents.numbers.items()
    }
    return builder.profile(recording.workload, hardware, notes, name)


_KERNELS, _COPY_FILE, _AGENTS = "kernel_trace.csv", "memory_copy_trace.csv", "agent_info.csv"


@dataclass(frozen=True)
class RocmAgents:
    """known: the hardware of each agent, where there is a file. numbers: of the agents met, from 0 on."""

    known: dict[str, Gpu | None]
    numbers: dict[str, int]

    @classmethod
    def beside(cls, path: Path) -> RocmAgents:
        """Those of NAME_agent_info.csv. Raises UnreadableFile for one that cannot be read."""
        known: dict[str, Gpu | None] = {}
        for ending in (_KERNELS, _COPY_FILE):
            if path.name.endswith(ending):
                there = path.with_name(path.name.removesuffix(ending) + _AGENTS)
                known = _agents(there) if there.is_file() else {}
        return cls(known, {})

    def number(self, *agents: str | None) -> int:
        """Of the device of a task: of these agents that of the first which is a GPU."""
        named = [_agent(agent) for agent in agents if agent]
        gpus = [agent for agent in named if agent in self.known] or named or [""]
        return self.numbers.setdefault(gpus[0], len(self.numbers))


def _agent(text: str) -> str:
    """`Agent 4`, `4` and `ROCM_AGENT_4` are the same."""
    return text.split()[-1].rpartition("_")[2] if text.split() else ""


def _agents(path: Path) -> dict[str, Gpu | None]:
    lines = csv_lines(path)
    _, columns = next(lines, (0, []))
    found: dict[str, Gpu | None] = {}
    for number, cells in lines:
        require_width(cells, columns, number, str(path))
        row = dict(zip(map(_plain, columns), cells, strict=True))
        if row.get("agenttype", "GPU").strip().upper() != "GPU":
            continue
        label = row.get("productname") or row.get("modelname") or row.get("name") or "AMD"
        gpu = known_gpu(label) or known_gpu(row.get("name", ""))
        units = row.get("cucount", "")
        if (
            units.isdecimal()
            and len(units) <= MOST_DIGITS
            and 0 < int(units) < 100_000
            and (gpu is None or gpu.pes != int(units))
        ):
            gpu = (
                amd_gpu(label, int(units), 1.0, 0.0)
                if gpu is None
                else replace(gpu, pes=int(units))
            )
        found[_agent(row.get("nodeid", row.get("agentid", "")))] = gpu
    return found


def _read_into(builder: TaskBuilder, path: Path, agents: RocmAgents) -> int:
    """Adds the rows of one file; returns how many copies were left out."""
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
    left_out = 0
    for number, cells in lines:
        require_width(cells, columns, number, where)
        left_out += not _add(builder, _RocprofRow(cells, at, number, where), agents)
    return left_out


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


def _add(builder: TaskBuilder, row: _RocprofRow, agents: RocmAgents) -> bool:
    """Adds the task, unless it is a copy that does not touch the device's link or memory; whether it did."""
    start, end = row.whole("starttimestamp", "beginns"), row.whole("endtimestamp", "endns")
    if start is None or end is None:
        raise bad_line(row.number, " has no times", row.where)
    if max(abs(start), abs(end)) > _LATEST_NANOSECONDS:
        raise bad_line(row.number, " has an impossible time", row.where)
    blocks, threads = _shape(row)
    vector = [row.whole(*columns) for columns in _VECTOR_REGISTERS]
    direction = row.text("direction")
    kind = "kernel"
    if direction is not None:
        kind = _COPIES.get(_plain(direction).removeprefix("memorycopy"))
        if kind is None:
            return False
    source, target = row.text("sourceagentid"), row.text("destinationagentid")
    if direction is not None:
        device = agents.number(*((target, source) if kind == "htod" else (source, target)))
    else:
        device = agents.number(row.text("agentid", "gpuid"))
    builder.add(
        kind,
        start * 1e-9,
        (end - start) * 1e-9,
        name=row.text("kernelname", "name"),
        device=device,
        stream=_stream(row),
        blocks=blocks,
        threads_per_block=threads,
        registers_per_thread=None if vector == [None, None] else sum(v or 0 for v in vector),
        shared_bytes=row.whole("ldsperworkgroup", "lds", "groupsegmentsize", "ldsblocksize"),
        bytes=row.whole("size", "bytes") if direction is not None else None,
    )
    return True


_VECTOR_REGISTERS = (("archvgpr", "vgprcount"), ("accumvgpr", "accumvgprcount"))


def _stream(row: _RocprofRow) -> int | None:
    """HIP's stream where it is given, else the queue: streams share queues."""
    cell = row.text("streamid", "queueid")
    if cell is None or not cell.strip():
        return None
    digits = cell.split()[-1]
    if not digits.removeprefix("-").isdecimal() or len(digits) > MOST_DIGITS:
        told = digits if len(digits) <= MOST_DIGITS else f"{digits[:MOST_DIGITS]}…"
        raise bad_line(row.number, f": {told!r} is not a stream or queue", row.where)
    return int(digits)


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
