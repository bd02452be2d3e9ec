"""An audit as a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle._report import Report, Table, duration, percent

if TYPE_CHECKING:
    from jostle.measure import AuditReport


def audit_report(audit: AuditReport) -> Report:
    """Everything that was checked; ends with 1 where a check fails."""
    parts: list[Table | str] = [
        f"{audit.dataset}: {audit.rows} runs, {audit.contaminated} contaminated; "
        f"audited with engine {audit.engine}",
        *(f"- {text}" for text in audit.contradictions[:5]),
    ]
    if len(audit.contradictions) > 5:
        parts.append(f"- and {len(audit.contradictions) - 5} more")
    for title, items, cells in (
        ("A repetition alone", audit.times, _TIMES),
        ("Instructions of a repetition", audit.counts, _COUNTS),
        ("Overlap, from the beats", audit.overlaps, _OVERLAPS),
        ("Disturbers of known strength", audit.detections, _DETECTIONS),
    ):
        if items:
            right = [n for n, name in enumerate(cells) if name in _NUMBERS]
            parts += ["", Table.of(items, cells, right, title)]
    parts.append("")
    parts += [f"{'yes' if holds else 'NO '}  {what}" for what, holds in audit.checks().items()]
    notes = [f"note: {text}" for text in audit.notes]
    return Report(audit.to_json(), parts, notes=notes, exit_code=int(not audit.passed))


def _or_nothing(value: Any, text: Callable[[Any], str] = str) -> str:
    return "" if value is None else text(value)


_Cells = dict[str, Callable[[Any], str]]
_TIMES: _Cells = {
    "kernel": lambda one: one.workload,
    "plain loop": lambda one: duration(one.direct_seconds),
    "collector": lambda one: _or_nothing(one.collected_seconds, duration),
    "dataset": lambda one: _or_nothing(one.dataset_seconds, duration),
    "collector off by": lambda one: _or_nothing(one.error_ratio, percent),
}
_COUNTS: _Cells = {
    "kernel": lambda one: one.workload,
    "by rewriting": lambda one: str(one.rewritten),
    "by fuel": lambda one: str(one.fuel),
    "dataset": lambda one: _or_nothing(one.dataset),
    "": lambda one: "alike" if one.agrees else "DIFFER",
}
_OVERLAPS: _Cells = {
    "set": lambda one: one.set_name,
    "all there": lambda one: f"{one.common_ratio:.1%}",
    "longest beat": lambda one: f"{one.longest_beat_ratio:.1%}",
    "starts apart": lambda one: duration(one.spread_seconds),
    "counts": lambda one: "yes" if one.counts else "no: late",
}
_DETECTIONS: _Cells = {
    "member": lambda one: one.member,
    "disturber": lambda one: f"{one.share:.0%} of a core" if one.share else "nobody",
    "flagged": lambda one: f"{one.flagged} of {one.windows}",
    "rate, 95 %": lambda one: "{:.0%} to {:.0%}".format(*one.interval),
    "others held": lambda one: "?" if one.held_cores is None else f"{one.held_cores:.0%}",
}
# Headings of what is aligned to the right.
_NUMBERS = {"plain loop", "collector", "dataset", "collector off by", "by rewriting", "by fuel"}
_NUMBERS |= {"all there", "longest beat", "starts apart", "flagged", "rate, 95 %", "others held"}
