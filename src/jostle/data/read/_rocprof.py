"""rocprof CSV files, of its versions 1 to 3: a plain table, one task per row.

Its Grid_Size counts work-items, not blocks. Hardware stands in a sysinfo.csv beside it, or with rocprofv3 in
NAME_agent_info.csv, where each agent (device) has a row; copies then are in NAME_memory_copy_trace.csv, which
is read with NAME_kernel_trace.csv.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from jostle.data.read._trace_readers import RecordedRun
from jostle.data.tables.lines import MOST_DIGITS, Line, csv_table, plain
from jostle.data.traces._gpus import Gpu, amd_gpu, known_gpu
from jostle.data.traces._profile_tasks import COPIES, Profile, TaskBuilder, volume
from jostle.errors import BadData, UnreadableFile

name = "rocprof"
_LATEST_NANOSECONDS = 10**20
_START, _END = ("starttimestamp", "beginns"), ("endtimestamp", "endns")
_VECTOR_REGISTERS = (("archvgpr", "vgprcount"), ("accumvgpr", "accumvgprcount"))


def read(path: Path, recording: RecordedRun) -> Profile:
    """Return the device of all rows is by default what sysinfo.csv in the same folder says.

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
    """Hardware and numbers of the agents of a ROCm recording. known: the hardware of each agent, where there
    is a file. numbers: of the agents met, from 0 on."""

    known: dict[str, Gpu | None]
    numbers: dict[str, int]

    @classmethod
    def beside(cls, path: Path) -> RocmAgents:
        """Return those of NAME_agent_info.csv. Raises UnreadableFile for one that cannot be read."""
        ending = next((one for one in (_KERNELS, _COPY_FILE) if path.name.endswith(one)), None)
        there = path.with_name(path.name.removesuffix(ending or "") + _AGENTS)
        return cls(_agents(there) if ending and there.is_file() else {}, {})

    def number(self, *agents: str | None) -> int:
        """Number the device of a task: the first of these agents that is a GPU."""
        named = [_agent(agent) for agent in agents if agent]
        gpus = [agent for agent in named if agent in self.known] or named or [""]
        return self.numbers.setdefault(gpus[0], len(self.numbers))


def _agent(text: str) -> str:
    """`Agent 4`, `4` and `ROCM_AGENT_4` are the same."""
    return text.split()[-1].rpartition("_")[2] if text.split() else ""


def _agents(path: Path) -> dict[str, Gpu | None]:
    agents: dict[str, Gpu | None] = {}
    for line in csv_table(path)[1]:
        if (line.text("agenttype") or "GPU").strip().upper() != "GPU":
            continue
        label = line.text("productname", "modelname", "name") or "AMD"
        gpu = known_gpu(label) or known_gpu(line.text("name") or "")
        units = line.text("cucount") or ""
        if units.isdecimal() and len(units) <= MOST_DIGITS and 0 < int(units) < 100_000:
            pes = int(units)
            gpu = replace(gpu, pes=pes) if gpu else amd_gpu(label, pes, 1.0)
        agents[_agent(line.text("nodeid", "agentid") or "")] = gpu
    return agents


def _read_into(builder: TaskBuilder, path: Path, agents: RocmAgents) -> int:
    """Add the rows of one file; returns how many copies were left out."""
    columns, lines = csv_table(path)
    if not {*_START} & {*columns} or not {*_END} & {*columns}:
        raise UnreadableFile(
            "no start and end times in this table",
            where=str(path),
            fix="Counter files have none: give the timestamps.csv or kernel trace of the same run.",
        )
    return sum(not _add(builder, line, agents) for line in lines)


def _add(builder: TaskBuilder, line: Line, agents: RocmAgents) -> bool:
    """Add the task, unless it is a copy that does not touch the device's link or memory; whether it did."""
    start, end = line.whole(*_START), line.whole(*_END)
    if start is None or end is None:
        raise line.bad(" has no times")
    if max(abs(start), abs(end)) > _LATEST_NANOSECONDS:
        raise line.bad(" has an impossible time")
    blocks, threads = _shape(line)
    vector = [line.whole(*columns) for columns in _VECTOR_REGISTERS]
    kind, is_copy = "kernel", "direction" in line.cells
    if is_copy:
        kind = COPIES.get(plain(line.cells["direction"]).removeprefix("memorycopy"))
        if kind is None:
            return False
        ends = line.text("sourceagentid"), line.text("destinationagentid")
        device = agents.number(*(reversed(ends) if kind == "htod" else ends))
    else:
        device = agents.number(line.text("agentid", "gpuid"))
    builder.add(
        kind,
        start * 1e-9,
        (end - start) * 1e-9,
        name=line.text("kernelname", "name"),
        device=device,
        stream=_stream(line),
        blocks=blocks,
        threads_per_block=threads,
        registers_per_thread=None if vector == [None, None] else sum(v or 0 for v in vector),
        shared_bytes=line.whole("ldsperworkgroup", "lds", "groupsegmentsize", "ldsblocksize"),
        bytes=line.whole("size", "bytes") if is_copy else None,
    )
    return True


def _stream(line: Line) -> int | None:
    """HIP's stream where it is given, else the queue: streams share queues."""
    cell = line.text("streamid", "queueid")
    if cell is None:
        return None
    digits = cell.split()[-1]
    if not digits.removeprefix("-").isdecimal() or len(digits) > MOST_DIGITS:
        raise line.bad(f": {digits[:MOST_DIGITS]!r} is not a stream or queue")
    return int(digits)


def _shape(line: Line) -> tuple[int | None, int | None]:
    """Return (blocks, threads per block)"""
    items, threads = line.whole("gridsize", "grd"), line.whole("workgroupsize", "wgr")
    if items and threads:
        return -(-items // threads), threads
    sides = [f"{what}size{axis}" for what in ("grid", "workgroup") for axis in "xyz"]
    if not line.cells.keys() >= set(sides):
        return None, threads
    sizes = [line.whole(side) or 1 for side in sides]
    blocks = [-(-grid // group) for grid, group in zip(sizes[:3], sizes[3:], strict=True)]
    return volume(blocks), volume(sizes[3:])


def _sysinfo(path: Path) -> Gpu | None:
    """Return the hardware row of a rocprof folder; what it lacks comes from the table of devices.

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
        gpu = amd_gpu(row.get("gpu_model") or "AMD", units, bandwidth or 1.0)
        return replace(gpu, l2_bytes=rest)
    except BadData as error:
        raise BadData(error.what, where=str(path), fix="Remove it, or name the GPU.") from None
