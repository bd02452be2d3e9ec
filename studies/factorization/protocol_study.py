"""`python -m studies protocol` and `python -m studies figures`: the paper's comparisons and its pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

from jostle._base.option_fields import Limits, Positional
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report, Table
from jostle.errors import UsageError
from studies.fields import DatasetFolder, Output, Scheduler, Workers, listed


@dataclass(frozen=True)
class ProtocolStudy:
    """Run a study of the paper on a dataset, from where it was left.

    Every finished fit is kept in its own file, so a study may be stopped at any time, widened, and run
    again. Prints a table; all numbers are in OUTPUT/STUDY.parquet.
    """

    name: ClassVar[str] = "protocol"

    dataset: DatasetFolder
    output: Output
    study: Annotated[
        str,
        "baselines, objective, features, interference, form, activation, quantiles, q, r, s or beta.",
    ] = "baselines"
    observed: Annotated[str, "Shares of the runs to learn from, separated by commas."] = (
        ".1,.2,.3,.4,.5,.6,.7,.8,.9"
    )
    replicates: Annotated[int, "Splits and seeds per share.", Limits(1)] = 5
    by: Annotated[str, "Draw single rows as the paper does, or whole windows."] = "row"
    methods: Annotated[str | None, "Only these of the study's methods, separated by commas."] = None
    steps: Annotated[
        int | None,
        "Training steps of the factorization.  [default: by the number of runs]",
        Limits(1),
    ] = None
    members: Annotated[int, "Models that the factorization averages.", Limits(1)] = 1
    workers: Workers = None
    scheduler: Scheduler = None
    seed: Annotated[int, "Of the first replicate; the next add 1."] = 0

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, UnreadableFile and what a fit raises."""
        from jostle.learn.learners.network import Factorization
        from studies.contract import document
        from studies.factorization.comparisons import comparison_named
        from studies.factorization.figures import summary_rows
        from studies.factorization.protocol import Draws, run_protocol

        base = Factorization(steps=self.steps, members=self.members)
        comparison = comparison_named(self.study, base)
        wanted = listed(self.methods)
        if wanted is not None:
            known = {variant.name: variant for variant in comparison.variants}
            for name in wanted:
                if name not in known:
                    raise UsageError(f"unknown method {name!r}", fix=f"One of {', '.join(known)}.")
            kept = tuple(variant for variant in comparison.variants if variant.name in wanted)
            comparison = replace(comparison, variants=kept)
        table = run_protocol(
            self.dataset,
            self.output,
            comparison,
            Draws(_shares(self.observed), self.replicates, self.seed, self.by),
            workers=self.workers,
            scheduler=self.scheduler,
            progress=progress,
        )
        columns, rows = summary_rows(table)
        data = {"dataset": str(self.dataset), "split_by": self.by}
        results = document(self, data, self.seed, rows=table.to_pylist())
        results["name"] = f"protocol {self.study}"
        return Report(results, [Table(columns, rows)])


@dataclass(frozen=True)
class FiguresStudy:
    """Draw the paper's figures from whatever studies are in a folder, as PNG and SVG.

    Prints the paths.
    """

    name: ClassVar[str] = "figures"

    results: Annotated[Path, "The folder that python -m studies protocol filled.", Positional()]

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UnreadableFile, and MissingExtra without matplotlib."""
        from studies.factorization.figures import draw_studies

        drawn = draw_studies(self.results)
        paths = [str(path) for path in drawn]
        return Report({"schema": "figures/v1", "figures": paths}, figures=drawn)


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"`observed` {text!r}", fix="Say shares like .1,.3,.5.") from None
