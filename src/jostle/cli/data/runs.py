"""`jostle runs`: what a dataset holds, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._options import Positional
from jostle._report import Report, Table
from jostle.cli.console import as_typed

if TYPE_CHECKING:
    from jostle.runs import Dataset, RunsSummary


@dataclass(frozen=True, kw_only=True)
class RunsCommand:
    """Which dataset is summarised."""

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]
    repair: Annotated[
        bool,
        "First make it readable: move damaged files aside, remove leftovers, take in journals.",
    ] = False


def runs(command: RunsCommand) -> Report:
    """Summarise a dataset: counts, coverage, repeatability, suspicious values."""
    from jostle.runs import Dataset, summarise

    dataset = Dataset(command.dataset)
    repaired = _repaired(dataset) if command.repair else []
    every = dataset.read()
    summary = summarise(every)
    left = [str(file) for file in dataset.leftovers()]
    document = {
        **summary.to_json(),
        "dataset": str(command.dataset),
        "version": dataset.version(),
        "notes": list(every.notes),
        "leftovers": left,
        "repaired": repaired,
    }
    notes = [f"repaired: {text}" for text in repaired]
    notes += [f"note: {text}" for text in (*every.notes, *map(as_typed, summary.doubts))]
    if left:
        notes.append(
            f"{len(left)} unfinished files of writers that are at work or were killed, passed "
            f"over; the first is {left[0]}"
        )
    parts = [Table(("", ""), _lines(summary), title=str(command.dataset), wrapped=(1,))]
    suspicious = [
        (kind.replace("_", " "), str(one.count), ", ".join(one.run_ids[:2]), one.meaning)
        for kind, one in summary.suspicious.items()
        if one.count
    ]
    if suspicious:
        columns = ("what", "runs", "for example", "may mean")
        parts += ["", Table(columns, suspicious, (1,), "Worth a look", wrapped=(2, 3))]
    return Report(document, parts, notes=notes)


def _repaired(dataset: Dataset) -> list[str]:
    """What was repaired, a sentence each."""
    from jostle.measure import recover

    repairs = dataset.repair()
    if (dataset.path / "journal").is_dir() and (count := recover(dataset.path)):
        repairs.append(f"took in the journals of {count} campaigns that were killed")
    return repairs


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
