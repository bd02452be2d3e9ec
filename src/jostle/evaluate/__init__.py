"""The papers' protocols, tables and figures as commands.

This file is the room's whole public face.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._factorization import (
        Evaluation,
        Split,
        evaluate_factorization,
        file_split,
        metrics_of,
        observed_split,
    )

__all__ = [
    "Evaluation",
    "Split",
    "evaluate_factorization",
    "file_split",
    "metrics_of",
    "observed_split",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("._factorization", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
