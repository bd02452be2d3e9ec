"""Datasets that come with Jostle: runs to try things on, and to begin with as prior knowledge.

This file is the room's whole public face; names load on first use, so importing it costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._sample import sample, sample_description
    from ._vision import VISION_CPU, vision_bags

_HOMES = {
    "VISION_CPU": "_vision",
    "sample": "_sample",
    "sample_description": "_sample",
    "vision_bags": "_vision",
}

__all__ = ["VISION_CPU", "sample", "sample_description", "vision_bags"]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
