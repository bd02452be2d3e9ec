"""Everything the Pitot paper tabulates and draws, from one dataset, on one page that is always up to date.

Source: Pitot (MLSys 2025), Fig. 1, 4 to 12. Figures 2 and 3 are a drawing and a photograph.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Table
from jostle.errors import UsageError
from studies.factorization.cells import ProtocolCell
from studies.factorization.comparisons import Comparison, comparison_named
from studies.factorization.protocol import Draws, run_protocol
from studies.page import write_page

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.learn.learners.network import Factorization

STUDIES = (
    "baselines",
    "objective",
    "features",
    "interference",
    "activation",
    "quantiles",
    "q",
    "r",
    "s",
    "beta",
)
PAPERS_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# Seconds of one fit on half of the public Pitot data (docs/results/factorization.md), on one core, by name of
# the method: what a first guess of the time needs. Those per step are of methods whose steps decide it.
SECONDS = {"factorization": 40.0, "gradient_boosting": 85.0, "linear_scaling": 1.0}
SECONDS_PER_STEP = {
    "published_pitot": 0.024,
    "matrix_factorization": 0.0002,
    "neural_network": 0.011,
    "attention": 0.012,
}
RUNS_OF_SECONDS = 61_000
CAPTIONS = {
    "figure-1-interference": "Figure 1: how much slower runs are beside others than alone",
    "figure-4a-objective": "Figure 4a: training objective",
    "figure-4b-features": "Figure 4b: side information",
    "figure-4c-interference": "Figure 4c: what is made of runs with co-runners",
    "figure-4d-activation": "Figure 4d: activation of interference",
    "figure-5-quantiles": "Figure 5: choice of the quantile, at the share nearest to half",
    "figure-6a-baselines": "Figure 6a: error against baselines",
    "figure-6b-bounds": "Figure 6b: margins of bounds against baselines",
    "figure-7-12a-suite": "Figures 7 and 12a: embeddings of workloads by suite",
    "figure-8-heads": "Figure 8: margin by target quantile",
    "figure-9a-features-uncropped": "Figure 9a: side information, not cropped",
    "figure-9b-baselines-uncropped": "Figure 9b: baselines, not cropped",
    "figure-10-q": "Figure 10: learned features, q",
    "figure-10-r": "Figure 10: width of embeddings, r",
    "figure-10-s": "Figure 10: interference types, s",
    "figure-10-beta": "Figure 10: weight of runs with co-runners, β",
    "figure-11-bounds-all": "Figure 11: margins of bounds at every share",
    "figure-12b-runtime": "Figure 12b: embeddings of platforms by runtime",
    "figure-12c-microarchitecture": "Figure 12c: embeddings of platforms by microarchitecture",
    "figure-12d-interference": "Figure 12d: interference learned, and measured in runs not learned from",
}


@dataclass(frozen=True)
class Paper:
    """dataset, folder: where runs are and results go. studies: of STUDIES, all by default. method: what
    ablations start from. baseline_steps: of the neural baselines, the paper's 20 000 by default."""

    dataset: str | os.PathLike[str]
    folder: Path
    method: Factorization
    draws: Draws
    studies: Sequence[str] = STUDIES
    baseline_steps: int | None = None

    def __post_init__(self) -> None:
        for name in self.studies:
            if name not in STUDIES:
                raise UsageError(f"unknown study {name!r}", fix=f"One of {', '.join(STUDIES)}.")

    def comparisons(self) -> list[Comparison]:
        return [
            comparison_named(name, self.method, baseline_steps=self.baseline_steps)
            for name in self.studies
        ]

    def missing(self) -> list[ProtocolCell]:
        """The fits that are not in the folder yet; those that studies share count once."""
        from jostle.data import Dataset

        data, draws = Dataset(self.dataset).version(), self.draws
        cells = {
            cell.file_name: cell
            for comparison in self.comparisons()
            for variant in comparison.variants
            for replicate in range(draws.replicates)
            for share in draws.observed
            for cell in [ProtocolCell(variant, share, replicate, draws.seed, draws.by, data)]
        }
        kept = self.folder / "cells"
        return [cell for name, cell in cells.items() if not (kept / name).exists()]

    def seconds_left(self, runs: int) -> float:
        """CPU seconds that the missing fits take, within a factor of two or so. runs: in the dataset."""
        total = 0.0
        for cell in self.missing():
            method = getattr(
                cell.variant.method, "method", cell.variant.method
            )  # of one that hides runs
            size = cell.observed * 0.8 * runs / RUNS_OF_SECONDS
            if method.name in SECONDS_PER_STEP:
                # The paper's batches are as large however many runs there are.
                total += SECONDS_PER_STEP[method.name] * method.steps
            else:
                members = getattr(method, "members", 1)
                total += 3.0 + SECONDS.get(method.name, 40.0) * size * members
        return total

    def run(
        self,
        *,
        workers: int | None = None,
        scheduler: Any = None,
        progress: Progress = no_progress,
    ) -> dict[str, Any]:
        """Fit what is missing, then draw; returns the tidy table of each study. After each study the page
        shows what there is. Raises UnreadableFile, what a fit raises, and MissingExtra without matplotlib."""
        from jostle.data import read_runs

        runs = read_runs(self.dataset).ok()
        _draw_interference(runs, self.folder)
        whole, done, tables = max(len(self.missing()), 1), 0, {}
        for comparison in self.comparisons():
            before = len(self.missing())
            tables[comparison.name] = run_protocol(
                self.dataset,
                self.folder,
                comparison,
                self.draws,
                workers=workers,
                scheduler=scheduler,
                progress=_of_all(progress, done, whole),
            )
            done += before - len(self.missing())
            self._draw(tables)
        self._draw_learned(runs)
        self._draw(tables)
        return tables

    def _draw(self, tables: dict[str, Any]) -> None:
        from studies.factorization.figures import draw_studies

        draw_studies(self.folder)
        _page(self.folder, self.comparisons(), tables)

    def _draw_learned(self, runs: Runs) -> None:
        """Figures 7 and 12, of a model of the share nearest to half; interference is measured in its test
        runs."""
        from studies.factorization.embedding import draw_embeddings
        from studies.splits import fit_split, observed_split

        share = min(self.draws.observed, key=lambda share: abs(share - 0.5))
        split = observed_split(runs, share, self.draws.seed, self.draws.by)
        plain = replace(self.method, quantiles=())
        model, _ = fit_split(runs, plain, split, seed=self.draws.seed)
        measured = runs.take(split.test)
        draw_embeddings(model, measured, self.folder, seed=self.draws.seed)


