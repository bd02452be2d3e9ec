"""`jostle measure`: run workloads side by side on this machine, into a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from jostle._base.option_fields import Limits, NoOption, Positional, Short
from jostle._base.report import Report
from jostle.cli.console import note, progress_bar, words_of
from jostle.cli.data._campaign_file import campaign_lines, read_campaign
from jostle.collect import Campaign, JobSettings, MeasureOptions, Workload, suggested_settings
from jostle.errors import UsageError
from jostle.operations import (
    check_report,
    fleet_report,
    opcodes_report,
    plan_report,
    summary_report,
)


@dataclass(frozen=True, kw_only=True)
class MeasureCommand:
    """Options of `jostle measure`: the machine's part, and the dataset."""

    output: Annotated[Path | None, "The dataset: a folder, made if need be.", Short("-o")] = None
    suggested: Annotated[
        Path | None,
        "Only the runs of this table (workload, platform, corunners), once each; `jostle suggest -o` writes "
        "such a one.",
    ] = None
    smallest: Annotated[int, "Fewest members of a set.", Limits(2), NoOption()] = 2
    largest: Annotated[int, "Most members of a set.", Limits(2), NoOption()] = 4
    scheduler: Annotated[
        str | None,
        "Measure on all workers of this Dask scheduler (tcp://HOST:PORT) instead of here.",
    ] = None
    keep_apart: Annotated[
        bool, "With a scheduler: machines that are alike are platforms each.", NoOption()
    ] = False
    plan: Annotated[
        bool, "Print the campaign as a file, to be edited and measured, and measure nothing."
    ] = False
    check: Annotated[bool, "Say what disturbs this machine."] = False
    opcodes: Annotated[
        bool,
        "Count exactly what one WebAssembly --workload executes, and measure nothing.",
    ] = False


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """Options of what is measured: shipped workloads and command lines."""

    words: Annotated[
        tuple[str, ...],
        "A command line to measure as a workload (podman run …, too), or the file of a campaign.",
        Positional("CAMPAIGN.toml | -- COMMAND…"),
    ] = ()
    workload: Annotated[
        tuple[str, ...],
        "A workload, a pattern such as 'chase-*', or a .wasm file with its arguments; may be "
        "repeated.  [default: all shipped, or none beside a command]",
        Short("-w"),
    ] = ()
    command: Annotated[
        tuple[str, ...], "One more command line, quoted; may be repeated.", Short("-c")
    ] = ()
    name: Annotated[
        str | None,
        "What the command line after -- is called.  [default: its words]",
    ] = None
    directory: Annotated[Path | None, "Where command lines run.  [default: here]", NoOption()] = (
        None
    )
    fresh_folder: Annotated[
        bool,
        "Run each execution in a new folder, removed afterwards; `input` implies it.",
        NoOption(),
    ] = False
    input: Annotated[
        tuple[Path, ...], "A file or folder copied to where they run; may be repeated."
    ] = ()
    stdin: Annotated[
        Path | None, "A file that they read as standard input.  [default: none]", NoOption()
    ] = None
    env: Annotated[
        Mapping[str, str] | None, "A variable for them, NAME=VALUE; may be repeated.", NoOption()
    ] = None
    before: Annotated[
        tuple[str, ...],
        "A command line before each execution, not counted; may be repeated.",
        NoOption(),
    ] = ()
    after: Annotated[tuple[str, ...], "The same after each execution.", NoOption()] = ()
    expect: Annotated[
        Path | None, "A file that holds what they must write to standard output.", NoOption()
    ] = None

    def workloads(self) -> list[str | Workload] | None:
        """List the workloads that the options name; None for everything that is shipped."""
        from jostle.collect import command_workload

        lines = [words_of(text) for text in self.command]
        if self.name is not None and not self.words:
            raise UsageError(
                "a name, but no command line after --", fix="Give both: --name NAME -- COMMAND."
            )
        job = self._job()
        if job is not None and not (lines or self.words):
            raise UsageError("options of command lines, but no command line")
        commands = [command_workload(words, None, job) for words in lines]
        if self.words:
            commands.insert(0, command_workload(self.words, self.name, job))
        return [*self.workload, *commands] or None

    def _job(self) -> JobSettings | None:
        """Collect what surrounds the command lines; None without any such option."""
        from jostle.collect import job_of

        job = {
            "directory": self.directory,
            "inputs": self.input,
            "environment": self.env,
            "before": self.before,
            "after": self.after,
            "expected": self.expect,
            "fresh_folder": self.fresh_folder,
            "stdin": self.stdin,
        }
        return job_of(**job) if any(job.values()) else None


