"""One fit of factorization on one split, in full."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from jostle._base.option_fields import Limits
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report
from studies.fields import DatasetFolder


@dataclass(frozen=True)
class FactorizationStudy:
    """Error, coverage and margin of factorization on runs it has not seen."""

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

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, NotEnoughRuns and what reading and fitting raise."""
        from jostle.data import Dataset, read_runs
        from jostle.errors import UsageError
        from jostle.learn.learners.network import Factorization
        from studies.contract import document
        from studies.factorization.coverage import coverage_by_group, coverage_tables
        from studies.factorization.row_numbers import file_split
        from studies.splits import evaluate_method, measures_table, observed_split

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
