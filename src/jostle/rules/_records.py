"""Records of arrays as plain arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def record_to_arrays(record: Any, prefix: str) -> dict[str, np.ndarray]:
    """{prefix and the field's name: array}, records inside under their field's name and a dot."""
    out: dict[str, np.ndarray] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            out |= record_to_arrays(value, f"{prefix}{field.name}.")
        else:
            out[prefix + field.name] = np.asarray(value, order="C")
    return out


def record_from_arrays(
    kind: type[Any], arrays: Mapping[str, np.ndarray], prefix: str, inner: Mapping[str, type[Any]]
) -> Any:
    """The inverse. inner: the kinds of records inside, by the names of their fields."""
    found: dict[str, Any] = {}
    for field in fields(kind):
        name = prefix + field.name
        if field.name in inner:
            found[field.name] = record_from_arrays(inner[field.name], arrays, f"{name}.", inner)
        else:
            found[field.name] = arrays[name]
    return kind(**found)
