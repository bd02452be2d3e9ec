"""Runs that `Model.suggest` named, as sets of a campaign on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jostle.collect.host._facts import chosen_cores, device_name, platform_name
from jostle.collect.slots._available import available_engines
from jostle.collect.workloads._workloads import find_workloads
from jostle.data import read_rows
from jostle.data.tables import cells
from jostle.errors import BadData, UsageError

COLUMNS = ("workload", "platform", "corunners")


def suggested_settings(
    path: Path, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return (settings, remarks): the arguments of a Campaign of the table's runs that can be measured here,
    once each and nothing else, and what cannot.

    path: a table with COLUMNS. settings: arguments of a Campaign, of which workloads, engines, cores and
    device limit what is measured. Raises UnreadableFile, BadData, UsageError where no row is of this machine.
    """
    members = find_workloads(settings.get("workloads"))
    known = {one.name for one in members}
    device = settings.get("device") or device_name(chosen_cores(settings.get("cores")))
    here = {
        platform_name(engine, device): engine
        for engine in settings.get("engines") or available_engines()
    }
    rows = read_rows(path, COLUMNS)
    sets: list[tuple[str, tuple[str, ...]]] = []
    elsewhere: set[str] = set()
    unknown: set[str] = set()
    for number, row in zip(rows.numbers, rows.rows, strict=True):
        try:
            workload = cells.text(row.get("workload"), "workload")
            platform = str(cells.text(row.get("platform"), "platform"))
            names = (workload, *cells.entries(row.get("corunners"), "corunners"))
        except ValueError as error:
            raise BadData(str(error), where=f"{rows.where}, row {number}") from None
        if platform not in here:
            elsewhere.add(platform)
        elif missing := {str(name) for name in names} - known:
            unknown |= missing
        else:
            sets.append((here[platform], tuple(str(name) for name in names)))
    if not sets:
        raise UsageError(
            "no suggested run can be measured here",
            where=str(path),
            fix=f"Suggest runs on {' or '.join(here)}, and name the workloads that are meant.",
        )
    left_out = {
        f"platforms not of this machine ({', '.join(here)})": elsewhere,
        "workloads not of this campaign": unknown,
    }
    needed = {name for _, names in sets for name in names}
    return {
        **settings,
        "workloads": [one for one in members if one.name in needed],
        "engines": list(dict.fromkeys(engine for engine, _ in sets)),
        "solo_repeats": 0,
        "sets": 0,
        "chosen": sets,
    }, tuple(
        f"left out, {what}: {', '.join(sorted(names))}" for what, names in left_out.items() if names
    )
