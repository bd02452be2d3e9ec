"""Groups of workloads by regular expressions on their names, which runs keep in their metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from jostle.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = b"groups"
GroupRule = Annotated[
    str | None,
    "A regular expression on names of workloads: what it finds is a group, whose runs answer for a name "
    "never met, such as [^:]+$.",
]


def groups_of(schema: pa.Schema) -> tuple[str, ...]:
    """Return the expressions that the metadata of a schema has, sorted."""
    return tuple(sorted(json.loads((schema.metadata or {}).get(GROUPS, b"[]"))))


def with_group(table: pa.Table, pattern: str | None) -> pa.Table:
    """Add an expression to the metadata of a table, if there is one."""
    if pattern is None:
        return table
    every = json.dumps(sorted({*groups_of(table.schema), pattern})).encode()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), GROUPS: every})


def require_pattern(pattern: str | None) -> None:
    """Raises UsageError for an expression that cannot be read."""
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise UsageError(
            f"`group` {pattern!r} is no regular expression: {error}", fix="Such as '[^:]+$'."
        ) from None


def group_names(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Name the group of each workload: what the first expression that fits has in its brackets, or fits.

    Parameters
    ----------
    names : sequence of str
    patterns : sequence of str

    Returns
    -------
    list of str
        Empty for a name that no expression fits.
    """
    rules = [re.compile(pattern) for pattern in patterns]

    def one(name: str) -> str:
        match = next(filter(None, (rule.search(name) for rule in rules)), None)
        return "" if match is None else (match[1] if match.re.groups else match[0]) or ""

    return [one(name) for name in names]
