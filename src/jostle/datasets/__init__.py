"""Datasets that come with Jostle: runs to try things on, and to begin with as prior knowledge.

This file is the room's whole public face; names load on first use, so importing it costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._sample import sample, sample_description

_HOMES = {"sample": "_sample", "sample_description": "_sample"}

__all__ = ["sample", "sample_description"]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
