"""Fit, calibrate, save and load any method with the same verbs.

This file is the room's whole public face.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._model import Model, fit
    from ._saved import load

_HOMES = {"Model": "_model", "fit": "_model", "load": "_saved"}

__all__ = ["Model", "fit", "load"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
