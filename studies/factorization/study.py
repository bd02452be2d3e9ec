"""One fit of factorization on one split, in full, or every table and figure of the Pitot paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from jostle._options import Limits
from jostle._report import Report, Table, percent
from jostle.evaluate import DatasetFolder, Scheduler, Workers, listed
from jostle.progress import Progress, no_progress

if TYPE_CHECKING:
    from jostle.evaluate import Covered
    from studies.factorization.paper import Paper

WORST_PLATFORMS = 10


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
        from jostle.runs import read_runs

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
        from jostle.errors import UsageError
        from jostle.evaluate import (
            document,
            evaluate_method,
            file_split,
            measures_table,
            observed_split,
        )
        from jostle.factorization import Factorization
        from jostle.runs import Dataset, read_runs

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
        found = evaluate_method(runs, method, split, seed=self.seed, progress=progress)
        data = {
            "dataset": str(self.dataset),
            "version": Dataset(self.dataset).version(),
            "splits": str(self.splits) if self.splits else None,
            "observed": self.observed,
        }
        m = found.metrics
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
                coverage=[covered.to_row() for covered in found.coverage],
            ),
            tables + (_coverage_tables(found.coverage) if self.coverage else []),
        )

    def _paper(self) -> Paper:
        from jostle.errors import UsageError
        from jostle.factorization import Factorization
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
        from jostle.evaluate import document
        from jostle.runs import Dataset
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


def _coverage_tables(covered: list[Covered]) -> list[Table | str]:
    """All pools and tenths of the workloads, the platforms that fall short the most, and how many do."""
    from jostle.evaluate import COVERAGE_KINDS

    levels = list(covered[0].coverage)
    kinds = {kind: [one for one in covered if one.kind == kind] for kind in COVERAGE_KINDS}
    first = min(levels)
    worst = sorted(
        kinds["platform"], key=lambda o: (o.coverage[first] - first) / o.standard_error(first)
    )
    named = [(one.name, one) for one in kinds["pool"]]
    named += [(f"workloads, tenth {one.name}", one) for one in kinds["workload_decile"]]
    named += [(one.name, one) for one in worst[:WORST_PLATFORMS]]
    rows = []
    for name, one in named:
        rows.append([name, str(one.runs)])
        for level in levels:
            rows[-1] += [percent(one.coverage[level]), percent(one.margin[level])]
    titles = [f"{what} {100 * level:.0f}" for level in levels for what in ("coverage", "margin")]
    short = {level: sum(one.falls_short(level) for one in kinds["platform"]) for level in levels}
    return [
        Table(["", "runs", *titles], rows, range(1, 2 + len(titles))),
        *(
            f"at {level:.0%}, {count} of {len(kinds['platform'])} platforms are more than two standard "
            "errors short"
            for level, count in short.items()
        ),
    ]
