"""What an importer is, and which there are: those of Jostle and those of other packages alike."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from jostle._base.plugins import load, names_of

GROUP = "jostle.importers"


class Importer(Protocol):
    """A frozen dataclass of options whose class an entry point of the group `jostle.importers` names.

    Its fields, `Annotated[type, "help", ...]`, are options of `jostle import --kind NAME`, and its
    docstring is the command's help.
    """

    name: ClassVar[str]

    def read(self) -> Any:
        """Return :class:`Imported` runs, `Traces`, or a `Profile`. Raises a JostleError; nothing is
        written."""
        ...


def importer_names() -> tuple[str, ...]:
    """Return the names of all importers that are installed, sorted; none is loaded for it."""
    return names_of(GROUP)


def importer_named(name: str) -> type:
    """Return the class of an importer. Raises UnknownName, UsageError where it cannot be loaded."""
    return load(GROUP, name)