def _of_all(progress: Progress, done: int, whole: int) -> Callable[[int, int, float], None]:
    """The progress of one study's fits as that of all that were missing."""
    first: list[int] = []

    def told(now: int, total: int, loss: float) -> None:
        first[:] = first or [now]  # what was there before counts for nothing
        progress(min(done + now - first[0], whole), whole, loss)

    return told


def _page(folder: Path, comparisons: Sequence[Comparison], tables: dict[str, Any]) -> None:
    """Every table there is, and every figure of the folder, as folder/index.html."""
    from studies.factorization.figures import summary_rows

    printed: list[Table] = []
    for comparison in comparisons:
        if comparison.name in tables:
            columns, rows = summary_rows(tables[comparison.name])
            printed.append(Table(columns, rows, title=f"{comparison.title} ({comparison.name})"))
    intro = (
        "Of each dataset share a part is learned from and the rest tested on; ± and bars are two standard "
        "errors over replicates. Figures 2 and 3 of the paper are a drawing and a photograph."
    )
    write_page(folder, "Pitot's tables and figures", intro, CAPTIONS, printed)


def _draw_interference(runs: Runs, folder: Path) -> list[Path]:
    """Figure 1: a histogram of slowdowns for each number of co-runners; nothing where none can be told."""
    import numpy as np

    from jostle._base.figure_files import save
    from jostle._base.figure_style import legend_above, look_of, plain_ticks, plotting
    from studies.factorization.embedding import log_slowdowns

    slowdown, count = log_slowdowns(runs)
    if not len(slowdown):
        return []
    figure, axis = plotting().subplots(figsize=(5.2, 3.4))
    ratio = np.exp(slowdown)
    edges = np.geomspace(min(ratio.min(), 0.9), max(ratio.max(), 1.1), 60)
    for number, degree in enumerate(np.unique(count)):
        here = ratio[count == degree]
        label = f"{degree} co-runner{'s' if degree > 1 else ''} ({len(here)} runs)"
        axis.hist(
            here, edges, histtype="step", color=look_of(number)[0], label=label, linewidth=1.6
        )
    axis.set_xscale("log")
    axis.set_yscale("log")
    plain_ticks(axis.xaxis)
    axis.set_xlabel("time beside others over time alone")
    axis.set_ylabel("runs")
    legend_above(figure)
    return save(figure, folder, "figure-1-interference")
