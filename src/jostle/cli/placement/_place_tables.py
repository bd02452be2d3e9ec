"""What `jostle place` prints: tables and sentences for people, a document for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle._report import Report, Table, duration, percent

if TYPE_CHECKING:
    from jostle.placement import (
        Assignment,
        BulkScore,
        Ranking,
        Reassigned,
        Requests,
        SafeAnswer,
        SafeAnswers,
        Walltimes,
        WhatIf,
    )

MOST_UNREAD = 20


def safe_report(found: SafeAnswers) -> Report:
    """One answer in detail, or a line for each of several."""
    parts: list[Table | str] = []
    if len(found.answers) == 1:
        parts += _in_detail(found.answers[0])
    else:
        rows = [
            [
                answer.request,
                answer.node,
                "yes" if answer.is_safe else "no",
                _because(answer.reason),
                ", ".join(_hurt(answer)) or "–",
                "; ".join(answer.helps) or "–",
            ]
            for answer in found.answers
        ]
        parts.append(Table(["request", "node", "safe", "why", "hurt", "what would help"], rows))
    parts.append(found.promise)
    return Report(found.to_document(), parts, notes=_unread(found.unread))


def _in_detail(answer: SafeAnswer) -> list[Table | str]:
    beside = [m.name for m in answer.members if not m.is_newcomer]
    where = f"{answer.request} on {answer.node}" + (
        f" beside {', '.join(beside)}" if beside else ""
    )
    yes = "Yes" if answer.is_safe else "No"
    parts: list[Table | str] = [f"{yes}: {where}: {_because(answer.reason)}."]
    rows = [
        [
            member.name,
            "newcomer" if member.is_newcomer else "tenant",
            duration(_or_nan(member.predicted_seconds)),
            duration(_or_infinite(member.bound_seconds)),
            "–" if member.limit_seconds is None else duration(member.limit_seconds),
            {True: "yes", False: "no", None: "no limit"}[member.keeps],
            "–" if member.over_seconds is None else duration(member.over_seconds),
            member.outcome,
        ]
        for member in answer.members
    ]
    if rows:
        heads = ["workload", "", "predicted", "bound", "limit", "keeps it", "over by", "bound is"]
        parts.append(Table(heads, rows, (2, 3, 4, 6)))
    if answer.arrangement:
        parts.append(f"Shared: {answer.arrangement}.")
    parts += [f"What would help: {text}." for text in answer.helps]
    return parts


def _hurt(answer: SafeAnswer) -> list[str]:
    return [
        member.name
        + (f" by {duration(member.over_seconds)}" if member.over_seconds is not None else "")
        for member in answer.hurt
    ]


def rank_report(found: Sequence[Ranking], asked: Requests, by: str, top: int) -> Report:
    """The best nodes of each request, and how many were ruled out for which reason."""
    parts: list[Table | str] = []
    for ranking in found:
        rows = [
            [
                row.node,
                row.platform,
                duration(row.bound_seconds) + (" (predicted)" if row.used_prediction else ""),
                "–" if row.limit_seconds is None else duration(row.limit_seconds),
                f"{row.cost:.4g}",
                "–" if row.growth_ratio is None else percent(row.growth_ratio),
                row.arrangement or "–",
            ]
            for row in ranking.rows(top)
        ]
        name = ranking.request.name
        if rows:
            heads = ["node", "platform", "bound", "limit", "cost", "neighbours grow", "shared"]
            title = f"{name}: {len(ranking)} of {len(ranking.fleet)} nodes, by {by}"
            parts.append(Table(heads, rows, (2, 3, 4, 5), title))
        else:
            parts.append(f"{name} may go to none of {len(ranking.fleet)} nodes.")
        parts += [f"{n} ruled out: {_because(why)}." for why, n in ranking.ruled_out.items()]
        parts.append(ranking.promise)
    unread = _unread_of(asked)
    first = found[0].standard if found else None
    document = {
        "schema": "place_rank/v1",
        "by": by,
        "confidence": first.confidence if first else None,
        "joint": first.joint if first else None,
        "accept": first.accept if first else None,
        "requests": [ranking.to_document(top) for ranking in found],
        "unread": [{"row": row, "status": why} for row, why in unread],
    }
    return Report(document, parts, notes=_unread(unread))


def assign_report(found: Assignment) -> Report:
    """Who goes where, who does not and why, and how far it is from the best."""
    rows = [
        [
            node,
            there[0].platform,
            ", ".join(
                f"{one.request} ({duration(one.bound_seconds)}"
                + (f" of {duration(one.limit_seconds)})" if one.limit_seconds is not None else ")")
                for one in there
            ),
        ]
        for node, there in found.by_node.items()
    ]
    parts: list[Table | str] = [Table(["node", "platform", "requests (bound of limit)"], rows)]
    parts += [f"{node} is shared: {text}." for node, text in found.arrangements.items()]
    asked = len(found.placed) + len(found.unplaced)
    text = f"{len(found.placed)} of {asked} requests placed on {found.nodes_used} nodes"
    if found.is_optimal:
        parts.append(f"{text}: the best there is for {found.goal}.")
    else:
        most = (
            f"{found.worth:g} of a worth of at most {found.worth_at_most:.6g} by the linear program"
        )
        parts.append(f"{text}: {most}, a gap of {percent(found.gap)}, for {found.goal}.")
    reasons = [one.reason for one in found.unplaced]
    for reason in dict.fromkeys(reasons):
        names = [one.request for one in found.unplaced if one.reason == reason]
        shown = ", ".join(names[:MOST_UNREAD]) + (", …" if len(names) > MOST_UNREAD else "")
        parts.append(f"{len(names)} not placed: {_because(reason)}: {shown}.")
    if found.unplaced and found.binding:
        best = found.binding[0]
        parts.append(
            f"What binds: one more node such as {best.node} ({best.platform}) would place "
            f"up to {best.worth:.3g} more."
        )
    parts.append(found.promise)
    return Report(found.to_document(), parts, notes=_unread(found.unread))


def score_report(found: BulkScore) -> Report:
    """How many rows are safe, and why others are not."""
    rows = [[str(n), _because(why)] for why, n in found.reasons.items()]
    parts: list[Table | str] = [
        f"{found.safe} of {found.rows} rows are safe.",
        Table(["rows", "why"], rows, (0,)),
        str(found.output),
        found.promise,
    ]
    return Report(found.to_document(), parts)


def walltime_report(found: Walltimes) -> Report:
    """A line for each request."""
    rows = [
        [
            row.request,
            row.text or "none",
            duration(_or_infinite(row.bound_seconds)),
            row.widest_node or "–",
            f"{row.covered} of {row.considered}",
            "; ".join(f"{n} {_because(why)}" for why, n in row.ruled_out.items()) or "–",
        ]
        for row in found.rows
    ]
    heads = ["request", "ask for", "bound", "longest on", "holds on", "not on"]
    parts: list[Table | str] = [Table(heads, rows, (1, 2)), found.promise]
    return Report(found.to_document(), parts, notes=_unread(found.unread))


def what_if_report(found: WhatIf) -> Report:
    """Tenants for whom something changes, and requests with what they gain or lose."""
    parts: list[Table | str] = []
    tenants = [
        [
            name,
            before.node or "nowhere",
            after.node or "nowhere",
            duration(_or_infinite(before.bound_seconds)) if before.node else "–",
            duration(_or_infinite(after.bound_seconds)) if after.node else "–",
            f"{_kept(before.keeps)} → {_kept(after.keeps)}",
        ]
        for name, before, after in found.tenants
    ]
    if tenants:
        heads = ["tenant", "from", "to", "bound before", "bound after", "keeps its limit"]
        parts.append(Table(heads, tenants, (3, 4)))
    else:
        parts.append("Nothing changes for any tenant.")
    requests = [
        [
            name,
            f"{before.nodes} → {after.nodes}",
            f"{before.best or 'none'} → {after.best or 'none'}",
            duration(_or_infinite(before.bound_seconds)),
            duration(_or_infinite(after.bound_seconds)),
        ]
        for name, before, after in found.requests
    ]
    if requests:
        heads = ["request", "nodes", "best node", "bound before", "bound after"]
        parts.append(Table(heads, requests, (3, 4)))
    parts += [
        f"{name} has no node any more; "
        + (
            f"it may go to {where.best}, one of {where.nodes}."
            if where.best
            else "and it may go to none."
        )
        for name, where in found.homeless
    ]
    parts += [
        f"{one.tenant} does not fit on {one.node}: {_because(one.reason)}."
        for one in found.misplaced
    ]
    parts += [f"{node} takes nobody: {_because(why)}." for node, why in found.unusable]
    before, after = found.tenants_late
    parts.append(f"Tenants not sure to keep their limit: {before} before, {after} after.")
    if found.reassigned is not None:
        parts.append(_reassigned(found.reassigned))
    parts.append(found.promise)
    return Report(found.to_document(), parts, notes=_unread(found.unread))


def _reassigned(found: Reassigned) -> str:
    text = (
        f"Assigned at once, for {found.goal}: {found.placed[0]} placed before, {found.placed[1]} after, "
        f"at a cost of {found.cost[0]:.6g} and {found.cost[1]:.6g}"
    )
    for word, names in (("gained a place", found.gained), ("lost theirs", found.lost)):
        if names:
            more = ", …" if len(names) > MOST_UNREAD else ""
            text += f"; {word}: {', '.join(names[:MOST_UNREAD])}{more}"
    return f"{text}."


def _because(reason: str) -> str:
    from jostle.placement import REASONS

    return REASONS[reason]


def _kept(keeps: bool | None) -> str:
    return {True: "yes", False: "no", None: "–"}[keeps]


def _unread_of(asked: Requests) -> list[tuple[int, str]]:
    rows = zip(asked.numbers, asked.rows, asked.status, strict=True)
    return [(number, status) for number, row, status in rows if row is None]


def _unread(rows: Sequence[tuple[int, str]]) -> list[str]:
    notes = [f"not read: row {row}: {why}" for row, why in rows[:MOST_UNREAD]]
    more = len(rows) - MOST_UNREAD
    return notes + ([f"and {more} more rows"] if more > 0 else [])


def _or_nan(value: Any) -> float:
    return float("nan") if value is None else value


def _or_infinite(value: Any) -> float:
    return float("inf") if value is None else value
