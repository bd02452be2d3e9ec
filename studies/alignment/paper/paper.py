"""The paper's evaluation from beginning to end: its features, its learners, its algorithm line by line.

Source: Saeed et al., MLCAD 2021, Sec. IV. Two applications are held out of each fold and learned from in none
of its windows. Beside the algorithm as printed stands the same with its slips mended (`section`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Table
from studies.alignment.answers import Curve, Rules, Tested, curves_of, tested_members
from studies.alignment.evaluation import fold_fitter, windows_of
from studies.alignment.folds import Fold, folds_of_programs
from studies.alignment.paper import tables as tables
from studies.alignment.rivals import errors_of_learners
from studies.alignment.truth import MeasuredSet, measured_sets

if TYPE_CHECKING:
    from jostle.data import Traces
    from studies.alignment.paper.method import FittedRidge
    from studies.alignment.paper.selection import CounterSelection

HELD = 2  # applications of a test set
REPAIRED = "repaired_"
CAPTIONS = {
    "figure-2-learners": "Figure 2: mean absolute error per sample of linear learners, aligned as printed",
    "figure-3-samples": "Figure 3: instructions per period, measured, predicted and alone",
    "counters-tree": "Section IV-A: the tree of features by Spearman's correlation, and where it is cut",
    "counters-prefix": "Section IV-A: the error over the most important features",
}


@dataclass(frozen=True)
class PaperResults:
    """tables: II, III, IV, the selection of features, and Figure 2 twice. learners: {learner: {core: error
    per sample}} as printed. curves: of the first test set (Fig. 3)."""

    tables: tuple[Table, ...]
    learners: dict[str, dict[int, float]]
    curves: tuple[Curve, ...]
    selection: CounterSelection
    pairs: tuple[tuple[tuple[str, ...], tuple[Tested, ...]], ...]

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "tables": {
                one.title: [dict(zip(one.columns, row, strict=True)) for row in one.rows]
                for one in self.tables
            },
            "figure_2": self.learners,
            "selection": self.selection.document(),
        }


def evaluate_paper(
    traces: Traces,
    *,
    folds: int | None = None,
    seed: int = 0,
    progress: Progress = no_progress,
) -> PaperResults:
    """folds: at most so many test sets of two applications. Raises
    NotEnoughRuns where no fold has windows to learn from and to test."""
    from jostle.learn.learners.counters import (
        equal_repeats,
        sampling_period,
        traced_windows,
        with_instructions,
        with_probes,
    )
    from studies.alignment.paper.method import FittedRidge, RidgeAlignment

    traces = with_probes(with_instructions(traces))
    sets = measured_sets(traced_windows(traces), sampling_period(traces), equal_repeats(traces))
    printed = RidgeAlignment.paper()
    repaired = replace(printed, alignment="section")
    every = folds_of_programs(sets, HELD, folds, seed)
    pairs: list[tuple[tuple[str, ...], tuple[Tested, ...]]] = []
    firsts: list[tuple[Fold, MeasuredSet, dict[str, FittedRidge]]] = []
    for number, fold in enumerate(every):
        fitted = fold_fitter(traces, fold, seed)
        fits: dict[str, FittedRidge] = {}
        for name, method in (("", printed), (REPAIRED, repaired)):
            one_fit = fitted(method)
            assert isinstance(one_fit, FittedRidge)
            fits[name] = one_fit
        one = _tested_set(fold)
        members = tested_members(number, one, fits, Rules(1.0, 1.0, {}), False)
        pairs.append((_names(fold.train), tuple(sorted(members, key=lambda m: m.slot))))
        firsts.append((fold, one, fits))
        progress(number + 1, len(every), float("nan"))
    fold, one, fits = firsts[0]
    learners = {
        how: _learners(fits[name], fold, how, seed)
        for name, how in (("", "printed"), (REPAIRED, "section"))
    }
    selection = fits[""].selection
    assert selection is not None  # no counters were given
    return PaperResults(
        tables=(
            tables.characteristics(traces),
            tables.selected(selection),
            tables.features(selection),
            tables.run_times_of_pairs(pairs),
            tables.errors_per_sample(learners["printed"], "aligned as printed"),
            tables.errors_per_sample(learners["section"], "the alignment repaired"),
        ),
        learners=learners["printed"],
        curves=tuple(curves_of(one, fits[""], False)),
        selection=selection,
        pairs=tuple(pairs),
    )


def _tested_set(fold: Fold) -> MeasuredSet:
    """Two different applications where there are such; the first by name."""
    ended = [one for one in fold.test if all(m.runs for m in one.members)]
    different = [one for one in ended or fold.test if len({m.workload for m in one.members}) > 1]
    return min(different or ended or fold.test, key=lambda one: one.name)


def _names(sets: Sequence[MeasuredSet]) -> tuple[str, ...]:
    return tuple(sorted({m.workload for one in sets for m in one.members}))


def _learners(
    fitted: FittedRidge, fold: Fold, alignment: str, seed: int
) -> dict[str, dict[int, float]]:
    """Figure 2: with what was executed so far as measured."""
    from jostle.learn.learners.counters import aligned_rows
    from studies.alignment.paper.method import laid

    train, test = (
        aligned_rows(windows_of(sets), fitted.solos, **laid(alignment))
        for sets in (fold.train, fold.test)
    )
    return errors_of_learners(train, test, seed)


def write_paper(results: PaperResults, folder: Path, about: str) -> list[Path]:
    """Fill a folder with the figures, as PNG and SVG, and index.html with everything. about: what the traces
    are. Raises MissingExtra without matplotlib."""
    from studies.alignment.figures import draw_found
    from studies.page import write_page

    drawn = draw_found(results.learners, results.curves, results.selection, folder)
    title = "Tables and figures of the alignment paper (MLCAD 2021)"
    write_page(folder, title, about, CAPTIONS, results.tables)
    return drawn
