"""`python -m studies mechanisms`: the default without one of its mechanisms at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar
from unittest.mock import patch

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Report, Table
from studies.fields import FirstSeed, Seeds, listed

LEARN = Path(__file__).resolve().parents[2] / "src" / "jostle" / "learn"
FULL = "all of it"
CELLS = (
    "gavel-oracle:everywhere:0.25,gavel-oracle:new-names:0.8,magus13-runs:everywhere:0.2,"
    "strongest:everywhere:0.2,jobs:pairs-to-more:0.8,threshold:per-platform:0.1,"
    "saturating:pairs-to-more:0.8,shared-bus:everywhere:0.2,nothing:everywhere:0.2"
)


@dataclass(frozen=True)
class Mechanism:
    """files: under `learn`, that would go with it. off: makes the patches without it."""

    files: tuple[str, ...]
    off: Callable[[], list[Any]]

    @property
    def lines(self) -> int:
        return sum(len((LEARN / name).read_text().splitlines()) for name in self.files)

    @contextmanager
    def without(self) -> Iterator[None]:
        with ExitStack() as stack:
            for each in self.off():
                stack.enter_context(each)
            yield


def _in(module: str, **values: Any) -> Callable[[], list[Any]]:
    """Names of a module of `learn` stand for something else."""
    return lambda: [patch(f"jostle.learn.{module}.{name}", value) for name, value in values.items()]


def _without(*starts: str) -> Callable[[], list[Any]]:
    """No base learner gives an answer whose label begins so."""
    from jostle.learn import learner_named, learner_names

    def fewer(old: Any) -> Callable[[Any, Any], tuple[str, ...]]:
        return lambda self, runs: tuple(x for x in old(self, runs) if not x.startswith(starts))

    known = [learner_named(name) for name in learner_names()]
    return lambda: [patch.object(cls, "labels", fewer(cls.labels)) for cls in known]


def _mechanisms() -> dict[str, Mechanism]:
    from jostle.learn import SetResiduals, shrunk_weights

    def by_error(weight: Any, answers: Any, log: Any, units: int, prior: Any = 1.0) -> np.ndarray:
        return shrunk_weights(weight, answers, log, 0, prior)

    def forgotten(*_: Any) -> SetResiduals:
        return SetResiduals(np.zeros(0, np.uint64), np.zeros(0), *np.zeros((2, 1)))

    product = "learners/latent_factors/_product_"
    return {
        FULL: Mechanism((), list),
        "medians of a platform": Mechanism((), _without("level")),
        "trees on features": Mechanism(("learners/bags/_bag_learner.py",), _without("trees")),
        "product forms": Mechanism(
            (f"{product}form.py", f"{product}equation.py"), _without("product")
        ),
        "product forms of seconds": Mechanism((), _without("product of seconds", "product alike")),
        "effects of seconds": Mechanism((), _without("effects of seconds", "level of seconds")),
        "network": Mechanism((), _without("network")),
        "network of runtimes": Mechanism((), _without("network of runtimes")),
        "weights by selection": Mechanism(
            (), _in("ensemble._shrunk_weights", shrunk_weights=by_error)
        ),
        "residuals of sets": Mechanism(
            ("ensemble/_set_residuals.py",),
            _in("ensemble._fit_ensemble", fit_set_residuals=forgotten),
        ),
        "turns of pairs": Mechanism(
            (), _in("ensemble._degree_extrapolation", _gain=lambda _, on: np.ones(on.platforms))
        ),
    }


@dataclass(frozen=True)
class MechanismsStudy:
    """What each mechanism of the default buys: the default is fitted without one at a time, by the calls that
    a user makes, and compared with itself on rows left out.

    `error` and `margin` are geometric means over cells of what they are without it over what they are with
    it; above 1 it helps. `worst cell` is where it helps most.
    """

    cells: Annotated[str, "DATA:WAY:SHARE, separated by commas; ways as in `one_model`."] = CELLS
    only: Annotated[str | None, "Only these mechanisms, separated by commas."] = None
    seeds: Seeds = 1
    seed: FirstSeed = 0

    name: ClassVar[str] = "mechanisms"

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, UnknownName, and what reading and fitting raise."""
        from studies.contract import document

        known = _mechanisms()
        names = [FULL, *(listed(self.only) or [name for name in known if name != FULL])]
        found = list(self._measured({name: known[name] for name in names}, progress))
        rows = [_row(name, known[name].lines, found) for name in names[1:]]
        columns = ["without", "lines", "error", "worst cell", "its error", "margin", "covered"]
        document_ = document(self, {"cells": self.cells}, self.seed, cells=found)
        return Report(document_, [Table(columns, rows)])

    def _measured(
        self, mechanisms: dict[str, Mechanism], progress: Progress
    ) -> Iterator[dict[str, Any]]:
        from studies.one_model.campaigns import read_campaign
        from studies.one_model.measure import DEFAULT, Examined, FitCell
        from studies.one_model.splits import SetsLeftOut

        seeds = range(self.seed, self.seed + self.seeds)
        draws = [(cell, seed) for cell in listed(self.cells) or [] for seed in seeds]
        for at, (cell, seed) in enumerate(draws):
            data, way, share = cell.split(":")
            draw = FitCell(data, SetsLeftOut(way, float(share)), seed)
            examined = Examined.of(draw, read_campaign(data, seed))
            if examined is None:
                continue
            for number, (name, mechanism) in enumerate(mechanisms.items()):
                done, total = (n * len(mechanisms) for n in (at, len(draws)))
                progress(done + number, total, float("nan"))
                with mechanism.without():
                    measured = examined.measure(DEFAULT)
                yield {"cell": f"{cell}:{seed}", "without": name, **measured}


def _row(name: str, lines: int, found: list[dict[str, Any]]) -> list[str]:
    """One mechanism over all cells."""
    of = {(one["cell"], one["without"]): one for one in found}
    cells = [cell for cell, without in of if without == FULL]
    ratios = {
        key: np.array([of[c, name][key] / max(of[c, FULL][key], 1e-9) for c in cells])
        for key in ("error", "margin")
    }
    mean = {key: float(np.exp(np.nanmean(np.log(r)))) for key, r in ratios.items()}
    worst = int(np.argmax(ratios["error"]))
    covered = float(np.mean([of[c, name]["coverage"] for c in cells]))
    return [
        *(name, str(lines or ""), f"{mean['error']:.3f}", cells[worst]),
        *(f"{ratios['error'][worst]:.3f}", f"{mean['margin']:.3f}", f"{covered:.3f}"),
    ]
