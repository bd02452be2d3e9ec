"""`jostle report`: one file that says how good a model is, on what data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._options import Confidence, Positional, Short
from jostle._report import Report
from jostle.cli.console._fields import Model
from jostle.errors import NotPermitted


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """What is reported on, and where to."""

    dataset: Annotated[Path, "The dataset that the model was fitted to.", Positional()]
    model: Model
    output: Annotated[Path, "The file.", Short("-o")] = Path("report.html")
    confidence: Confidence = DEFAULT_CONFIDENCE
    seed: Annotated[int, "Of the folds that coverage is counted over."] = 0


def report(command: ReportCommand, as_json: bool) -> Report:
    """Write one HTML file that opens without a network: quality of the data, errors and coverage on runs not
    learned from, which pairs disturb most, a map of workloads, worst errors, and what to measure next.
    """
    from jostle.models import load
    from jostle.report import find, to_html
    from jostle.runs import Dataset

    runs, model = Dataset(command.dataset), load(command.model)
    findings = find(runs, model, confidence=command.confidence, seed=command.seed)
    if not as_json:
        try:
            command.output.write_text(to_html(findings), "utf-8")
        except OSError as error:
            raise NotPermitted(
                f"cannot write: {error.strerror}",
                where=str(command.output),
                fix="Choose another file.",
            ) from None
    return Report(findings.to_document(), [str(command.output)], notes=findings.notes)
