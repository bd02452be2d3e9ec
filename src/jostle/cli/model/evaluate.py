"""`jostle evaluate NAME`: one command per installed study, made from the options of its class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jostle._report import Report
from jostle.cli.console import fit_progress, group_of, note, registered_commands
from jostle.evaluate import Announced, Study, study_named, study_names


def _run(study: Study) -> Report:
    if isinstance(study, Announced) and (first := study.announced()):
        note(first)
    with fit_progress(study.name) as progress:
        return study.run(progress=progress)


def study_commands(
    names: Callable[[], Sequence[str]], named: Callable[[str], type], text: str
) -> Any:
    """A group of commands, one per study; text: its help."""
    return group_of(registered_commands(names, named, _run), text)


evaluate = study_commands(study_names, study_named, "Fit on a part of a dataset, test on the rest.")
