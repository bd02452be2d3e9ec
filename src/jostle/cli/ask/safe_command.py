"""`jostle safe`: how many batch instances fit beside a service on one accelerator."""

from __future__ import annotations

from jostle._base.report import Report
from jostle.cli.console import fit_progress, note
from jostle.operations import DeviceQuestion, FitQuestion, LoadQuestion


def safe(question: FitQuestion, hardware: DeviceQuestion, load: LoadQuestion) -> Report:
    with fit_progress("simulating") as progress:
        return question.answer(hardware, load, progress, note)


safe.__doc__ = FitQuestion.__doc__
