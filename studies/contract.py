"""What a study is: options, and a run that finds something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from jostle._base.progress import Progress
from jostle._base.report import Report, Table


class Study(Protocol):
    """A frozen dataclass of options: every field is `Annotated[type, "help", marks]`.

    name: that of its command, `python -m studies NAME`, whose help is the docstring of the class.
    """

    name: ClassVar[str]

    def run(self, *, progress: Progress) -> Report:
        """The results, as a document for programs and tables for people."""
        ...


@runtime_checkable
class Announced(Protocol):
    """A study that can take so long that it says so first."""

    def announced(self) -> str | None:
        """What is about to happen and how long it takes; None where that is not worth a line."""
        ...


def document(study: Study, data: Any, seed: int, **results: Any) -> dict[str, Any]:
    """The JSON document of a study: what was evaluated on what, and the results."""
    about = {"schema": "evaluate/v1", "name": study.name, "data": data, "seed": seed}
    return about | results


def report_of(study: Study, data: Any, seed: int, tables: Sequence[Table]) -> Report:
    """Show tables one under the other; the document has their rows by column."""
    rows = [[dict(zip(t.columns, row, strict=True)) for row in t.rows] for t in tables]
    parts = [part for table in tables for part in (table, "")]
    return Report(document(study, data, seed, tables=rows), parts[:-1])