Settings = dict[str, Any]


def measure(
    command: MeasureCommand,
    jobs: Jobs,
    settings: Annotated[Settings, Campaign],
    options: MeasureOptions,
) -> Report:
    """Measure runtimes on this machine: workloads alone, and side by side in random sets.

    Every window is on disk before the next begins. Interrupted at any moment, the same command goes
    on where it stopped; with more --solo or --sets it adds what is new. --check prints before what disturbs
    this machine, with exit code 1; --opcodes
    counts instructions, which of a native program its own tools do: valgrind --tool=callgrind, or perf stat.
    Latencies of a service that runs come from its monitoring: jostle import
    prometheus.
    """
    if command.opcodes:
        return opcodes_report(jobs.workload, options.timeout_seconds)
    if command.check:
        return check_report()
    all_jobs = [jobs]
    if len(jobs.words) == 1 and jobs.words[0].endswith(".toml"):
        values, all_jobs = read_campaign(
            Path(jobs.words[0]), _records(command, settings, options), jobs
        )
        command, settings, options = (
            MeasureCommand(**values[0]),
            values[1],
            MeasureOptions(**values[2]),
        )
    if command.plan:
        return _plan(command, all_jobs, settings, options)
    if command.output is None:
        raise UsageError("no dataset to measure into", fix="Name one with --output FOLDER.")
    if command.scheduler is not None:
        if command.suggested is not None:
            raise UsageError(
                "what was suggested is measured on the machine it names, not on workers"
            )
        return _on_fleet(command, _campaign(command, all_jobs, settings), options)
    campaign = Campaign(**_campaign(command, all_jobs, settings))
    return _on_this_machine(campaign, command.output, options)


def _records(
    command: MeasureCommand, settings: Settings, options: MeasureOptions
) -> list[tuple[type, Mapping[str, Any]]]:
    return [(MeasureCommand, vars(command)), (Campaign, settings), (MeasureOptions, vars(options))]


def _plan(
    command: MeasureCommand, jobs: Sequence[Jobs], settings: Settings, options: MeasureOptions
) -> Report:
    """Report the campaign as a file, with how much it measures; --json has every window."""
    campaign = Campaign(**_campaign(command, jobs, settings))
    given = [name for one in jobs for name in one.workload]
    modules = [name for name in given if name.partition(" ")[0].endswith(".wasm")]
    shipped = [one.name for one in campaign.members if one.size]
    records = _records(command, settings, options)
    return plan_report(campaign, campaign_lines(records, jobs, [*modules, *shipped]))


def _campaign(command: MeasureCommand, jobs: Sequence[Jobs], settings: Settings) -> Settings:
    """Collect the arguments of a Campaign."""
    settings = settings | {
        "workloads": [one for part in jobs for one in part.workloads() or ()] or None,
        "set_sizes": (command.smallest, command.largest),
        "probes": settings["probes"] or bool(settings["stressors"]),
    }
    if command.suggested is None:
        return settings
    if settings["probes"]:
        raise UsageError(
            "either what was suggested is measured, or all beside stressors", fix="Drop one."
        )
    settings, remarks = suggested_settings(command.suggested, settings)
    for text in remarks:
        note(text)
    return settings


def _on_this_machine(campaign: Campaign, output: Path, options: MeasureOptions) -> Report:
    from jostle.collect import Interrupted
    from jostle.collect import measure as run

    try:
        with progress_bar() as progress:
            return summary_report(run(campaign, output, options, progress=progress))
    except Interrupted as interrupted:
        return replace(summary_report(interrupted.summary), exit_code=130)


def _on_fleet(command: MeasureCommand, settings: Settings, options: MeasureOptions) -> Report:
    """Measure on the workers of a scheduler; exit code 1 when windows remain."""
    from jostle.collect import FleetInterrupted, FleetOptions, measure_fleet

    assert command.output is not None
    fleet, code = FleetOptions(keep_apart=command.keep_apart), None
    try:
        with progress_bar() as progress:
            summary = measure_fleet(
                command.scheduler,
                command.output,
                settings,
                options,
                fleet=fleet,
                progress=progress,
            )
    except FleetInterrupted as stopped:
        summary, code = stopped.summary, 130
    return replace(fleet_report(summary), exit_code=code or int(not summary.finished))
