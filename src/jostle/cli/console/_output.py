"""What commands print: durations, tables, JSON. Imports rich only when a table is drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer


def print_json(document: dict[str, Any]) -> None:
    """One document on stdout. JSON has no infinity and no NaN: both become null."""
    typer.echo(json.dumps(_finite(document), ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()
) -> None:
    """A table on stdout; columns whose number is in `right` are aligned there."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    # Through a pipe there is no width to fit: columns keep their own.
    console = Console(highlight=False)
    Console(highlight=False, width=None if console.is_terminal else 200).print(table)
