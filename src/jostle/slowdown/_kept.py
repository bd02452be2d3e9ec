"""The stack as arrays and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.rules import (
    Addend,
    Bilinear,
    Encoded,
    Forest,
    LargerSets,
    Level,
    Memory,
    RandomEffects,
    record_from_arrays,
    record_to_arrays,
)
from jostle.slowdown._stack import Stack
from jostle.slowdown.members._form import SlowdownForm
from jostle.slowdown.members._process import Process, Settings

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
        arrays |= record_to_arrays(part, f"part{number}.")
        listed.append({"kind": type(part).__name__.lower(), "weight": weight})
    if stack.more is not None:
        arrays |= record_to_arrays(stack.more, "more.")
    if stack.memory is not None:
        arrays |= record_to_arrays(stack.memory, "memory.")
    return arrays, listed


def stack_from_arrays(arrays: Mapping[str, np.ndarray], listed: list[dict[str, Any]]) -> Stack:
    parts: list[tuple[float, Addend]] = []
    for number, one in enumerate(listed):
        part: Addend = record_from_arrays(KINDS[one["kind"]], arrays, f"part{number}.", INNER)
        parts.append((float(one["weight"]), part))
    more = record_from_arrays(LargerSets, arrays, "more.", INNER) if "more.most" in arrays else None
    memory = (
        record_from_arrays(Memory, arrays, "memory.", INNER) if "memory.key" in arrays else None
    )
    return Stack(tuple(parts), more, memory)
