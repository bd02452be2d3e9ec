"""The stack as arrays and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from jostle.slowdown._memory import Memory
from jostle.slowdown._more import LargerSets
from jostle.slowdown._stack import Addend, Stack
from jostle.slowdown.members._bilinear import Bilinear
from jostle.slowdown.members._effects import RandomEffects
from jostle.slowdown.members._encoded import Encoded
from jostle.slowdown.members._form import SlowdownForm
from jostle.slowdown.members._level import Level
from jostle.slowdown.members._process import Process, Settings
from jostle.slowdown.members._trees import Forest

KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind
    for kind in (Bilinear, RandomEffects, Encoded, SlowdownForm, Level, Process)
}
INNER: dict[str, type[Any]] = {"forest": Forest, "settings": Settings}  # records inside a part


def stack_to_arrays(stack: Stack) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """({part number.field: array}, [{kind, weight}]); stack_from_arrays is the inverse."""
    arrays: dict[str, np.ndarray] = {}
    listed = []
    for number, (weight, part) in enumerate(stack.parts):
        arrays |= _flat(part, f"part{number}.")
        listed.append({"kind": type(part).__name__.lower(), "weight": weight})
    if stack.more is not None:
        arrays |= _flat(stack.more, "more.")
    if stack.memory is not None:
        arrays |= _flat(stack.memory, "memory.")
    return arrays, listed


def stack_from_arrays(arrays: Mapping[str, np.ndarray], listed: list[dict[str, Any]]) -> Stack:
    parts: list[tuple[float, Addend]] = []
    for number, one in enumerate(listed):
        part: Addend = _whole(KINDS[one["kind"]], arrays, f"part{number}.")
        parts.append((float(one["weight"]), part))
    more = _whole(LargerSets, arrays, "more.") if "more.most" in arrays else None
    memory = _whole(Memory, arrays, "memory.") if "memory.key" in arrays else None
    return Stack(tuple(parts), more, memory)


def _flat(record: Any, prefix: str) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            out |= _flat(value, f"{prefix}{field.name}.")
        else:
            out[prefix + field.name] = np.asarray(value, order="C")
    return out


def _whole(kind: type[Any], arrays: Mapping[str, np.ndarray], prefix: str) -> Any:
    found: dict[str, Any] = {}
    for field in fields(kind):
        inner = INNER.get(field.name)
        name = prefix + field.name
        found[field.name] = _whole(inner, arrays, f"{name}.") if inner else arrays[name]
    return kind(**found)
