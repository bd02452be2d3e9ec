"""What installed packages offer under a group of entry points, found by name, loaded when first asked for.

Jostle's own are found in the same way as those of another package.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from jostle.errors import UnknownName, UsageError


def names_of(group: str) -> tuple[str, ...]:
    """List the names in a group of plug-ins, sorted, without importing them."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def load(group: str, name: str) -> Any:
    """Import the plug-in of this name in a group.

    Raises UnknownName for a name that no package offers, UsageError for one that two packages offer, or that
    cannot be imported.
    """
    return _load(group, name, tuple(sys.path))


@lru_cache(maxsize=128)
def _load(group: str, name: str, path: tuple[str, ...]) -> Any:
    """Look packages through once for each path that they may lie on; what failed is tried again."""
    points = {point.value: point for point in entry_points(group=group, name=name)}
    kind = group.removeprefix("jostle.").replace("_", " ")
    kind = kind[:-3] + "y" if kind.endswith("ies") else kind.removesuffix("s")
    if not points:
        raise UnknownName(kind, name, names_of(group))
    if len(points) > 1:
        raise UsageError(
            f"several packages offer the {kind} {name!r}: {', '.join(sorted(points))}",
            fix="Uninstall all but one of them.",
        )
    (point,) = points.values()
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"the {kind} {name!r} cannot be loaded from {point.value}: {error}",
            fix="Install or repair the package that offers it.",
        ) from error
