"""`jostle safe --tenants`: which sets of several services and batch jobs may share a device, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._report import Report, Table, duration

if TYPE_CHECKING:
    from jostle.accelerator import Application, MemberTime, SharingSets, TenantSet, Wish
    from jostle.placement import Request

MOST_SHOWN = 20  # sets that do not fit
MODES = ("concurrent", "time-sliced", "shares")  # where no --sharing is given
_USED = ("name", "workload", "deadline_seconds", "slowdown", "solo_seconds", "memory_bytes")
_ALSO_USED = ("rate_per_second", "statistic", "pes_ratio")
_WORDS = {"keeps": "yes", "unclear": "too close to tell", "late": "no"}


def read_wishes(path: Path, applications: Mapping[str, Application]) -> tuple[list[Wish], str]:
    """(the tenants of a table of requests, what of it is not used here, empty for nothing). Raises BadData
    for a row that cannot be read, UnknownName for a workload without a profile."""
    from jostle.errors import BadData, UnknownName
    from jostle.placement import Requests

    asked = Requests.read(path)
    for row, status, number in zip(asked.rows, asked.status, asked.numbers, strict=True):
        if row is None:
            raise BadData(f"row {number}: {status}", where=str(path))
        if row.workload not in applications:
            raise UnknownName("workload", row.workload, sorted(applications), where=str(path))
    if not asked.good:
        raise BadData("no tenants", where=str(path), fix="One on a row, in the column workload.")
    plain = dict.fromkeys((*_USED, *_ALSO_USED, "confidence"))
    unused = {
        name
        for row in asked.good
        for name, value in vars(row).items()
        if name not in plain and value not in ((), None) and (name, value) != ("worth", 1.0)
    }
    unused |= set(map(str, asked.ignored))
    told = f"not used here: {', '.join(sorted(unused))}" if unused else ""
    return [_wish(row, applications[row.workload]) for row in asked.good], told


def _wish(row: Request, application: Application) -> Wish:
    from jostle.accelerator import DeviceTenant, Objective, Wish

    objective = None
    if row.has_objective:
        ratio, latency = row.slowdown, row.deadline_seconds
        if ratio is not None and row.solo_seconds is not None:
            allowed = ratio * row.solo_seconds
            ratio, latency = None, allowed if latency is None else min(latency, allowed)
        objective = Objective(ratio, latency, row.statistic or "mean")
    tenant = DeviceTenant(application, row.rate_per_second, row.pes_ratio, row.memory_bytes)
    return Wish(row.name, tenant, objective)


def sets_answer(found: SharingSets, modes: Sequence[str], notes: list[str]) -> tuple[Report, int]:
    """Who fits beside whom and how; and the exit code, 0 where all fit together."""
    everybody = len(found.alone)
    text = f"{', '.join(modes)}; {found.simulated} simulations"
    if found.all_fit or (everybody == 1 and found.alone[0].verdict == "keeps"):
        best = found.fitting[0] if found.fitting else found.alone[0]
        parts: list[Table | str] = [f"All fit: {best.shared} ({text})."]
    elif found.fitting:
        names = ", ".join(found.fitting[0].members)
        parts = [f"Not all fit; the most that do: {names}, {found.fitting[0].shared} ({text})."]
    else:
        parts = [f"No two of them fit together ({text})."]
    parts.append(_table(found.alone, "alone"))
    if found.fitting:
        parts.append(_table(found.fitting, "fit together, and in no larger set"))
    if found.others:
        title = "do not fit together, the closest way"
        if len(found.others) > MOST_SHOWN:
            title += f", {MOST_SHOWN} of {len(found.others)}"
        parts.append(_table(found.others[:MOST_SHOWN], title))
    document = {
        "schema": "safe_sets/v1",
        "safe": found.all_fit or (everybody == 1 and found.alone[0].verdict == "keeps"),
        "modes": list(modes),
        "simulated": found.simulated,
        "alone": [_set(one) for one in found.alone],
        "fitting": [_set(one) for one in found.fitting],
        "others": [_set(one) for one in found.others],
        "notes": notes,
    }
    report = Report(document, parts, notes=[f"Note: {note}." for note in notes])
    return report, 0 if document["safe"] else 1


def _table(sets: Sequence[TenantSet], title: str) -> Table:
    rows = []
    for one in sets:
        first = [", ".join(one.members), one.shared, _WORDS[one.verdict]]
        for place, one_time in enumerate(one.times):
            rows.append([*(first if not place else ["", "", ""]), *_line(one_time)])
        if not one.times:
            rows.append([*first, "", "", "", ""])
    heads = ["set", "shared", "fits", "member", "time", "between", "limit"]
    return Table(heads, rows, right=(4, 5, 6), title=title)


def _line(one: MemberTime) -> list[str]:
    between = ""
    if one.low_seconds == one.low_seconds:
        between = f"{_time(one.low_seconds)} to {_time(one.high_seconds)}"
    limit = "–" if one.limit_seconds == float("inf") else duration(one.limit_seconds)
    mark = "" if one.verdict == "keeps" else f" ({_WORDS[one.verdict]})"
    value = f"{one.statistic} {_time(one.seconds)}"
    return [one.name + mark, value, between, limit]


def _time(seconds: float) -> str:
    return "starved" if seconds == float("inf") else duration(seconds)


def _set(one: TenantSet) -> dict[str, Any]:
    way = one.arrangement
    return {
        "members": list(one.members),
        "verdict": one.verdict,
        "mode": None if way is None else way.mode,
        "slices": None if way is None else list(way.slices),
        "times": [
            {
                "name": j.name,
                "statistic": j.statistic,
                "runs": j.runs,
                "seconds": _finite(j.seconds),
                "low_seconds": _finite(j.low_seconds),
                "high_seconds": _finite(j.high_seconds),
                "limit_seconds": _finite(j.limit_seconds),
                "verdict": j.verdict,
            }
            for j in one.times
        ],
    }


def _finite(seconds: float) -> float | None:
    return seconds if abs(seconds) < float("inf") else None
