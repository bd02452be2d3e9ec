"""`jostle measure`: run workloads side by side on this machine, into a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._options import Flag, Limits, Positional, Short
from jostle.cli.collect._summaries import has_usable, print_fleet, print_plan, print_summary
from jostle.cli.console import command_of, note, progress_bar
from jostle.cli.console._fields import Cores, Device, Json

if TYPE_CHECKING:
    from jostle.measure import Campaign, JobSettings, MeasureOptions, Tolerance, Workload


@dataclass(frozen=True, kw_only=True)
class MeasureCommand:
    """Measure runtimes on this machine: workloads alone, and side by side in random sets.

    Every window is on disk before the next begins. Interrupted at any moment, the same command goes
    on where it stopped; with more --solo or --sets it adds what is new. What disturbs this machine is
    told by --check before, with exit code 1.
    """

    output: Annotated[Path | None, "The dataset: a folder, made if need be.", Short("-o")] = None
    budget: Annotated[float | None, "Seconds after which no window is begun.", Limits(0)] = None
    attempts: Annotated[int, "Times a contaminated window is measured at most.", Limits(1)] = 3
    timeout: Annotated[
        float | None,
        "Seconds a set-up or a repetition may take.  [default: 10, of command lines a day]",
        Limits(0.1),
    ] = None
    native_mix: Annotated[bool, "Count the instructions of command lines too (valgrind, slow)."] = (
        False
    )
    scheduler: Annotated[
        str | None,
        "Measure on all workers of this Dask scheduler (tcp://HOST:PORT) instead of here.",
    ] = None
    keep_apart: Annotated[bool, "With --scheduler: machines that are alike are platforms each."] = (
        False
    )
    listing: Annotated[bool, "Print the plan and measure nothing.", Flag("--list")] = False
    engines: Annotated[bool, "List the engines, which work here and why not."] = False
    check: Annotated[bool, "Say whether this machine is quiet enough to measure."] = False
    json_: Json = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is measured: the settings of a campaign."""

    words: Annotated[
        tuple[str, ...], "A command line to measure as a workload.", Positional("-- COMMAND…")
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
    serve: Annotated[
        str | None,
        "A server's command line, measured under load; {port} in it is a free port.",
    ] = None
    url: Annotated[str, "What is requested of it: http://127.0.0.1:{port}/path."] = ""
    rate: Annotated[
        tuple[float, ...], "Requests per second; may be repeated, a workload each."
    ] = ()
    ready: Annotated[
        str, "A command line that ends with 0 when the server is ready.  [default: url answers]"
    ] = ""
    load: Annotated[
        str, "A command line that prints latencies in seconds, instead of requests."
    ] = ""
    quantile: Annotated[float, "Of the latencies, what a run's time is.", Limits(0, 1)] = 0.99
    name: Annotated[
        str | None,
        "What the command line after --, or the server, is called.  [default: its words]",
    ] = None
    image: Annotated[
        str | None, "Run the command line after -- in a container of this image (podman, docker)."
    ] = None
    image_option: Annotated[
        tuple[str, ...], "An option of the container, --NAME=VALUE; may be repeated."
    ] = ()
    directory: Annotated[
        Path | None, "Where command lines run.  [default: a fresh folder each time]"
    ] = None
    input: Annotated[
        tuple[Path, ...], "A file or folder copied to where they run; may be repeated."
    ] = ()
    env: Annotated[tuple[str, ...], "A variable for them, NAME=VALUE; may be repeated."] = ()
    before: Annotated[
        tuple[str, ...], "A command line before each execution, not counted; may be repeated."
    ] = ()
    after: Annotated[tuple[str, ...], "The same after each execution."] = ()
    expect: Annotated[Path | None, "A file that holds what they must write to standard output."] = (
        None
    )
    engine: Annotated[
        tuple[str, ...] | None,
        "An engine, with a variant or without (speed@nice=10); may be repeated; --engines "
        "lists them.  [default: all that work here]",
        Short("-e"),
    ] = None
    solo: Annotated[int, "Windows of each workload alone on each engine.", Limits(0)] = 2
    probes: Annotated[
        bool,
        "Also each workload beside each of four stressors, a window of each for each --solo (for jostle fit "
        "probes).",
    ] = False
    stressors: Annotated[
        tuple[str, ...],
        "Only these stressors, so much less to measure: cache, copy, scatter, stream, or core, where cores "
        "are shared; may be repeated.  [implies --probes]",
    ] = ()
    sets: Annotated[int, "Random sets of workloads side by side, in all.", Limits(0)] = 60
    suggested: Annotated[
        Path | None,
        "Only the runs of this table (workload, platform, corunners), once each; `jostle suggest -o` writes "
        "such a one.",
    ] = None
    smallest: Annotated[int, "Fewest members of a set.", Limits(2)] = 2
    largest: Annotated[int, "Most members of a set.", Limits(2)] = 4
    window: Annotated[float, "Seconds that count in one window.", Limits(0.02, 60)] = 0.25
    seed: Annotated[int, "Of the sets drawn and the order."] = 0
    device: Device = None
    core: Cores = None

    def settings(self) -> dict[str, Any]:
        """As the arguments of a Campaign."""
        settings: dict[str, Any] = {
            "workloads": self._workloads(),
            "engines": self.engine,
            "solo_repeats": self.solo,
            "sets": self.sets,
            "set_sizes": (self.smallest, self.largest),
            "window_seconds": self.window,
            "seed": self.seed,
            "probes": self.probes or bool(self.stressors),
            "stressors": self.stressors,
            "device": self.device,
            "cores": self.core,
        }
        if self.suggested is None:
            return settings
        return settings | self._chosen(self.suggested, settings["workloads"])

    def _chosen(self, path: Path, workloads: list[str | Workload] | None) -> dict[str, Any]:
        """The suggested sets that can be measured here, and no others. workloads: those asked for."""
        from jostle.cli.collect._suggested import suggested_sets
        from jostle.errors import UsageError
        from jostle.measure import available_engines, chosen_cores, device_name, find_workloads

        if self.probes or self.stressors:
            raise UsageError(
                "either what was suggested is measured, or all beside stressors", fix="Drop one."
            )
        members = find_workloads(workloads)
        device = self.device or device_name(chosen_cores(self.core))
        engines = available_engines() if self.engine is None else self.engine
        chosen = suggested_sets(path, engines, device, [one.name for one in members])
        names = {name for _, names in chosen for name in names}
        return {
            "workloads": [one for one in members if one.name in names],
            "engines": list(dict.fromkeys(engine for engine, _ in chosen)),
            "solo_repeats": 0,
            "sets": 0,
            "chosen": chosen,
        }

    def _workloads(self) -> list[str | Workload] | None:
        """What was asked for; None for everything that is shipped."""
        import shlex

        from jostle.errors import UsageError
        from jostle.measure import command_workload, container_workload

        lines = []
        for text in self.command:
            try:
                lines.append(shlex.split(text))
            except ValueError as error:
                raise UsageError(f"cannot be split into words: {error}", where=text) from None
        if self.name is not None and not self.words and self.serve is None and self.image is None:
            raise UsageError(
                "a name, but no command line after --", fix="Give both: --name NAME -- COMMAND."
            )
        job = self._job()
        if job is not None and not (lines or self.words or self.serve or self.image):
            raise UsageError("what surrounds command lines was given, but no command line")
        if self.image_option and self.image is None:
            raise UsageError("options of a container, but no image", fix="Give --image NAME.")
        if self.image is not None:
            commands = [
                container_workload(
                    self.image, self.words, name=self.name, job=job, options=self.image_option
                )
            ]
        else:
            commands = [command_workload(self.words, self.name, job)] if self.words else []
        commands += [command_workload(words, None, job) for words in lines]
        return [*self.workload, *commands, *self._services()] or None

    def _services(self) -> list[Workload]:
        """The server at each of the rates. Raises UsageError for one without the other."""
        import shlex

        from jostle.errors import UsageError
        from jostle.measure import job_of, service_workload

        if (self.serve is None) == bool(self.rate):
            raise UsageError(
                "a server is measured at a rate", fix="Give both: --serve COMMAND --rate 100."
            )
        if self.serve is None:
            return []
        try:
            words, ready, load = (shlex.split(text) for text in (self.serve, self.ready, self.load))
        except ValueError as error:
            raise UsageError(f"cannot be split into words: {error}", where=self.serve) from None
        return [
            service_workload(
                words,
                rate,
                url=self.url,
                ready=ready,
                load=load,
                quantile=self.quantile,
                name=None if self.words or self.image else self.name,
                job=job_of(directory=self.directory, environment=self._variables()),
            )
            for rate in self.rate
        ]

    def _variables(self) -> dict[str, str]:
        from jostle.errors import UsageError

        if not all("=" in text for text in self.env):
            raise UsageError("a variable is written NAME=VALUE", where=" ".join(self.env))
        parts = [text.partition("=") for text in self.env]
        return {name: value for name, _, value in parts}

    def _job(self) -> JobSettings | None:
        """What surrounds the command lines; None where nothing was asked for."""
        from jostle.measure import job_of

        given = (self.directory, self.input, self.env, self.before, self.after, self.expect)
        if not any(given):
            return None
        return job_of(
            directory=self.directory,
            inputs=self.input,
            environment=self._variables(),
            before=self.before,
            after=self.after,
            expected=self.expect,
        )


@dataclass(frozen=True, kw_only=True)
class Quiet:
    """How much other processes may disturb a window."""

    foreign_load: Annotated[
        float, "How much of one core other processes may hold, of all cores measured on.", Limits(0)
    ] = 0.1
    outside_load: Annotated[
        float, "The same of the machine's cores that are not measured on.", Limits(0)
    ] = 0.1
    stolen: Annotated[float, "Share of the cores' time that a hypervisor may take.", Limits(0)] = (
        0.15
    )
    shared_load: Annotated[
        float,
        "Share of the cores that is lost at most where kernels share them; below it wall time counts.",
        Limits(0),
    ] = 0.05
    slowdown: Annotated[
        float, "How much slower than usual a core may be beside a window.", Limits(1)
    ] = 1.25
    accept_all: Annotated[bool, "Reject no window for being disturbed."] = False

    def tolerance(self) -> Tolerance:
        from jostle.measure import Tolerance

        if self.accept_all:
            return Tolerance.anything()
        return Tolerance(
            wall_load_ratio=self.shared_load,
            foreign_load_ratio=self.foreign_load,
            outside_load_ratio=self.outside_load,
            stolen_ratio=self.stolen,
            slowdown_ratio=self.slowdown,
        )


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("measure")(command_of((MeasureCommand, Plan, Quiet), measure))


def measure(asked: MeasureCommand, plan: Plan, quiet: Quiet) -> None:
    """Measure here, or on the workers of a scheduler; or say what would be measured, and on what."""
    from jostle.errors import UsageError
    from jostle.measure import Campaign, MeasureOptions

    if asked.engines or asked.check:
        from jostle.cli.collect._machine import print_check, print_engines

        (print_engines if asked.engines else print_check)(asked.json_)
        return
    if asked.output is None:
        if plan.words[:1] == ("audit",) and len(plan.words) == 2:
            from jostle.cli.collect._audit import AuditCommand, audit

            audit(AuditCommand(dataset=Path(plan.words[1]), json_=asked.json_))
            return
        raise UsageError("no dataset to measure into", fix="Name one with --output FOLDER.")
    options = MeasureOptions(
        time_budget_seconds=asked.budget,
        attempts=asked.attempts,
        timeout_seconds=asked.timeout,
        tolerance=quiet.tolerance(),
        native_mix=asked.native_mix,
    )
    if asked.scheduler is not None:
        if asked.listing:
            raise UsageError("--list shows this machine's plan; workers make their own")
        if plan.suggested is not None:
            raise UsageError(
                "what was suggested is measured on the machine it names, not on workers"
            )
        _on_fleet(asked, plan, options)
        return
    campaign = Campaign(**plan.settings())
    if asked.listing:
        print_plan(campaign, asked.json_)
    else:
        _on_this_machine(campaign, asked.output, options, asked.json_)


def _on_this_machine(
    campaign: Campaign, output: Path, options: MeasureOptions, as_json: bool
) -> None:
    from jostle.measure import Interrupted
    from jostle.measure import measure as run

    try:
        with progress_bar() as report:
            summary = run(campaign, output, options, progress=report)
    except Interrupted as interrupted:
        print_summary(interrupted.summary, as_json)
        raise typer.Exit(130) from None
    print_summary(summary, as_json)
    if summary.planned and not has_usable(summary):
        note("nothing usable came out: `jostle runs` shows why; --check says what disturbs")
        raise typer.Exit(1)


def _on_fleet(asked: MeasureCommand, plan: Plan, options: MeasureOptions) -> None:
    """Measure on the workers of a scheduler; exit code 1 when windows remain."""
    from jostle.measure import FleetInterrupted, FleetOptions, measure_fleet

    assert asked.output is not None
    fleet, interrupted = FleetOptions(keep_apart=asked.keep_apart), False
    try:
        with progress_bar() as report:
            summary = measure_fleet(
                asked.scheduler,
                asked.output,
                plan.settings(),
                options,
                fleet=fleet,
                progress=report,
            )
    except FleetInterrupted as stopped:
        summary, interrupted = stopped.summary, True
    print_fleet(summary, asked.json_)
    if interrupted or not summary.finished:
        raise typer.Exit(130 if interrupted else 1)
