"""A bag of applications on one GPU: its run time from features, by trees that can be explained.

This file is the room's whole public face; fitting needs scikit-learn, answering only NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._explain import BagExplanation, Step, explain_bag, path_uses
    from ._fitted import FittedBag
    from ._settings import GROUPS, Bag

_HOMES = {
    "Bag": "_settings",
    "BagExplanation": "_explain",
    "FittedBag": "_fitted",
    "GROUPS": "_settings",
    "Step": "_explain",
    "explain_bag": "_explain",
    "path_uses": "_explain",
}

__all__ = [
    "GROUPS",
    "Bag",
    "BagExplanation",
    "FittedBag",
    "Step",
    "explain_bag",
    "path_uses",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
