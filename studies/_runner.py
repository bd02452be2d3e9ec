"""A study as a table: what its rows are, what one draw measures of a row, and how a column is written.

`run` draws every row for every seed, and gives means over draws: a table for people, and for programs a
metric for every cell, COLUMN_ROW. Each row goes to standard error as soon as it is measured.
"""

from __future__ import annotations

import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from jostle.extend import Report, Table
from jostle.progress import Progress, no_progress
from studies.contract import document
from studies.data import on_one_core

Measures = Mapping[str, Any]  # numbers, or several of which the first is the figure


@dataclass(frozen=True)
class TableStudy(ABC):
    """places: headings of what a row is called by. columns: how each measure is written, by its heading; one
    that is not there is not shown."""

    seeds: Annotated[int, "Draws, each with a seed one higher."] = 1
    seed: Annotated[int, "Of the first draw."] = 0

    name: ClassVar[str]
    places: ClassVar[Sequence[str]]
    columns: ClassVar[Mapping[str, str]]
    has_total: ClassVar[bool] = False

    @abstractmethod
    def rows(self) -> Iterable[tuple[Any, ...]]:
        """What each row is called by."""

    @abstractmethod
    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        """What one draw measures of a row, by heading."""

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        """Of a row: means over its draws, without those where a draw has none (NaN)."""
        return {name: mean_of([one[name] for one in draws]) for name in draws[0]}

    def closing(self, measured: Sequence[Measures]) -> Mapping[str, float]:
        """Metrics of the whole table, shown below it."""
        return {}

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises what reading and fitting raise."""
        with on_one_core():
            return self._run()

    def _run(self) -> Report:
        lines, measured, metrics, every = [], [], {}, []
        for row in (*self.rows(), *([("all",)] if self.has_total else [])):
            is_total = row == ("all",) and self.has_total
            seeds = range(self.seed, self.seed + self.seeds)
            draws = every if is_total else [self.draw(row, seed) for seed in seeds]
            m = self.of_draws(draws)
            every = [*every, *draws]
            if not is_total:
                measured.append(m)
            metrics |= {metric(name, *row): first_of(value) for name, value in m.items()}
            lines.append([*map(str, row), *(written(m[name], f) for name, f in self.shown(m))])
            print(*lines[-1], sep=" | ", file=sys.stderr, flush=True)
        heads = [*self.places, *(name for name, _ in self.shown(measured[0]))] if measured else []
        closing = self.closing(measured)
        settings = {name: value for name, value in vars(self).items() if name != "seed"}
        content = document(self, {}, self.seed, settings=settings, metrics={**metrics, **closing})
        table = Table(heads, lines, range(len(self.places), len(heads)))
        return Report(
            content, [table, *(f"{name}: {value:.3f}" for name, value in closing.items())]
        )

    def shown(self, measures: Measures) -> list[tuple[str, str]]:
        """Headings with their formats, of those measured."""
        return [(name, form) for name, form in self.columns.items() if name in measures]


def metric(*parts: Any) -> str:
    """The name of a cell: its parts in small letters, digits and underscores."""
    return re.sub(r"[^a-z0-9]+", "_", " ".join(map(str, parts)).lower()).strip("_")


def first_of(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) else value


def written(value: Any, form: str) -> str:
    if isinstance(value, tuple):
        return form.format(*value)
    return "–" if isinstance(value, float) and math.isnan(value) else format(value, form)


def mean_of(values: Sequence[float]) -> float:
    """Without those that are NaN; NaN of none."""
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan


def error_of_mean(values: Sequence[float]) -> float:
    """The standard error of their mean, of those that are finite; NaN of fewer than two."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.std(known, ddof=1) / math.sqrt(len(known))) if len(known) > 1 else math.nan


def over_best(ratios: Sequence[float]) -> dict[str, float]:
    """Of errors over that of the best rule."""
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {"over_best_rule_geometric_mean_ratio": mean, "over_best_rule_worst_ratio": max(ratios)}


def numbers(text: str) -> list[float]:
    """What was separated by commas."""
    return [float(part) for part in text.split(",") if part]
