"""Fit, calibrate, save and load any method with the same verbs.

This file is the room's whole public face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._model import Model, fit
    from ._saved import load
    from ._traced import traced_runs

_HOMES = {"Model": "_model", "fit": "_model", "load": "_saved", "traced_runs": "_traced"}

__all__ = ["Model", "fit", "load", "traced_runs"]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
