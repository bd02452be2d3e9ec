"""The runs that `jostle suggest` named, as sets of a campaign on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jostle.cli.console import note

COLUMNS = ("workload", "platform", "corunners")


def suggested_sets(
    path: Path, engines: Sequence[str], device: str, workloads: Sequence[str]
) -> list[tuple[str, tuple[str, ...]]]:
    """(engine, members) of each row of the table that can be measured here, in its order; says on stderr what
    cannot.

    engines: those that work here. device: what this machine is called in datasets. workloads: names that can
    be measured. Raises UnreadableFile, BadData, UsageError where no row is of this machine.
    """
    from jostle._tables import cells, read_rows
    from jostle.errors import BadData, UsageError
    from jostle.measure import platform_name

    here = {platform_name(engine, device): engine for engine in engines}
    rows = read_rows(path, COLUMNS)
    found: list[tuple[str, tuple[str, ...]]] = []
    elsewhere: set[str | None] = set()
    unknown: set[str | None] = set()
    for number, row in zip(rows.numbers, rows.rows, strict=True):
        try:
            workload = cells.text(row.get("workload"), "workload")
            platform = cells.text(row.get("platform"), "platform")
            members = (workload, *cells.entries(row.get("corunners"), "corunners"))
        except ValueError as error:
            raise BadData(str(error), where=f"{rows.where}, row {number}") from None
        if platform not in here:
            elsewhere.add(platform)
        elif missing := set(members) - set(workloads):
            unknown |= missing
        else:
            found.append((here[platform], tuple(str(name) for name in members)))
    for names, what in (
        (elsewhere, f"platforms not of this machine ({', '.join(here)})"),
        (unknown, "workloads not of this campaign"),
    ):
        if names:
            note(f"left out, {what}: {', '.join(sorted(map(str, names)))}")
    if not found:
        raise UsageError(
            "no suggested run can be measured here",
            where=str(path),
            fix=f"Suggest runs on {' or '.join(here)}, and name the workloads that are meant.",
        )
    return found
