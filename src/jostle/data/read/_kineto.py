"""Kineto traces (torch.profiler, Chrome JSON), plain or gzip, read as a stream.

Only events of an accelerator are kept, so memory does not grow with the rest of the trace. Times are in
microseconds (whole ones before 2024). The pinning of a copy stands in its name alone, where at all;
AMD kernels carry no launch shape. The "est. achieved occupancy %" of a kernel is not the theoretical one
and is not used for it.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.untrusted import Unpacked
from jostle.data.read._memory_needs import peak_bandwidth, pes_in_use
from jostle.data.read._trace_readers import RecordedRun
from jostle.data.tables.arrow_compute import with_column
from jostle.data.traces._gpus import GPUS, Gpu, known_gpu, register_rules, reported_gpu
from jostle.data.traces._profile_tasks import Profile, TaskBuilder, volume
from jostle.errors import BadData, UnreadableFile

name = "kineto"
_CHUNK = 1 << 20
_LARGEST_VALUE = 1 << 26  # characters of one event; more means that the text is no trace
_COPY = re.compile(r"\b(HtoD|DtoH|DtoD|PtoP|HtoH)\b", re.IGNORECASE)
_SPACE = re.compile(r"[\s,]*")
_DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def read(path: Path, recording: RecordedRun) -> Profile:
    """Raises UnreadableFile for a truncated or foreign file, BadData for one without GPU tasks."""
    where = str(path)
    try:
        with path.open("rb") as raw:
            is_zipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            stream = Unpacked(raw, os.fstat(raw.fileno()).st_size, where) if is_zipped else raw
            return _read(_Json(stream, where), where, recording)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"cannot be read to its end: {error}", where=where, fix="Copy or record it again."
        ) from None


def _read(text: _Json, where: str, recording: RecordedRun) -> Profile:
    builder = TaskBuilder(recording.run_id, where)
    gpus: dict[int, Gpu | None] = {}
    events, is_trace = _Events(builder, where, recording.mark), False
    for key, value in text.items():
        if key == "deviceProperties" and isinstance(value, list):
            for entry in (one for one in value if isinstance(one, dict)):
                number = _whole(entry.get("id"))
                gpus[len(gpus) if number is None else number] = _hardware(entry, where)
        if key != "traceEvents":
            continue
        is_trace = True
        if isinstance(value, dict):
            events.add(value)
    if not is_trace:
        raise UnreadableFile(
            "JSON, but no trace: it has no traceEvents",
            where=where,
            fix="Export one with torch.profiler's export_chrome_trace.",
        )
    if recording.gpu is not None or not gpus:
        hardware = {int(d): recording.gpu for d in builder.devices}
    else:
        # AMD numbers the device of an event otherwise than the list of devices: one kind serves all.
        kinds = set(gpus.values())
        one = next(iter(kinds)) if len(kinds) == 1 else None
        hardware = {int(d): gpus.get(int(d), one) for d in builder.devices}
    profile = builder.profile(recording.workload, hardware, events.notes, name)
    return replace(
        events.sizes.of(profile), marks=events.steps, memory_bytes=events.most_bytes or None
    )


_AGAIN = "Record it again: was the file cut or rewritten?"


class _Events:
    """Events of a trace, one after the other: tasks into the builder, and what stands beside them.

    mark: how the names of annotations begin that say where a step begins.
    """

    def __init__(self, builder: TaskBuilder, where: str, mark: str) -> None:
        self.builder, self.where, self.mark = builder, where, mark
        self.sizes, self.most_bytes = TensorSizes(), 0.0
        self._left_out = self._unshaped = 0
        self._begun: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
        self._marks: tuple[list[float], list[float]] = ([], [])  # on the host, on the device

    def add(self, event: dict[str, Any]) -> None:
        """Take in one event. Raises BadData."""
        category, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
        if not category and event.get("pid") == "CUDA functions":  # of the autograd profiler
            category = "kernel"
        if name.startswith(self.mark) and event.get("ph") in ("X", "B"):
            at = _seconds(event, self.where)[0]
            self._marks[category == "gpu_user_annotation"].append(at)
        if category == "cpu_instant_event" and name == "[memory]":
            self.most_bytes = max(self.most_bytes, _reserved(_arguments(event)))
        if category == "cpu_op":
            self.sizes.operator(_arguments(event))
        place, phase = (event.get("pid"), event.get("tid")), event.get("ph", "X")
        if category in _DEVICE_CATEGORIES and phase == "B":
            self._begun.setdefault(place, []).append(event)
        elif phase == "E" and self._begun.get(place):
            event = self._whole(self._begun[place].pop(), event)
            category, phase = str(event.get("cat", "")).lower(), "X"
        if category in _DEVICE_CATEGORIES and phase == "X":
            if "dur" not in event:
                raise BadData(
                    f"{category} {name[:60]!r} has no duration", where=self.where, fix=_AGAIN
                )
            self._task(category, event)

    def _whole(self, begin: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
        """Return one event of where it begins and where it ends."""
        (first, _), (last, _) = _seconds(begin, self.where), _seconds(end, self.where)
        return begin | {"ph": "X", "dur": 1e6 * (last - first)}

    def _task(self, category: str, event: dict[str, Any]) -> None:
        arguments = _arguments(event)
        if not _event(self.builder, category, event, self.where):
            self._left_out += 1
            return
        self.sizes.task(arguments, _seconds(event, self.where)[0])
        self._unshaped += category == "kernel" and "grid" not in arguments

    @property
    def steps(self) -> tuple[float, ...]:
        """Times at which each step began: on the device, if it says so more than once."""
        host, device = self._marks
        return tuple(device if len(device) > 1 else host)

    @property
    def notes(self) -> list[str]:
        """Sentences on what was left out."""
        notes = []
        if self._unshaped:
            notes.append(
                f"{self._unshaped} kernels have no launch shape in this file (AMD traces never do)"
            )
        if self._left_out:
            notes.append(f"{self._left_out} copies between hosts or peers were left out")
        return notes


def _reserved(arguments: dict[str, Any]) -> float:
    """Return bytes of the device that PyTorch held then (profile_memory=True), 0 of the host's."""
    held = _whole(arguments.get("Total Reserved")) or 0
    is_device = arguments.get("Device Type") in (1, 20)  # CUDA or ROCm
    return float(held) if is_device and 0 < held < _MOST else 0.0


