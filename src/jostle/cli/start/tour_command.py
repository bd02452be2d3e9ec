"""`jostle tour`: the first answer, on the user's own machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._base.option_fields import Short
from jostle._base.report import Report
from jostle.cli.console import fit_progress, note, progress_bar
from jostle.operations.tour import TourPlan


@dataclass(frozen=True, kw_only=True)
class TourCommand:
    """Options of `jostle tour`: the folder to write to."""

    output: Annotated[Path, "Folder for the dataset and the model.", Short("-o")] = Path(
        "jostle-tour"
    )


def tour(command: TourCommand, plan: TourPlan) -> Report:
    """Measure this machine, learn from it, and check the answers against what was held out.

    Takes about three minutes. A second tour of the same folder goes on from the first.
    """
    from jostle.operations.tour import check_tour, learn_tour, measure_tour, tour_report

    check_tour()
    output = command.output
    note(
        f"Measuring {len(plan.workloads)} workloads alone and side by side on this machine, for "
        f"about {plan.time_budget_seconds:.0f} s. What other programs take meanwhile is taken off."
    )
    with progress_bar() as progress:
        measured = measure_tour(output, plan, progress=progress)
    with fit_progress("learning") as progress:
        result = learn_tour(output, plan, measured, progress=progress, clock=time.perf_counter)
    return tour_report(result, plan, output, _command())


def _command() -> str:
    """Return how to call this program: by its name if the shell finds it, else by its path from here."""
    import os
    import shutil
    import sys

    return "jostle" if shutil.which("jostle") else os.path.relpath(sys.argv[0])
