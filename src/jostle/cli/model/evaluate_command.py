"""`jostle evaluate DATASET`: what fit gives, asked about runs that were left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from jostle._base.option_fields import Positional
from jostle._base.report import Report
from jostle.cli.console import fit_progress
from jostle.errors import NotPermitted
from jostle.operations import EvaluateQuestion, evaluated, evaluation_page


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Options of `jostle evaluate`: the data, and where a page goes."""

    dataset: Annotated[Path, "The dataset: a folder of runs.", Positional()]
    html: Annotated[
        Path | None, "Also write one HTML file that opens without a network, to this file."
    ] = None


def evaluate(command: EvaluateCommand, question: EvaluateQuestion) -> Report:
    """Fit on a part of a dataset and ask about the rest: errors and bounds of what fit gives, beside simple
    rules that see the same runs and have bounds of the same kind.

    Names that stand only in the rest are answered as unknown, and counted.
    """
    from jostle.data import read_runs

    with fit_progress("evaluating") as progress:
        found = evaluated(command.dataset, question, progress)
    report = found.report()
    if command.html is None:
        return report
    try:
        command.html.write_text(evaluation_page(found, read_runs(command.dataset)), "utf-8")
    except OSError as error:
        text = f"cannot write: {error.strerror}"
        raise NotPermitted(text, where=str(command.html), fix="Choose another file.") from None
    return replace(report, figures=[command.html])
