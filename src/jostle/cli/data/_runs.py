"""`jostle runs`: what a dataset holds, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle._options import Positional
from jostle.cli.console import as_typed, command_of, note, print_json, print_table, say
from jostle.cli.console._fields import Json

if TYPE_CHECKING:
    from jostle.runs import Dataset, RunsSummary


@dataclass(frozen=True, kw_only=True)
class RunsCommand:
    """Summarise a dataset: counts, coverage, repeatability, suspicious values."""

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]
    repair: Annotated[
        bool,
        "First make it readable: move damaged files aside, remove leftovers, take in journals.",
    ] = False
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("runs")(command_of(RunsCommand, runs))


def runs(options: RunsCommand) -> None:
    """Print the summary, and what unfinished writers left."""
    from jostle.runs import Dataset, summarise

    found = Dataset(options.dataset)
    repaired = _repaired(found) if options.repair else []
    every = found.read()
    summary = summarise(every)
    if options.json_:
        print_json(
            {
                **summary.to_json(),
                "dataset": str(options.dataset),
                "version": found.version(),
                "notes": list(every.notes),
                "leftovers": [str(file) for file in found.leftovers()],
                "repaired": repaired,
            }
        )
        return
    for text in repaired:
        note(f"repaired: {text}")
    for text in every.notes:
        note(f"note: {text}")
    for text in summary.doubts:
        note(f"note: {as_typed(text)}")
    _print(summary, options.dataset)
    if left := found.leftovers():
        note(
            f"{len(left)} unfinished files of writers that are at work or were killed, passed "
            f"over; the first is {left[0]}"
        )


def _repaired(found: Dataset) -> list[str]:
    """What was done, a sentence each."""
    from jostle.measure import recover

    done = found.repair()
    if (found.path / "journal").is_dir() and (count := recover(found.path)):
        done.append(f"took in the journals of {count} campaigns that were killed")
    return done


def _print(summary: RunsSummary, dataset: Path) -> None:
    print_table(("", ""), _lines(summary), title=str(dataset), wrapped=(1,))
    suspicious = [
        (kind.replace("_", " "), str(found.count), ", ".join(found.run_ids[:2]), found.meaning)
        for kind, found in summary.suspicious.items()
        if found.count
    ]
    if suspicious:
        say()
        columns = ("what", "runs", "for example", "may mean")
        print_table(columns, suspicious, right=(1,), title="Worth a look", wrapped=(2, 3))


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
