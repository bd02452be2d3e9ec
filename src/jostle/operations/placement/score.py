"""Whether each co-location of a Parquet table is safe, however large the table is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from jostle._base.documents import VerbAnswer
from jostle._base.report import Report, Table
from jostle.operations._operation import verb
from jostle.operations._request_reports import because
from jostle.placement import Standard

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.placement import Placement


@dataclass(frozen=True)
class ScoreQuestion:
    """Decide for each co-location of a Parquet table whether it is safe. A row is a workload, a platform, its
    corunners, and its limit as deadline_seconds or slowdown; corunner_limits_seconds holds theirs. Batch by
    batch, so that a table of any length fits; on the workers of a Dask scheduler where one is given. Ends
    with 1 where a row could not be read."""

    table: Path
    output: Path
    columns: Mapping[str, str] | None = None
    scheduler: str | None = None


@dataclass(frozen=True, repr=False)
class BulkScore(VerbAnswer):
    """Counts of the rows of a table by reason. rows: of the table. reasons: {key of REASONS: rows}; `ok` are
    safe. output: the file."""

    rows: int
    reasons: dict[str, int]
    output: Path
    standard: Standard
    used_predictions: int = 0
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "place_score/v3"
    also: ClassVar[tuple[str, ...]] = ("safe", "promise")

    @property
    def safe(self) -> int:
        return self.reasons.get("ok", 0)

    @property
    def exit_code(self) -> int:
        return 0 if self.rows and not self.reasons.get("bad_request") else 1

    @property
    def promise(self) -> str:
        return self.standard.promised(used_predictions=self.used_predictions > 0)

    def report(self) -> Report:
        """Write how many rows are safe, and why others are not."""
        lines = [[str(n), because(why)] for why, n in self.reasons.items()]
        text = f"{self.safe} of {self.rows} rows are safe."
        parts = [text, Table(["rows", "why"], lines), str(self.output), self.promise]
        return Report(self.to_document(), parts, notes=self.notes)


@verb(ScoreQuestion)
def score(placement: Placement, question: ScoreQuestion, progress: Progress) -> BulkScore:
    """Score a table of co-locations, whatever the fleet. Raises what reading and writing tables raises."""
    from jostle.placement import score_parquet

    reasons, guessed = score_parquet(
        placement.sets,
        question.table,
        question.output,
        columns=question.columns,
        scheduler=question.scheduler,
        progress=progress,
    )
    rows, output = sum(reasons.values()), Path(question.output)
    return BulkScore(rows, reasons, output, placement.standard, guessed, placement.label)
