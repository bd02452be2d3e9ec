"""`jostle audit`: does a campaign's dataset tell the truth, and would its collector have noticed others?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._options import Positional
from jostle._report import Report
from jostle.answers import audit_report
from jostle.cli.console import note
from jostle.measure import AuditOptions


@dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """What is checked."""

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]


def audit(command: AuditCommand, options: AuditOptions) -> Report:
    """Check a campaign: its windows against each other, and the collector on this machine, with kernels of
    the dataset, against a plain loop, a second counter of instructions, and disturbers of known strength.

    Exit code 1 where a check fails. Takes some minutes on a machine that should be quiet.
    """
    from jostle.measure import audit as run

    return audit_report(run(command.dataset, options, progress=lambda text: note(f"{text} …")))
