"""How long workloads take beside each other, from counter traces of each alone.

This file is the room's whole public face. Fitting needs scikit-learn, answering only NumPy.
Source: Saeed et al., "Learning based memory interference prediction for co-running applications on
multi-cores", MLCAD 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._draw import draw_selection
    from ._fit import profile_runs
    from ._fitted import FittedAlignment
    from ._roll import Roll, roll
    from ._settings import Alignment
    from .learning._rows import Rows, rows_of
    from .learning._select import Selection, select_counters
    from .solo._counters import Profile, counts_from_readings, profile_of
    from .solo._names import PAPER_EVENTS
    from .solo._quiet import quiet_profile, quiet_seconds
    from .solo._samples import ALIGNMENTS, aligned

_HOMES = {
    "ALIGNMENTS": "solo._samples",
    "Alignment": "_settings",
    "FittedAlignment": "_fitted",
    "PAPER_EVENTS": "solo._names",
    "Profile": "solo._counters",
    "Roll": "_roll",
    "Rows": "learning._rows",
    "Selection": "learning._select",
    "aligned": "solo._samples",
    "counts_from_readings": "solo._counters",
    "draw_selection": "_draw",
    "profile_of": "solo._counters",
    "profile_runs": "_fit",
    "quiet_profile": "solo._quiet",
    "quiet_seconds": "solo._quiet",
    "roll": "_roll",
    "rows_of": "learning._rows",
    "select_counters": "learning._select",
}

__all__ = [
    "ALIGNMENTS",
    "PAPER_EVENTS",
    "Alignment",
    "FittedAlignment",
    "Profile",
    "Roll",
    "Rows",
    "Selection",
    "aligned",
    "counts_from_readings",
    "draw_selection",
    "profile_of",
    "profile_runs",
    "quiet_profile",
    "quiet_seconds",
    "roll",
    "rows_of",
    "select_counters",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
