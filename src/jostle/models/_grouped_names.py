"""Groups of names, from the names themselves or from a column of their features."""

from __future__ import annotations

from jostle.conformal import Groups
from jostle.data import Runs
from jostle.errors import UsageError


def groups_of(runs: Runs, by: str) -> Groups:
    """Group names by a column. by: `platform`, `workload`, or a column of the features of either. Names
    without a value form a group of their own. Raises UsageError for an unknown column, or one that both kinds
    have."""
    names = {
        "workload": runs.colocations.workload_names,
        "platform": runs.colocations.platform_names,
    }
    if by in names:
        return Groups.by(by, "", {name: name for name in names[by]})
    tables = {"workload": runs.workload_features, "platform": runs.platform_features}
    known = {
        key: [] if table is None else [c for c in table.column_names if c != key]
        for key, table in tables.items()
    }
    having = [key for key, columns in known.items() if by in columns]
    if len(having) != 1:
        columns = sorted({c for some in known.values() for c in some})
        problem = "both kinds of names have" if having else "neither workloads nor platforms have"
        more = f"; features: {', '.join(columns[:20])}" if columns else ""
        raise UsageError(
            f"{problem} a feature {by!r} to bound by", fix=f"Known: platform, workload{more}."
        )
    key = having[0]
    table = tables[key]
    assert table is not None
    values = zip(table.column(key).to_pylist(), table.column(by).to_pylist(), strict=True)
    return Groups.by(key, by, {name: str(value) for name, value in values if value is not None})
