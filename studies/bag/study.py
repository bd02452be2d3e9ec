"""`python -m studies bag`: benchmarks and pairs left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from jostle._options import Limits
from jostle._report import Report, Table, percent
from jostle.progress import Progress, no_progress
from studies.bag.held_out import TESTS
from studies.fields import FirstSeed, FitsAtOnce, Kept, Methods, Scheduler, Seeds, listed

if TYPE_CHECKING:
    from studies.bag.evaluation import BagsEvaluation

MOST_FEATURES = 15


@dataclass(frozen=True)
class BagStudy:
    """Leave one benchmark out, and pairs out: errors by method and feature group, and what is asked."""

    name: ClassVar[str] = "bag"

    on: Annotated[
        Literal["shared-core", "vision"],
        "Which of the bags that come with Jostle, if no data are given: programs that wait and share a core, "
        "or vision kernels.",
    ] = "shared-core"
    data: Annotated[
        Path | None,
        "The dataset: a folder of runs, as studies.data makes of Magus.  [default: bags that come with "
        "Jostle]",
    ] = None
    cpu_platform: Annotated[str | None, "The platform whose runs give CPU time and fairness."] = (
        None
    )
    benchmark: Annotated[
        str | None,
        "Workload feature that says which workloads are one benchmark; left out together.  "
        "[default: program, benchmark, kernel or family where there is one]",
    ] = None
    target: Annotated[
        str | None,
        "extra for finite jobs, slowdown for steady work.  [default: extra; slowdown for bags that come with "
        "Jostle]",
    ] = None
    methods: Methods = None
    folds: Annotated[int, "Parts that the pairs are cut into.", Limits(2)] = 6
    bounds: Annotated[bool, "Fit more to measure coverage."] = True
    figures: Annotated[
        Path | None,
        "Folder for the pictures: copies, error, ablation, radar, heat map.",
    ] = None
    seeds: Seeds = 5
    seed: FirstSeed = 0
    kept: Kept = None
    workers: FitsAtOnce = 1
    scheduler: Scheduler = None

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UnknownName, NotEnoughRuns, MissingExtra and what reading raises."""
        from jostle.datasets import SHARED_CORE_CPU, VISION_CPU, shared_core_bags, vision_bags
        from jostle.runs import Dataset, read_runs
        from studies.bag.evaluation import BagTests, evaluate_bags
        from studies.bag.figures import draw_bags
        from studies.cells import Runner
        from studies.contract import document

        shipped = self.data is None
        ours = {
            "vision": (vision_bags, VISION_CPU),
            "shared-core": (shared_core_bags, SHARED_CORE_CPU),
        }
        bags, cpu = ours[self.on]
        runs = bags() if self.data is None else read_runs(self.data)
        version = None if self.data is None else Dataset(self.data).version()
        cpu_platform = self.cpu_platform or (cpu if shipped else None)
        target = self.target or ("slowdown" if shipped else "extra")
        seeds = range(self.seed, self.seed + self.seeds)
        results = evaluate_bags(
            runs,
            BagTests(cpu_platform, self.benchmark, target, self.folds, seeds),
            bounds=self.bounds,
            methods=listed(self.methods),
            runner=Runner(self.workers, self.scheduler, self.kept, version or self.on),
            progress=progress,
        )
        drawn = [] if self.figures is None else draw_bags(results, self.figures)
        data = {
            "dataset": self.on if shipped else str(self.data),
            "version": version,
            "cpu_platform": cpu_platform,
            "origins": [vars(origin) for origin in runs.origins],
        }
        return Report(
            document(
                self,
                data,
                self.seed,
                settings={"target": target, "folds": self.folds, "seeds": self.seeds},
                metrics=results.metrics,
                paper_features=results.paper_features,
                explanation=results.uses_document(),
                notes=results.notes,
                figures=[str(path) for path in drawn],
            ),
            _tables(results),
            drawn,
            [f"note: {note}" for note in results.notes],
        )


def _tables(results: BagsEvaluation) -> list[Table | str]:
    from studies.bag.paper_features import features_table

    tables: list[Table | str] = [features_table(results.paper_features), ""]
    for test in TESTS:
        tables += [_errors_table(results, test), ""]
    rows = [[name, percent(s), f"{u:.2f}"] for name, s, u in results.uses_table()[:MOST_FEATURES]]
    if rows:
        tables.append(Table(["the tree asks about", "of answers", "times"], rows, (1, 2)))
    return tables


def _errors_table(results: BagsEvaluation, test: str) -> Table:
    m = results.metrics
    level = 80 if any(key.startswith(f"coverage_80_{test}") for key in m) else 90
    columns = {
        "each": "relative_error_mean_{}_ratio",
        "bag": "relative_error_mean_bag_{}_ratio",
        "R² of extra": "extra_time_r2_{}",
        "R² of log slowdown": "log_slowdown_r2_{}",
        f"coverage {level}": f"coverage_{level}_{{}}_ratio",
        "± s.e.": f"coverage_{level}_standard_error_{{}}_ratio",
    }
    rows = []
    for name in results.methods:
        if f"relative_error_mean_{test}_{name}_ratio" not in m:
            continue
        cells = [name]
        for key in columns.values():
            value = m.get(key.format(f"{test}_{name}"), float("nan"))
            is_r2 = value == value and "_r2_" in key
            cells.append(f"{value:.2f}" if is_r2 else percent(value))
        rows.append(cells)
    title = "fifth of the runs held out (80/20)" if test == "fifth" else f"{test} held out"
    return Table([title, *columns], rows, range(1, len(columns) + 1))