def _event(builder: TaskBuilder, category: str, event: dict[str, Any], where: str) -> bool:
    """Add the event; False where it is a copy that does not touch this device's link or memory."""
    args = _arguments(event)
    label = str(event.get("name", ""))
    start, duration = _seconds(event, where)
    more: dict[str, Any] = {"stream": _whole(args.get("stream"))}
    device = _whole(args.get("device"))
    if device is None:
        device = _whole(event.get("pid")) or 0
    kind = "kernel"
    if category.endswith("memcpy"):
        direction = _COPY.search(label) or _COPY.search(str(args.get("kind", "")))
        kind = direction[1].lower() if direction else ""
        if kind not in ("htod", "dtoh", "dtod"):
            return False
        more["bytes"] = _whole(args.get("bytes"))
        pinned, pageable = "Pinned" in label, "Pageable" in label
        more["pinned"] = pinned if pinned or pageable else None
    elif category.endswith("memset"):
        kind = "memset"
        more["bytes"] = _whole(args.get("bytes"))
    else:
        more["blocks"] = _volume(args.get("grid"))
        more["threads_per_block"] = _volume(args.get("block"))
        more["registers_per_thread"] = _whole(args.get("registers per thread"))
        more["shared_bytes"] = _whole(args.get("shared memory"))
        more["graph_node"] = _whole(args.get("graph node id"))
    builder.add(kind, start, duration, name=label, device=device, **more)
    return True


