"""`python -m studies papers NAME`: what a paper prints, remade, and Jostle's default on the same split."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, ClassVar, Literal

from jostle._base.option_fields import Positional
from jostle._base.progress import Progress
from jostle._base.report import Report
from studies.contract import report_of


@dataclass(frozen=True)
class PapersStudy:
    """Remake the headline table of a paper, as printed, by its algorithm with its slips repaired, by simple
    rules, and by Jostle's default on the same split.

    Published data are found in $JOSTLE_DATA. `ablations` are the figures 4, 5 and 10 of factorization.
    """

    name: ClassVar[str] = "papers"

    paper: Annotated[
        Literal["accelerator", "alignment", "bag", "bridge", "factorization", "ablations"],
        "The paper, by what its method is called here.",
        Positional(),
    ]
    seed: Annotated[int, "Of splits, fits and what is simulated."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Raises what reading and fitting raise; ends the program with a sentence where data are absent."""
        tables = import_module(f"studies.papers.{self.paper}").tables(self.seed, progress)
        return report_of(self, self.paper, self.seed, tables)
