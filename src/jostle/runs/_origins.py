"""Where runs come from: source and licence of imported campaigns, in the Parquet files' metadata.

A dataset may hold several campaigns; each keeps its own entry, and joining tables joins the entries.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

_KEY = b"origins"


@dataclass(frozen=True)
class Origin:
    """campaign: as in the runs' column. source: who published it, and where. licence: its name (SPDX
    where it has one), None where none was stated."""

    campaign: str
    source: str
    licence: str | None = None


def origins_of(schema: pa.Schema) -> tuple[Origin, ...]:
    """What the metadata of a schema says, sorted; () where it says nothing."""
    entries = json.loads((schema.metadata or {}).get(_KEY, b"[]"))
    return tuple(sorted((Origin(**entry) for entry in entries), key=_order))


def with_origins(table: pa.Table, origins: Sequence[Origin]) -> pa.Table:
    """The table with these origins in its metadata."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), **_metadata(origins)})


def kept_origins(schema: pa.Schema | None) -> dict[Any, Any]:
    """The entry of the metadata that holds the origins, for a schema made anew."""
    found = {} if schema is None else schema.metadata or {}
    return {_KEY: found[_KEY]} if _KEY in found else {}


def merged_origins(schemas: Sequence[pa.Schema]) -> dict[Any, Any]:
    """The same entry for tables joined into one: every origin once."""
    every = {origin for schema in schemas for origin in origins_of(schema)}
    return _metadata(sorted(every, key=_order)) if every else {}


def _metadata(origins: Sequence[Origin]) -> dict[bytes, bytes]:
    return {_KEY: json.dumps([asdict(origin) for origin in origins]).encode()}


def _order(origin: Origin) -> tuple[str, str, str]:
    return origin.campaign, origin.source, origin.licence or ""
