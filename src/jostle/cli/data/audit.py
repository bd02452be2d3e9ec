"""`jostle audit`: does a campaign's dataset tell the truth, and would its collector have noticed others?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from jostle._options import Positional
from jostle._report import Report, Table, duration, percent
from jostle.cli.console import note
from jostle.measure import AuditOptions, AuditReport


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

    found = run(command.dataset, options, progress=lambda text: note(f"{text} …"))
    notes = [f"note: {text}" for text in found.notes]
    return Report(found.to_json(), _parts(found), notes=notes, exit_code=int(not found.passed))


def _parts(found: AuditReport) -> list[Table | str]:
    parts: list[Table | str] = [
        f"{found.dataset}: {found.rows} runs, {found.contaminated} contaminated; "
        f"audited with engine {found.engine}",
        *(f"- {text}" for text in found.contradictions[:5]),
    ]
    if len(found.contradictions) > 5:
        parts.append(f"- and {len(found.contradictions) - 5} more")
    for title, rows, cells in (
        ("A repetition alone", found.times, _TIMES),
        ("Instructions of a repetition", found.counts, _COUNTS),
        ("Overlap, from the beats", found.overlaps, _OVERLAPS),
        ("Disturbers of known strength", found.detections, _DETECTIONS),
    ):
        if rows:
            parts += ["", _table(title, rows, cells)]
    checks = found.checks().items()
    return [*parts, "", *(f"{'yes' if holds else 'NO '}  {what}" for what, holds in checks)]


def _or_nothing(value: Any, text: Callable[[Any], str] = str) -> str:
    return "" if value is None else text(value)


# Of each table: heading and cell, the numbers of the columns that are aligned to the right.
_Cells = tuple[dict[str, Callable[[Any], str]], Sequence[int]]
_TIMES: _Cells = (
    {
        "kernel": lambda one: one.workload,
        "plain loop": lambda one: duration(one.direct_seconds),
        "collector": lambda one: _or_nothing(one.collected_seconds, duration),
        "dataset": lambda one: _or_nothing(one.dataset_seconds, duration),
        "collector off by": lambda one: _or_nothing(one.error_ratio, percent),
    },
    (1, 2, 3, 4),
)
_COUNTS: _Cells = (
    {
        "kernel": lambda one: one.workload,
        "by rewriting": lambda one: str(one.rewritten),
        "by fuel": lambda one: str(one.fuel),
        "dataset": lambda one: _or_nothing(one.dataset),
        "": lambda one: "alike" if one.agrees else "DIFFER",
    },
    (1, 2, 3),
)
_OVERLAPS: _Cells = (
    {
        "set": lambda one: one.set_name,
        "all there": lambda one: f"{one.common_ratio:.1%}",
        "longest beat": lambda one: f"{one.longest_beat_ratio:.1%}",
        "starts apart": lambda one: duration(one.spread_seconds),
        "counts": lambda one: "yes" if one.counts else "no: late",
    },
    (1, 2, 3),
)
_DETECTIONS: _Cells = (
    {
        "member": lambda one: one.member,
        "disturber": lambda one: f"{one.share:.0%} of a core" if one.share else "nobody",
        "flagged": lambda one: f"{one.flagged} of {one.windows}",
        "rate, 95 %": lambda one: "{:.0%} to {:.0%}".format(*one.interval),
        "others held": lambda one: "?" if one.held_cores is None else f"{one.held_cores:.0%}",
    },
    (2, 3, 4),
)


def _table(title: str, rows: Sequence[Any], cells: _Cells) -> Table:
    columns, right = cells
    body = [[cell(one) for cell in columns.values()] for one in rows]
    return Table(list(columns), body, right, title)
