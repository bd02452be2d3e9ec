"""`jostle doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

from jostle._report import Report, Table
from jostle.cli.start._findings import Finding, findings


def doctor() -> Report:
    """What Jostle can do on this machine, what is missing, and how to get it.

    Ends with 0 whatever is missing: nothing here is needed by everybody.
    """
    every = findings()
    document = {"schema": "doctor/v1", "findings": [vars(one) for one in every]}
    parts: list[Table | str] = []
    for part in dict.fromkeys(one.part for one in every):
        parts += [Table(["", "", ""], [_row(one) for one in every if one.part == part], title=part)]
        parts += [""]
    missing = sum(one.works is False for one in every)
    parts.append(f"{missing} missing, each with what helps" if missing else "everything is here")
    return Report(document, parts)


def _row(one: Finding) -> list[str]:
    mark = {True: "yes", False: "no", None: ""}[one.works]
    return [one.what, mark, f"{one.told}. {one.fix}" if one.fix else one.told]
