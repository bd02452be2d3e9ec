"""Measured runtimes: what ran where, beside what, and how long it took.

This file is the room's whole public face. Names load on first use, so that importing the room costs
nothing and :class:`Colocations` never needs more than NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._adding import add_runs
    from ._colocations import Colocations
    from ._dataset import Dataset, read_runs
    from ._features import merge_features
    from ._gavel import import_gavel
    from ._magus import import_magus
    from ._origins import Origin
    from ._pairs import import_pairs
    from ._pitot import import_pitot
    from ._runs import Runs
    from ._solo import all_names, solo_medians
    from ._splits import leave_out_platform, leave_out_workload, split_rows
    from ._stored import StoredPart, StoredRuns
    from ._summary import RunsSummary, summarise
    from ._table import Imported, import_table

_HOMES = {
    "Colocations": "_colocations",
    "Dataset": "_dataset",
    "Imported": "_table",
    "Origin": "_origins",
    "Runs": "_runs",
    "RunsSummary": "_summary",
    "StoredPart": "_stored",
    "StoredRuns": "_stored",
    "add_runs": "_adding",
    "all_names": "_solo",
    "import_gavel": "_gavel",
    "import_magus": "_magus",
    "import_pairs": "_pairs",
    "import_pitot": "_pitot",
    "import_table": "_table",
    "leave_out_platform": "_splits",
    "leave_out_workload": "_splits",
    "merge_features": "_features",
    "read_runs": "_dataset",
    "solo_medians": "_solo",
    "split_rows": "_splits",
    "summarise": "_summary",
}

__all__ = [
    "Colocations",
    "Dataset",
    "Imported",
    "Origin",
    "Runs",
    "RunsSummary",
    "StoredPart",
    "StoredRuns",
    "add_runs",
    "all_names",
    "import_gavel",
    "import_magus",
    "import_pairs",
    "import_pitot",
    "import_table",
    "leave_out_platform",
    "leave_out_workload",
    "merge_features",
    "read_runs",
    "solo_medians",
    "split_rows",
    "summarise",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
