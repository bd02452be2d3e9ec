"""`jostle safe`: how many batch instances fit beside a service on one accelerator."""

from __future__ import annotations

from jostle._report import Report
from jostle.answers import DeviceQuestion, FitQuestion, LoadQuestion
from jostle.cli.console import fit_progress, note


def safe(question: FitQuestion, hardware: DeviceQuestion, load: LoadQuestion) -> Report:
    with fit_progress("simulating") as progress:
        return question.answer(hardware, load, progress, note)


safe.__doc__ = FitQuestion.__doc__
