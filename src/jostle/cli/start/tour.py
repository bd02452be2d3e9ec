"""`jostle tour`: the first answer, on the user's own machine."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._options import Short
from jostle._report import Report
from jostle.cli.console import fit_progress, note, progress_bar
from jostle.errors import NotEnoughRuns
from jostle.tour import TourPlan


@dataclass(frozen=True, kw_only=True)
class TourCommand:
    """Where to, and what is accepted."""

    output: Annotated[Path, "Folder for the dataset and the model.", Short("-o")] = Path(
        "jostle-tour"
    )
    accept_all: Annotated[bool, "Keep windows that others disturbed."] = False


def tour(command: TourCommand, plan: TourPlan) -> Report:
    """Measure this machine, learn from it, and check the answers against what was held out.

    Takes about three minutes. A second tour of the same folder goes on from the first.
    """
    from jostle.measure import Tolerance
    from jostle.tour import check_tour, learn_tour, measure_tour, tour_report

    check_tour()
    output, tolerance = command.output, Tolerance.anything() if command.accept_all else None
    note(
        f"Measuring {len(plan.workloads)} workloads alone and side by side on this machine, for "
        f"about {plan.time_budget_seconds:.0f} s. Leave it alone meanwhile."
    )
    with progress_bar() as progress:
        measured = measure_tour(output, plan, tolerance=tolerance, progress=progress)
    try:
        with fit_progress("learning") as progress:
            result = learn_tour(output, plan, measured, progress=progress, clock=time.perf_counter)
    except NotEnoughRuns as error:
        if measured.contaminated <= measured.ok:
            raise
        windows = measured.contaminated + measured.ok
        disturbed = f"; {measured.contaminated} of {windows} windows were disturbed"
        fix = "Quieten the machine and run the tour again, or take what comes with --accept-all."
        raise NotEnoughRuns(error.what + disturbed, where=error.where, fix=fix) from None
    return tour_report(result, plan, output, _command())


def _command() -> str:
    """How to call this program: by its name where the shell finds it, else by its path from here."""
    import os
    import shutil
    import sys

    return "jostle" if shutil.which("jostle") else os.path.relpath(sys.argv[0])
