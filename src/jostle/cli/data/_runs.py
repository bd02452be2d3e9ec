"""`jostle runs`: what a dataset holds, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from jostle.runs import RunsSummary


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("runs")(runs)


def runs(
    dataset: Annotated[Path, typer.Argument(help="The dataset: a folder.")],
    json_: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON document.")
    ] = False,
) -> None:
    """Summarise a dataset: counts, coverage, repeatability, suspicious values."""
    from jostle.runs import Dataset, summarise

    found = Dataset(dataset)
    summary = summarise(found.read())
    if json_:
        import json

        document = {
            **summary.to_json(),
            "dataset": str(dataset),
            "version": found.version(),
            "leftovers": [str(file) for file in found.leftovers()],
        }
        typer.echo(json.dumps(document))
        return
    _print(summary, dataset)
    if left := found.leftovers():
        typer.echo(
            f"{len(left)} unfinished files of writers that are at work or were killed, passed "
            f"over; the first is {left[0]}",
            err=True,
        )


def _print(summary: RunsSummary, dataset: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(title=str(dataset), title_justify="left", show_header=False, box=None)
    for name, value in _lines(summary):
        table.add_row(name, value)
    console.print(table)
    suspicious = {kind: s for kind, s in summary.suspicious.items() if s.count}
    if not suspicious:
        return
    console.print()
    table = Table(title="Worth a look", title_justify="left", box=None, pad_edge=False)
    for title in ("what", "runs", "for example", "may mean"):
        table.add_column(title, justify="right" if title == "runs" else "left")
    for kind, found in suspicious.items():
        table.add_row(
            kind.replace("_", " "), str(found.count), ", ".join(found.run_ids[:2]), found.meaning
        )
    console.print(table)


def _lines(summary: RunsSummary) -> list[tuple[str, str]]:
    def counted(counts: dict[str, int]) -> str:
        return ", ".join(f"{count} {name or '(no name)'}" for name, count in counts.items())

    beside = {
        "alone" if number == 0 else f"with {number}": count
        for number, count in summary.corunners.items()
    }
    lines = [
        ("runs", f"{summary.runs} ({counted(summary.status)})"),
        ("campaigns", counted(summary.campaigns)),
        ("co-runners", counted(beside)),
        ("workloads, platforms", f"{summary.workloads}, {summary.platforms}"),
        ("co-locations, windows", f"{summary.colocations}, {summary.windows}"),
    ]
    if summary.coverage_ratio is not None:
        lines.append(
            ("measured alone", f"{summary.solo_cells} cells, {summary.coverage_ratio:.1%} of all")
        )
    if summary.connected_parts > 1:
        lines.append(("unconnected parts", f"{summary.connected_parts}: they cannot be compared"))
    if summary.shortest_seconds is not None and summary.longest_seconds is not None:
        lines.append(
            ("runtimes", f"{summary.shortest_seconds:.3g} s to {summary.longest_seconds:.3g} s")
        )
    median, high = summary.repeatability_median_ratio, summary.repeatability_p90_ratio
    if median is not None and high is not None:
        text = f"within {median:.2%} (median), {high:.2%} (nine of ten), {summary.repeats} repeats"
    else:
        text = "not known: nothing was measured twice"
    return [*lines, ("repeats agree", text)]
