"""Faces whose names load on first use, so that importing a room costs nothing (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def on_first_use(face: str, homes: Mapping[str, str], name: str) -> Any:
    """The public name `name` of the module `face`, from its home there; kept for the next use.

    homes: {public name: submodule of the face that defines it}. Raises AttributeError.
    """
    if name not in homes:
        raise AttributeError(f"module {face!r} has no attribute {name!r}")
    value = getattr(import_module(f".{homes[name]}", face), name)
    setattr(sys.modules[face], name, value)
    return value
