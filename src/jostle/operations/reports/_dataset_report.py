"""A dataset, and what came into it, as reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.report import Report, Table, duration
from jostle.operations.reports._failure_advice import failures_of

if TYPE_CHECKING:
    from jostle.data import Dataset, Imported, MadeOfLog, Profile, RunsSummary

MOST_REJECTED = 20
MOST_TOLD = 10  # lines of what an import understood; --json has all


def dataset_report(
    dataset: Dataset, repairs: Sequence[str], sentence: Callable[[str], str] = str
) -> Report:
    """Report what a dataset holds, and what unfinished writers left. repairs: what was repaired before.
    sentence: turns a doubt into the words of the interface."""
    from jostle.data import summarise

    runs = dataset.read()
    summary = summarise(runs)
    left = [str(file) for file in dataset.leftovers()]
    document: dict[str, Any] = {
        **summary.to_json(),
        "dataset": str(dataset.path),
        "version": dataset.version(),
        "notes": list(runs.notes),
        "leftovers": left,
        "repaired": list(repairs),
        "set_aside": dataset.aside(),
    }
    notes = [f"repaired: {text}" for text in repairs]
    notes += [f"note: {text}" for text in (*runs.notes, *map(sentence, summary.doubts))]
    if left:
        notes.append(
            f"{len(left)} unfinished files of writers that are at work or were killed, passed "
            f"over; the first is {left[0]}"
        )
    parts: list[Table | str] = [Table(("", ""), _lines(summary), str(dataset.path))]
    suspicious = [
        (kind.replace("_", " "), str(one.count), ", ".join(one.run_ids[:2]), one.meaning)
        for kind, one in summary.suspicious.items()
        if one.count
    ]
    if suspicious:
        columns = ("what", "runs", "for example", "may mean")
        parts += ["", Table(columns, suspicious, "Worth a look")]
    document["failures"], tables = failures_of(runs)
    parts += tables
    return Report(document, parts, notes=notes)


def _lines(summary: RunsSummary) -> list[tuple[str, str]]:
    def counted(counts: dict[str, int], nameless: str = "(no name)") -> str:
        return ", ".join(f"{count} {name or nameless}" for name, count in counts.items())

    beside = {
        "alone" if number == 0 else f"with {number}": count
        for number, count in summary.corunners.items()
    }
    lines = [
        ("runs", f"{summary.runs} ({counted(summary.status)})"),
        ("campaigns", counted(summary.campaigns, "of no campaign (imported or recorded)")),
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
    if (changing := summary.changing) is not None:
        text = (
            f"{changing.runs} runs, whose longest stretch is {changing.longest_ratio:.0%} of their time in "
            f"the mean; {changing.stretches:.2g} stretches a run; {changing.steady_ratio:.0%} of all runs "
            "keep one company for 95% of their time"
        )
        lines.append(("company changes in", text))
    median, high = summary.repeatability_median_ratio, summary.repeatability_p90_ratio
    if median is not None and high is not None:
        text = f"within {median:.2%} (median), {high:.2%} (nine of ten), {summary.repeats} repeats"
    else:
        text = "not known: nothing was measured twice"
    return [*lines, ("repeats agree", text)]


def imported_report(
    imported: Imported, output: Path, written: Sequence[Path], sentence: Callable[[str], str] = str
) -> Report:
    """Report the runs that came in; the notes are of rows set aside. written: files. sentence: as in
    dataset_report."""
    from jostle.data import doubts

    runs, bad = imported.runs, imported.bad
    remarks = doubts(runs)
    beside = runs.colocations.number_of_corunners > 0
    alone = int((~beside & ~runs.unknown_corunners).sum())
    document = {
        "schema": "import/v1",
        "dataset": str(output),
        "source": imported.source,
        "runs": len(runs),
        "alone": alone,
        "unknown_corunners": int(runs.unknown_corunners.sum()),
        "workloads": len(runs.colocations.workload_names),
        "platforms": len(runs.colocations.platform_names),
        "rejected": len(bad),
        "rejected_rows": [{"row": row, "reason": reason} for row, reason in bad],
        "not_measured": imported.skipped,
        "doubts": list(remarks),
        "remedies": list(imported.remedies),
        "set_aside": list(imported.aside),
        "understood": list(imported.understood),
        "origins": [vars(origin) for origin in runs.origins],
        "files": [str(path) for path in written],
    }
    notes = [f"understood: {text}" for text in imported.understood]
    notes += [f"set aside: row {row}: {reason}" for row, reason in bad[:MOST_REJECTED]]
    if bad:
        more = f", {len(bad)} rows in all" if len(bad) > MOST_REJECTED else ""
        notes.append(f"with their reasons in {written[0]}{more}")
    notes += [f"done: {text}" for text in imported.remedies]
    if imported.skipped:
        notes.append(f"{imported.skipped} entries are zero or empty: not measured, passed over")
    notes += [f"note: {sentence(text)}" for text in remarks]
    unknown = f", {n} of them not known" if (n := int(runs.unknown_corunners.sum())) else ""
    text = (
        f"{output}: {len(runs)} runs from {imported.source}, {alone} alone and {len(runs) - alone} with "
        f"co-runners{unknown}; {document['workloads']} workloads, {document['platforms']} platforms"
    )
    return Report(document, [text], notes=notes)


def log_report(
    source: str,
    output: Path,
    made: MadeOfLog,
    written: Sequence[Path],
    sentence: Callable[[str], str] = str,
) -> Report:
    """Report what an import made of a log of jobs. sentence: as in dataset_report."""
    document = {
        "schema": "import_log/v1",
        "dataset": str(output),
        "source": source,
        **vars(made),
        "files": [str(path) for path in written],
    }
    there = f"; {old} stay as they were named" if (old := made.runs - made.added) else ""
    of_each = f"{made.platforms}, a median of {made.runs_of_a_platform:g} runs on each"
    lines = [
        ("rows of jobs", f"{made.jobs}"),
        ("runs", f"{made.runs} ({', '.join(f'{n} {name}' for name, n in made.status.items())})"),
        ("new in the dataset", f"{made.added}{there}"),
        ("stretches", f"{made.stretches:.2g} a run in the mean"),
        ("platforms", of_each),
        ("workloads", f"{made.workloads}, {made.once} of them met once"),
        ("sets met twice or more", f"{made.sets}, {made.on_one_node} of them on one node only"),
    ]
    if made.several:
        shown = ", ".join(made.several[:5]) + (" …" if len(made.several) > 5 else "")
        lines.append(("several programs under one name?", f"{len(made.several)}: {shown}"))
    parts: list[Table | str] = [Table(("", ""), lines, str(output))]
    if made.left_aside:
        rows = [(str(n), f"because {why}") for why, n in made.left_aside.items()]
        parts += ["", Table(("jobs", "are no runs"), rows, "Left aside")]
    notes = [f"understood: {text}" for text in made.understood]
    notes += [f"note: {sentence(text)}" for text in made.notes]
    if more := notes[MOST_TOLD:]:
        notes = [*notes[:MOST_TOLD], f"and {len(more)} more notes: --json has all of them"]
    return Report(document, parts, notes=notes)


def profile_report(profile: Profile) -> Report:
    """Report a profile that was imported."""
    kinds = profile.tasks.column("kind").to_pylist()
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    busy = float(profile.column("duration_seconds").sum())
    devices = {str(d): g.name if g else None for d, g in sorted(profile.gpus.items())}
    document = {
        "schema": "import_profile/v1",
        "workload": profile.workload,
        "run_id": profile.run_id,
        "format": profile.format,
        "tasks": counts,
        "task_seconds": busy,
        "devices": devices,
        "notes": list(profile.notes),
    }
    tasks = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    names = ", ".join(sorted({name or "an unknown device" for name in devices.values()}))
    text = f"{profile.workload}: {tasks}, {duration(busy)} in all on {names} ({profile.format})."
    return Report(document, [text], notes=[f"Note: {text}." for text in profile.notes])
