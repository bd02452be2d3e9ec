"""`python -m studies bag`: benchmarks and pairs left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from jostle._base.option_fields import Limits
from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report, Table, percent
from studies.fields import FitsAtOnce, Kept, Methods, listed

if TYPE_CHECKING:
    from studies.bag.evaluation import BagsEvaluation

COLUMNS = {
    "each": "relative_error_mean_{}_ratio",
    "bag": "relative_error_mean_bag_{}_ratio",
    "R² of extra": "extra_time_r2_{}",
    "R² of log slowdown": "log_slowdown_r2_{}",
}


@dataclass(frozen=True)
class BagStudy:
    """Leave one benchmark out, and pairs out: errors by method and feature group."""

    name: ClassVar[str] = "bag"

    on: Annotated[
        Literal["shared-core", "vision"],
        "Which of the bags that come with Jostle, if no data are given: programs that wait and share a core, "
        "or vision kernels.",
    ] = "shared-core"
    data: Annotated[
        Path | None,
        "The dataset: a folder of runs of finite jobs, as studies.data makes of Magus.  [default: bags that "
        "come with Jostle]",
    ] = None
    methods: Methods = None
    folds: Annotated[int, "Parts that the pairs are cut into.", Limits(2)] = 6
    seed: Annotated[int, "Of fits and folds."] = 0
    kept: Kept = None
    workers: FitsAtOnce = 1

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UnknownName, NotEnoughRuns, MissingExtra and what reading raises."""
        from jostle.data import (
            SHARED_CORE_CPU,
            VISION_CPU,
            Dataset,
            read_runs,
            shared_core_bags,
            vision_bags,
        )
        from studies.bag.evaluation import TESTS, evaluate_bags
        from studies.cells import Runner
        from studies.contract import document

        bags, cpu, target = shared_core_bags, SHARED_CORE_CPU, "slowdown"
        where, version = self.on, self.on
        if self.data is not None:
            cpu, target, where = None, "extra", str(self.data)
            version = Dataset(self.data).version()
        elif self.on == "vision":
            bags, cpu = vision_bags, VISION_CPU
        results = evaluate_bags(
            bags() if self.data is None else read_runs(self.data),
            cpu,
            target,
            folds=self.folds,
            seed=self.seed,
            methods=listed(self.methods),
            runner=Runner(self.workers, None, self.kept, version),
            progress=progress,
        )
        data = {"dataset": where, "version": version, "cpu_platform": cpu}
        settings = {"target": target, "folds": self.folds}
        content = document(self, data, self.seed, settings=settings, metrics=results.metrics)
        tables: list[Table | str] = []
        for test in TESTS:
            tables += [_errors_table(results, test), ""]
        return Report(content, tables[:-1])


def _errors_table(results: BagsEvaluation, test: str) -> Table:
    rows = []
    for name in results.methods:
        cells = [name]
        for key in COLUMNS.values():
            value = results.metrics.get(key.format(f"{test}_{name}"), float("nan"))
            is_r2 = value == value and "_r2_" in key
            cells.append(f"{value:.2f}" if is_r2 else percent(value))
        rows.append(cells)
    return Table([f"{test} held out", *COLUMNS], rows)