def _seconds(event: dict[str, Any], where: str) -> tuple[float, float]:
    """Return (start, duration) of an event."""
    try:
        return float(event["ts"]) * 1e-6, float(event.get("dur", 0.0)) * 1e-6
    except (KeyError, TypeError, ValueError, OverflowError):
        label = str(event.get("name", ""))
        raise BadData(f"event {label!r} has no readable ts and dur", where=where) from None


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    """Return what an event says of itself; nothing where that is no object."""
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _whole(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _volume(sides: Any) -> int | None:
    return volume([_whole(side) for side in sides]) if isinstance(sides, list) and sides else None


def _hardware(entry: dict[str, Any], where: str) -> Gpu | None:
    """Return the device; None where neither the entry nor the table of devices says. Raises BadData for
    numbers that no device has."""
    label = str(entry.get("name") or "")
    named = known_gpu(str(entry.get("name", "")))

    def number(*names: str) -> int:
        """Return the first of these that is there; 0 where none is a number."""
        return next((n for name in names if (n := _whole(entry.get(name)))), 0)

    pes, warp = number("numSms"), number("warpSize") or 32
    if warp == 64:  # AMD: its register and LDS rules are in the table, under the chip's name
        return named or next((g for g in GPUS.values() if g.simds and g.pes == pes), None)
    major, minor = number("computeMajor"), number("computeMinor")
    return reported_gpu(
        label,
        pes,
        number("maxThreadsPerMultiprocessor") // warp,
        f"{where}, deviceProperties",
        registers_per_pe=number("regsPerMultiprocessor"),
        shared_bytes_per_pe=number(
            "sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"
        ),
        memory_bandwidth_bytes_per_second=named and named.memory_bandwidth_bytes_per_second,
        l2_bytes=named and named.l2_bytes,
        compute_capability=f"{major}.{minor}",
        **register_rules(major, minor),
    )


class _Json:
    """Top-level items of a JSON object, a part at a time; the array `traceEvents` entry by entry.

    A bare array (the other form of Chrome traces) counts as traceEvents.
    """

    def __init__(self, stream: Any, where: str) -> None:
        self.stream, self.where = stream, where
        self.decode = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self.text, self.at, self.ended = "", 0, False
        self.parser = json.JSONDecoder()

    def items(self) -> Iterator[tuple[str, Any]]:
        first = self._peek()
        if first == "[":
            for value in self._array():
                yield "traceEvents", value
            self._end()
            return
        if first != "{":
            what = "empty" if not first else "not JSON"
            raise UnreadableFile(f"the file is {what}", where=self.where, fix="Record it again.")
        self.at += 1
        while (mark := self._peek()) != "}":
            if not mark:
                raise self._cut()
            key = self._value()
            if self._peek() != ":":
                raise self._cut()
            self.at += 1
            if key == "traceEvents" and self._peek() == "[":
                yield "traceEvents", None
                for value in self._array():
                    yield "traceEvents", value
            else:
                yield str(key), self._value()
        self.at += 1
        self._end()

    def _array(self) -> Iterator[Any]:
        self.at += 1
        while (mark := self._peek()) != "]":
            if not mark:
                raise self._cut()
            yield self._value()
        self.at += 1

    def _peek(self) -> str:
        """Return the next mark that is no space or comma; empty at the end."""
        while True:
            match = _SPACE.match(self.text, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self.parser.raw_decode(self.text, self.at)
                # A number at the very end may go on in the next part.
                if end < len(self.text) or not self._more():
                    self.at = end
                    return value
            except json.JSONDecodeError:
                if len(self.text) - self.at > _LARGEST_VALUE or not self._more():
                    raise self._cut() from None
            except RecursionError:
                raise UnreadableFile("nested too deep for a trace", where=self.where) from None
            except ValueError as error:  # a number of thousands of digits
                text = f"a value cannot be read: {error}"
                raise UnreadableFile(text, where=self.where, fix="Record it again.") from None

    def _more(self) -> bool:
        if self.ended:
            return False
        part = self.stream.read(_CHUNK)
        self.ended = not part
        self.text = self.text[self.at :] + self.decode.decode(part, final=self.ended)
        self.at = 0
        return bool(part)

    def _end(self) -> None:
        if rest := self._peek():
            raise UnreadableFile(f"text follows the end: {rest!r}", where=self.where)

    def _cut(self) -> UnreadableFile:
        near = self.text[self.at : self.at + 40]
        what = f"broken near {near!r}" if near and not self.ended else "cut off before its end"
        return UnreadableFile(f"the JSON is {what}", where=self.where, fix="Record it again.")


_BYTES = {
    **dict.fromkeys(("double", "long", "long int", "int64_t", "c10::complex<float>"), 8),
    **dict.fromkeys(("float", "int", "unsigned int", "c10::complex<c10::Half>"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short", "short int"), 2),
    **dict.fromkeys(("unsigned char", "signed char", "char", "bool"), 1),
    **dict.fromkeys(("c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
    "c10::complex<double>": 16,
}
_NOWHERE = -1  # a task of no operator
_MOST = 1e15  # bytes: more has no device


@dataclass
class TensorSizes:
    """Estimate of the memory bandwidth that kernels need, from the sizes of tensors.

    PyTorch records with `record_shapes=True` what shapes, strides and types an operator was given, and with
    every kernel the operator that launched it (`External id`). A need is the bytes of these tensors, each
    element once, over the seconds of the operator's kernels and the PEs that they fill (Prophet, ASPLOS 2017,
    Table 1, which counts them). What an operator makes is not in the file, so that it writes more than this;
    and what a cache holds it need not read.

    Collects operators and tasks, in the order of the file; numbers alone, so that long traces fit.

    operators, sizes: External ids and bytes. tasks, starts: of every task added, its operator and start.
    """

    operators: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[float] = field(default_factory=lambda: array("d"))
    tasks: array[int] = field(default_factory=lambda: array("q"))
    starts: array[float] = field(default_factory=lambda: array("d"))

    def operator(self, arguments: Mapping[str, Any]) -> None:
        """Add what an operator was given, if the event says so."""
        number, size = _number(arguments), tensor_bytes(arguments)
        if number != _NOWHERE and size > 0:
            self.operators.append(number)
            self.sizes.append(size)

    def task(self, arguments: Mapping[str, Any], start_seconds: float) -> None:
        """Add a task of the profile; they are numbered in this order."""
        self.tasks.append(_number(arguments))
        self.starts.append(start_seconds)

    def of(self, profile: Profile) -> Profile:
        """Return the profile with the needs of kernels whose operators say the sizes of tensors, and a
        note."""
        if not self.sizes:
            return profile
        operators, place = np.unique(np.array(self.operators), return_inverse=True)
        total = np.zeros(len(operators))
        np.maximum.at(total, place, np.array(self.sizes))  # an operator may stand there twice
        order = np.argsort(np.array(self.starts), kind="stable")  # as the profile's rows are
        task = np.array(self.tasks)[order]
        at = np.minimum(np.searchsorted(operators, task), len(operators) - 1)
        kind = np.array(profile.tasks.column("kind").to_pylist())
        known = (operators[at] == task) & (kind == "kernel")
        seconds = profile.column("duration_seconds")
        spent = np.bincount(at[known], seconds[known], len(operators))
        known &= spent[at] > 0
        if not known.any():
            return profile
        rate = np.minimum(total[at[known]] / spent[at[known]], peak_bandwidth(profile))
        need = profile.column("bandwidth_per_pe").astype(float)
        need[known] = rate / pes_in_use(profile)[known]
        column = pa.array(need, pa.float64(), from_pandas=True)
        tasks = with_column(profile.tasks, "bandwidth_per_pe", column)
        note = (
            f"memory bandwidth of {known.sum()} of {(kind == 'kernel').sum()} kernels is from the sizes of "
            "the tensors that their operators read; what they write is not in the file"
        )
        return replace(profile, tasks=tasks, notes=(*profile.notes, note))


def tensor_bytes(arguments: Mapping[str, Any]) -> float:
    """Count the bytes of the tensors among an operator's inputs, each element once; 0 where it does not
    say."""
    shapes, kinds = arguments.get("Input Dims"), arguments.get("Input type")
    strides = arguments.get("Input Strides")
    if not isinstance(shapes, list) or not isinstance(kinds, list) or len(shapes) != len(kinds):
        return 0.0
    if not isinstance(strides, list) or len(strides) != len(shapes):
        strides = [None] * len(shapes)
    total = sum(
        _BYTES.get(kind, 0) * _elements(shape, steps) if isinstance(kind, str) else 0.0
        for shape, kind, steps in zip(shapes, kinds, strides, strict=True)
    )
    return total if total < _MOST else 0.0


def _elements(shape: Any, steps: Any) -> float:
    """Return how many of a tensor lie in memory: along a stride of 0 one is read again and again."""
    if not isinstance(shape, list) or not shape:
        return 0.0
    if not all(type(side) is int and 0 <= side < 1 << 48 for side in shape):
        return 0.0
    if isinstance(steps, list) and len(steps) == len(shape):
        shape = [1 if step == 0 and side else side for side, step in zip(shape, steps, strict=True)]
    return math.prod(float(side) for side in shape)


def _number(arguments: Mapping[str, Any]) -> int:
    identity = arguments.get("External id")
    return identity if type(identity) is int and 0 <= identity < 1 << 62 else _NOWHERE
