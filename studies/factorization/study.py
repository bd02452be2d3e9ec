"""One fit of factorization on one split, in full, or every table and figure of the Pitot paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from jostle._base.option_fields import Limits
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report, Table
from studies.fields import DatasetFolder, Scheduler, Workers, listed

if TYPE_CHECKING:
    from studies.factorization.paper import Paper


@dataclass(frozen=True)
class FactorizationStudy:
    """Error, coverage and margin of factorization on runs it has not seen.

    With --paper every table and figure of the Pitot paper (MLSys 2025) instead, on one page.
    """

    name: ClassVar[str] = "factorization"

    dataset: DatasetFolder
    splits: Annotated[
        Path | None, "An .npz file with row numbers mf_train, mf_val, mf_test, if2_train, …"
    ] = None
    observed: Annotated[float | None, "Share of the runs to learn from, drawn with the seed."] = (
        None
    )
    by: Annotated[
        Literal["window", "row", "together"],
        "With --observed: what is drawn whole; together: sets of workloads.",
    ] = "window"
    seed: Annotated[int, "Of the split and the training."] = 0
    form: Annotated[str, "How co-runners slow down: paper, product or saturating."] = "saturating"
    members: Annotated[int, "Models to average.", Limits(1)] = 1
    steps: Annotated[int | None, "Training steps.  [default: by the number of runs]", Limits(1)] = (
        None
    )
    coverage: Annotated[bool, "Also print coverage by platform and tenth of the workloads."] = False
    paper: Annotated[
        Path | None,
        "Fill this folder with every table and figure of the paper, from where it was left; open its "
        "index.html. --observed says one share instead of nine; --by is `row` there.",
    ] = None
    studies: Annotated[
        str | None, "With --paper: only these studies, separated by commas (see protocol)."
    ] = None
    replicates: Annotated[int, "With --paper: splits and seeds per share.", Limits(1)] = 5
    baseline_steps: Annotated[
        int | None,
        "With --paper: training steps of the neural baselines.  [default: 20000]",
        Limits(1),
    ] = None
    workers: Workers = None
    scheduler: Scheduler = None

    def announced(self) -> str | None:
        """With `paper`, how many fits are missing and how long they take, roughly."""
        from jostle.data import read_runs

        if self.paper is None:
            return None
        paper = self._paper()
        missing = len(paper.missing())
        if not missing:
            return f"all fits are in {self.paper}; drawing"
        hours = paper.seconds_left(len(read_runs(self.dataset))) / 3600
        text = f"{hours:.0f} hours" if hours >= 10 else f"{max(hours * 60, 1):.0f} minutes"
        return (
            f"{missing} fits to do, roughly {text} of one core; what is done stays in {self.paper}"
        )

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, NotEnoughRuns and what reading and fitting raise."""
        from jostle.data import Dataset, read_runs
        from jostle.errors import UsageError
        from jostle.learn.learners.network import Factorization
        from studies.contract import document
        from studies.factorization.coverage import coverage_by_group, coverage_tables
        from studies.factorization.row_numbers import file_split
        from studies.splits import evaluate_method, measures_table, observed_split

        if self.paper is not None:
            return self._run_paper(progress)
        if (self.splits is None) == (self.observed is None):
            raise UsageError("say either `splits` or `observed`")
        runs = read_runs(self.dataset)
        split = (
            file_split(runs, self.splits, self.seed)
            if self.splits is not None
            else observed_split(runs, self.observed or 0.0, self.seed, self.by)
        )
        method = Factorization(form=self.form, members=self.members, steps=self.steps)
        m, bounds = evaluate_method(runs, method, split, seed=self.seed, progress=progress)
        covered = coverage_by_group(runs.take(split.test), bounds)
        data = {
            "dataset": str(self.dataset),
            "version": Dataset(self.dataset).version(),
            "splits": str(self.splits) if self.splits else None,
            "observed": self.observed,
        }
        tables = [
            measures_table(m),
            f"{m['test_runs']:.0f} test runs, fitted and calibrated in {m['train_seconds']:.1f} s",
        ]
        return Report(
            document(
                self,
                data,
                self.seed,
                settings={"form": self.form, "members": self.members, "steps": self.steps},
                metrics=m,
                coverage=[one.to_row() for one in covered],
            ),
            tables + (coverage_tables(covered) if self.coverage else []),
        )

    def _paper(self) -> Paper:
        from jostle.errors import UsageError
        from jostle.learn.learners.network import Factorization
        from studies.factorization.paper import PAPERS_SHARES, STUDIES, Paper
        from studies.factorization.protocol import Draws

        if self.paper is None or self.splits is not None:
            raise UsageError("`splits` and `paper` do not go together")
        shares = PAPERS_SHARES if self.observed is None else (self.observed,)
        method = Factorization(form=self.form, members=self.members, steps=self.steps)
        draws = Draws(shares, self.replicates, self.seed, "row")
        studies = listed(self.studies) or STUDIES
        return Paper(self.dataset, self.paper, method, draws, studies, self.baseline_steps)

    def _run_paper(self, progress: Progress) -> Report:
        from jostle.data import Dataset
        from studies.contract import document
        from studies.factorization.figures import summary_rows

        paper = self._paper()
        tables = paper.run(workers=self.workers, scheduler=self.scheduler, progress=progress)
        printed: list[Table | str] = []
        for name, table in tables.items():
            columns, rows = summary_rows(table)
            printed += [name, Table(columns, rows, range(1, len(columns)))]
        data = {
            "dataset": str(self.dataset),
            "version": Dataset(self.dataset).version(),
            "observed": list(paper.draws.observed),
        }
        rows = {name: table.to_pylist() for name, table in tables.items()}
        home = paper.folder / "figures"
        return Report(
            document(self, data, self.seed, page=str(paper.folder / "index.html"), rows=rows),
            [*printed, f"all on one page: {paper.folder / 'index.html'}"],
            figures=sorted(home.glob("*.png")),
        )
