"""`jostle audit`: does a campaign's dataset tell the truth, and would its collector have noticed others?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle._options import Limits, Positional
from jostle.cli.console import command_of, duration, note, percent, print_json, print_table, say
from jostle.cli.console._fields import Cores, Json

if TYPE_CHECKING:
    from jostle.measure import AuditReport


@dataclass(frozen=True, kw_only=True)
class AuditCommand:
    """Check a campaign: its windows against each other, and the collector on this machine, with kernels of
    the dataset, against a plain loop, a second counter of instructions, and disturbers of known strength.

    Exit code 1 where a check fails. Takes some minutes on a machine that should be quiet.
    """

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]
    kernels: Annotated[int, "Kernels to time and count again.", Limits(0)] = 4
    sets: Annotated[int, "Sets to measure again, for their overlap.", Limits(0)] = 6
    windows: Annotated[int, "Windows for each strength of a disturber.", Limits(0)] = 20
    share: Annotated[tuple[float, ...], "Of a core, held by a disturber; may be repeated."] = (
        0.1,
        0.25,
        0.5,
    )
    core: Cores = None
    seed: Annotated[int, "Of what is chosen."] = 0
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("audit")(command_of(AuditCommand, audit))


def audit(asked: AuditCommand) -> None:
    """Print what was found; ends with exit code 1 where a check fails."""
    from jostle.measure import AuditOptions
    from jostle.measure import audit as run

    options = AuditOptions(
        asked.kernels, asked.sets, asked.windows, tuple(asked.share), asked.core, asked.seed
    )
    report = run(asked.dataset, options, progress=lambda text: note(f"{text} …"))
    if asked.json_:
        print_json(report.to_json())
    else:
        _print(report)
    if not report.passed:
        raise typer.Exit(1)


def _print(report: AuditReport) -> None:
    for text in report.notes:
        note(f"note: {text}")
    say(
        f"{report.dataset}: {report.rows} runs, {report.contaminated} contaminated; "
        f"audited with engine {report.engine}"
    )
    for text in report.contradictions[:5]:
        say(f"- {text}")
    if len(report.contradictions) > 5:
        say(f"- and {len(report.contradictions) - 5} more")
    _print_kernels(report)
    if report.overlaps:
        rows = [
            (
                one.set_name,
                f"{one.common_ratio:.1%}",
                f"{one.longest_beat_ratio:.1%}",
                duration(one.spread_seconds),
                "yes" if one.counts else "no: late",
            )
            for one in report.overlaps
        ]
        say()
        columns = ("set", "all there", "longest beat", "starts apart", "counts")
        print_table(columns, rows, right=(1, 2, 3), title="Overlap, from the beats")
    if report.detections:
        rows = [
            (
                one.member,
                f"{one.share:.0%} of a core" if one.share else "nobody",
                f"{one.flagged} of {one.windows}",
                "{:.0%} to {:.0%}".format(*one.interval),
                "?" if one.held_cores is None else f"{one.held_cores:.0%}",
            )
            for one in report.detections
        ]
        say()
        columns = ("member", "disturber", "flagged", "rate, 95 %", "others held")
        print_table(columns, rows, right=(2, 3, 4), title="Disturbers of known strength")
    say()
    for what, holds in report.checks().items():
        say(f"{'yes' if holds else 'NO '}  {what}")


def _print_kernels(report: AuditReport) -> None:
    def told(seconds: float | None) -> str:
        return "" if seconds is None else duration(seconds)

    if report.times:
        rows = [
            (
                one.workload,
                duration(one.direct_seconds),
                told(one.collected_seconds),
                told(one.dataset_seconds),
                "" if one.error_ratio is None else percent(one.error_ratio),
            )
            for one in report.times
        ]
        say()
        columns = ("kernel", "plain loop", "collector", "dataset", "collector off by")
        print_table(columns, rows, right=(1, 2, 3, 4), title="A repetition alone")
    if report.counts:
        rows = [
            (
                one.workload,
                str(one.rewritten),
                str(one.fuel),
                "" if one.dataset is None else str(one.dataset),
                "alike" if one.agrees else "DIFFER",
            )
            for one in report.counts
        ]
        say()
        columns = ("kernel", "by rewriting", "by fuel", "dataset", "")
        print_table(columns, rows, right=(1, 2, 3), title="Instructions of a repetition")
