"""Which sets of several services and batch jobs may share a device, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.report import Report, Table, duration, finite
from jostle.operations.gpu_sharing._gpu_simulation import no_bounds, time_text

if TYPE_CHECKING:
    from jostle.gpu import Application, MemberTime, SharingSets, TenantSet, Wish

MOST_SHOWN = 20  # sets that do not fit
_USED = ("name", "workload", "deadline_seconds", "slowdown", "solo_seconds", "memory_bytes")
_ALSO_USED = ("rate_per_second", "statistic", "pes_ratio")
_WORDS = {"within": "yes", "undecided": "too close to tell", "over": "no"}


def read_wishes(path: Path, applications: Mapping[str, Application]) -> tuple[list[Wish], str]:
    """Read a table of requests. Returns (its tenants, in a sentence which columns are not used here; empty
    for none). Raises BadData for a row that cannot be read, UnknownName for a workload without a profile."""
    from jostle.errors import BadData, require_known
    from jostle.placement import Requests, wish_of

    requests = Requests.read(path)
    for row, status, number in zip(requests.rows, requests.status, requests.numbers, strict=True):
        if row is None:
            raise BadData(f"row {number}: {status}", where=str(path))
        require_known("workload", row.workload, applications, where=str(path))
    if not requests.good:
        raise BadData("no tenants", where=str(path), fix="One on a row, in the column workload.")
    plain = dict.fromkeys((*_USED, *_ALSO_USED, "confidence"))
    unused = {
        name
        for row in requests.good
        for name, value in vars(row).items()
        if name not in plain and value not in ((), None) and (name, value) != ("worth", 1.0)
    }
    unused |= set(map(str, requests.ignored))
    remark = f"not used here: {', '.join(sorted(unused))}" if unused else ""
    return [wish_of(row, applications[row.workload]) for row in requests.good], remark


def sets_report(sets: SharingSets, modes: Sequence[str], notes: list[str]) -> Report:
    """Report which tenants fit beside which, and how; ends with 0 if all fit together."""
    alone = len(sets.alone) == 1 and sets.alone[0].verdict == "within"
    best = sets.fitting[0] if sets.fitting else sets.alone[0]
    bounds = [one.bound_seconds for held in (*sets.fitting, *sets.others) for one in held.times]
    measured = best.is_bounded is not None
    safe = (sets.all_fit or alone) and best.is_bounded is not False
    text = f"{', '.join(modes)}; {sets.simulated} simulations"
    if sets.all_fit or alone:
        parts: list[Table | str] = [f"All fit: {best.shared} ({text})."]
    elif sets.fitting:
        names = ", ".join(sets.fitting[0].members)
        parts = [f"Not all fit; the most that do: {names}, {sets.fitting[0].shared} ({text})."]
    else:
        parts = [f"No two of them fit together ({text})."]
    if best.is_bounded is False:
        parts.append("That is what is predicted: no bound holds it, see the column bound.")
    elif best.is_bounded != best.is_guaranteed:
        parts.append(
            "No run was measured at such rates: bounds are simulated as if each query took its own."
        )
    parts.append(_table(sets.alone, "alone"))
    if sets.fitting:
        bounded = "" if best.is_bounded is None else " that bounds hold"
        parts.append(_table(sets.fitting, f"fit together, and in no larger set{bounded}"))
    if sets.others:
        title = "do not fit together, the closest way"
        if len(sets.others) > MOST_SHOWN:
            title += f", {MOST_SHOWN} of {len(sets.others)}"
        parts.append(_table(sets.others[:MOST_SHOWN], title))
    found = [*sets.alone, *sets.fitting, *sets.others[:MOST_SHOWN]]
    queues = dict.fromkeys(
        f"{', '.join(one.members)}: {time.remark}."
        for one in found
        for time in one.times
        if time.remark
    )
    parts += [*queues, *no_bounds(time for one in found for time in one.times)]
    document = {
        "schema": "safe_sets/v2",
        "safe": safe,
        "modes": list(modes),
        "simulated": sets.simulated,
        "alone": [_set(one) for one in sets.alone],
        "fitting": [_set(one) for one in sets.fitting],
        "others": [_set(one) for one in sets.others],
        "notes": notes,
    }
    remarks = [f"Note: {note}." for note in notes]
    code = 3 if measured and not any(map(isfinite, bounds)) else 1
    return Report(document, parts, notes=remarks, exit_code=0 if safe else code)


def _table(sets: Sequence[TenantSet], title: str) -> Table:
    rows = []
    for one in sets:
        first = [", ".join(one.members), one.shared, _WORDS[one.verdict]]
        for place, one_time in enumerate(one.times):
            rows.append([*(first if not place else ["", "", ""]), *_line(one_time)])
        if not one.times:
            rows.append([*first, "", "", "", "", ""])
    heads = ["set", "shared", "fits", "member", "time", "between", "limit", "bound"]
    if not any(time.outcome for one in sets for time in one.times):
        heads, rows = heads[:-1], [row[: len(heads) - 1] for row in rows]
    return Table(heads, rows, title)


def _line(one: MemberTime) -> list[str]:
    between = ""
    if one.low_seconds == one.low_seconds:
        between = f"{time_text(one.low_seconds)} to {time_text(one.high_seconds)}"
    limit = "–" if one.limit_seconds == float("inf") else duration(one.limit_seconds)
    mark = "" if one.verdict == "within" else f" ({_WORDS[one.verdict]})"
    value = f"{one.statistic} {time_text(one.seconds)}"
    bound = duration(one.bound_seconds) if one.bound_seconds < float("inf") else "none"
    return [one.name + mark, value, between, limit, bound]


def _set(one: TenantSet) -> dict[str, Any]:
    way = one.arrangement
    return {
        "members": list(one.members),
        "verdict": one.verdict,
        "guaranteed": one.is_guaranteed,
        "mode": None if way is None else way.mode,
        "slices": None if way is None else list(way.slices),
        "times": [finite(vars(one_time)) for one_time in one.times],
    }
