"""Doors beside the verbs: what a scheduler asks in its own words, as plug-ins found by entry points.

`[project.entry-points."jostle.interfaces"]` of any package names a class that is called with the service;
Kubernetes and Slurm are two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from jostle._base.plugins import load, names_of

if TYPE_CHECKING:
    from jostle.server.http._running_service import Serving


class Door(Protocol):
    """Operations that a plug-in adds to the service. operations: {(method, path): handler}. schemas: {path:
    (JSON schema of the body, of the answer)}, None where there is no body; an answer may also be the class of
    its record."""

    operations: Mapping[tuple[str, str], Any]
    schemas: Mapping[str, tuple[dict[str, Any] | None, Any]]

    async def watch(self) -> None:
        """Run beside the answers until it is cancelled; may end at once."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def doors_of(service: Serving) -> dict[str, Door]:
    """Make the interfaces of all installed packages, {name: interface}. Raises what making one raises."""
    return {
        name: load("jostle.interfaces", name)(service) for name in names_of("jostle.interfaces")
    }
