"""How much memory bandwidth kernels need, from the sizes of tensors in a Kineto trace.

PyTorch records with `record_shapes=True` what shapes, strides and types an operator was given, and with every
kernel the operator that launched it (`External id`). A need is the bytes of these tensors, each element
once, over the seconds of the operator's kernels and the PEs that they fill (Prophet, ASPLOS 2017, Table 1,
which counts them). What an operator makes is not in the file, so that it writes more than this; and what a
cache holds it need not read.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.traces.profiles._tasks import Profile
from jostle.traces.readers._memory_needs import peak_bandwidth, pes_in_use

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
    """Collects operators and tasks, in the order of the file; numbers alone, so that long traces fit.

    operators, sizes: External ids and bytes. tasks, starts: of every task added, its operator and start.
    """

    operators: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[float] = field(default_factory=lambda: array("d"))
    tasks: array[int] = field(default_factory=lambda: array("q"))
    starts: array[float] = field(default_factory=lambda: array("d"))

    def operator(self, arguments: Mapping[str, Any]) -> None:
        """What an operator was given, where it says so."""
        number, found = _number(arguments), tensor_bytes(arguments)
        if number != _NOWHERE and found > 0:
            self.operators.append(number)
            self.sizes.append(found)

    def task(self, arguments: Mapping[str, Any], start_seconds: float) -> None:
        """A task of the profile, in the order in which they are added to it."""
        self.tasks.append(_number(arguments))
        self.starts.append(start_seconds)

    def of(self, profile: Profile) -> Profile:
        """The profile with the needs of kernels whose operators say the sizes of tensors, and a note."""
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
        column = profile.tasks.schema.get_field_index("bandwidth_per_pe")
        tasks = profile.tasks.set_column(
            column,
            profile.tasks.schema.field(column),
            pa.array(need, pa.float64(), from_pandas=True),
        )
        note = (
            f"memory bandwidth of {known.sum()} of {(kind == 'kernel').sum()} kernels is from the sizes of "
            "the tensors that their operators read; what they write is not in the file"
        )
        return replace(profile, tasks=tasks, notes=(*profile.notes, note))


def tensor_bytes(arguments: Mapping[str, Any]) -> float:
    """Bytes of the tensors among an operator's inputs, each element once; 0 where it does not say."""
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
    """How many of a tensor lie in memory: along a stride of 0 one is read again and again."""
    if not isinstance(shape, list) or not shape:
        return 0.0
    if not all(type(side) is int and 0 <= side < 1 << 48 for side in shape):
        return 0.0
    if isinstance(steps, list) and len(steps) == len(shape):
        shape = [1 if step == 0 and side else side for side, step in zip(shape, steps, strict=True)]
    return math.prod(float(side) for side in shape)


def _number(arguments: Mapping[str, Any]) -> int:
    found = arguments.get("External id")
    return found if type(found) is int and 0 <= found < 1 << 62 else _NOWHERE
