"""`jostle place`: where workloads can go so that nobody misses a deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._options import Limits, Positional, Short
from jostle.cli.console import command_of, fit_progress, named_values, note, show
from jostle.cli.console._fields import Confidence, Json
from jostle.cli.placement import _place_tables as tables
from jostle.cli.placement._score import PlaceScoreCommand, score

if TYPE_CHECKING:
    from jostle._report import Report
    from jostle.placement import DevicePlacement, Fleet, Placement, Requests

T = TypeVar("T")
Goal = Literal[
    "most_accepted", "fewest_platforms", "least_latest_finish", "least_total_time", "least_cost"
]


@dataclass(frozen=True, kw_only=True)
class AboutFleet:
    """What every question about a fleet takes."""

    model: Annotated[
        Path,
        "A fitted model; or a folder with solo profiles of accelerators, on which sharing is simulated.",
        Positional(),
    ]
    fleet: Annotated[
        str | None, "The fleet: a CSV, Parquet, JSON or Arrow table of nodes; - for standard input."
    ] = None
    tenants: Annotated[str | None, "A table of tenants, with their node."] = None
    platform: Annotated[
        str | None, "Instead of a fleet: one node, of this platform.", Short("-p")
    ] = None
    beside: Annotated[
        tuple[str, ...],
        "With --platform: a tenant, with its limit, such as sort@1.5x.",
        Short("-b"),
    ] = ()
    requests: Annotated[str | None, "The requests: a table of such a kind."] = None
    workload: Annotated[
        tuple[str, ...], "Instead of a table: a workload, such as fft@20ms.", Short("-w")
    ] = ()
    column: Annotated[tuple[str, ...], "A column of the requests, NAME=THEIRS."] = ()
    fleet_column: Annotated[tuple[str, ...], "A column of the fleet, NAME=THEIRS."] = ()
    confidence: Confidence = DEFAULT_CONFIDENCE
    joint: Annotated[bool, "That all on a node keep their limits at once, by a union bound."] = (
        False
    )
    accept: Annotated[
        Literal["none", "predicted"], "What counts where no bound is valid: predicted says so."
    ] = "none"
    dataset: Annotated[
        Path | None, "Measured runs, whose times alone count for limits such as 1.5x."
    ] = None
    among_chosen: Annotated[
        float | None,
        "Instead: at most this share of what is chosen is late, calibrated on the model's own "
        "calibration runs, which are drawn from --dataset.",
    ] = None
    gpu: Annotated[str | None, "With profiles: their device."] = None
    sharing: Annotated[
        tuple[str, ...],
        "With profiles: a way in which devices may be shared: concurrent, sequential, time-sliced, shares "
        "(MPS), or slices such as 3g,4g (MIG); repeat for more, of which the best is chosen.",
    ] = ()
    queries: Annotated[
        int, "With profiles: queries to simulate of the service with the fewest.", Limits(3)
    ] = 50
    bounds: Annotated[
        Path | None, "With profiles: a fitted model of measured co-runs, whose bounds count."
    ] = None
    json_: Json = False

    def placement(self) -> Placement | DevicePlacement:
        """Raises UsageError, and what reading raises."""
        from jostle.errors import UsageError
        from jostle.models import load
        from jostle.placement import place
        from jostle.runs import read_runs

        if _has_profiles(self.model):
            return self._devices()
        if self.gpu or self.sharing or self.bounds:
            raise UsageError(
                "--gpu, --sharing and --bounds go with a folder of solo profiles",
                where=str(self.model),
            )
        runs = None if self.dataset is None else read_runs(self.dataset)
        return place(
            load(self.model),
            self._fleet(),
            confidence=self.confidence,
            joint=self.joint,
            accept=self.accept,
            runs=runs,
            among_chosen=self.among_chosen,
            data=self.dataset,
        )

    def _devices(self) -> DevicePlacement:
        from jostle.errors import UsageError
        from jostle.models import load
        from jostle.placement import place_devices

        if self.among_chosen is not None or self.dataset is not None:
            raise UsageError("--among-chosen and --dataset go with a fitted model")
        return place_devices(
            self.model,
            self._fleet(),
            gpu=self.gpu,
            sharing=self.sharing or ("concurrent",),
            confidence=self.confidence,
            joint=self.joint,
            accept=self.accept,
            model=None if self.bounds is None else load(self.bounds),
            queries=self.queries,
        )

    def _fleet(self) -> Fleet:
        from jostle.errors import UsageError
        from jostle.placement import Fleet, Node, Request

        if (self.fleet is None) == (self.platform is None):
            raise UsageError("say either --fleet or --platform")
        if self.platform is None:
            if self.beside:
                raise UsageError("--beside goes with --platform", fix="Name tenants in the fleet.")
            return _told(
                Fleet.read(self.fleet, named_values(self.fleet_column), self.tenants), self.fleet
            )
        try:
            beside = [Request.of_text(text) for text in self.beside]
        except ValueError as error:
            raise UsageError(f"--beside: {error}") from None
        node = Node(self.platform, self.platform, tenants=tuple(beside))
        fleet = Fleet((node,))
        return fleet if self.tenants is None else fleet.with_tenants(self.tenants)

    def asked(self, *, required: bool = True) -> Requests:
        """Raises UsageError, and what reading raises."""
        from jostle.errors import UsageError
        from jostle.placement import Request, Requests

        if self.requests is not None and self.workload:
            raise UsageError("say either --requests or --workload")
        if self.requests is not None:
            return _told(Requests.read(self.requests, named_values(self.column)), self.requests)
        if not self.workload and required:
            raise UsageError("say --requests or --workload")
        try:
            found = [Request.of_text(text) for text in self.workload]
        except ValueError as error:
            raise UsageError(f"--workload: {error}") from None
        taken = [r.name for r in found]
        named = [
            Request(**{**vars(r), "name": ""}) if taken.count(r.name) > 1 else r for r in found
        ]
        return Requests.of(named)


@dataclass(frozen=True, kw_only=True)
class PlaceSafeCommand(AboutFleet):
    """May these share? Every request with the tenants of every node, each against its own limit: who would be
    hurt, by how much, and what would help.

    Ends with 1 where the answer is no for any of them.
    """

    on: Annotated[tuple[str, ...], "A node to ask about; repeat for more.  [default: all]"] = ()
    together: Annotated[bool, "All requests come to the node at once."] = False


@dataclass(frozen=True, kw_only=True)
class PlaceRankCommand(AboutFleet):
    """All nodes for each request, the best first, and why others are ruled out.

    Ends with 1 where a request may go nowhere.
    """

    by: Annotated[Literal["bound", "cost", "neighbours"], "What the best has least of."] = "bound"
    top: Annotated[int, "Nodes to show.", Limits(1)] = 10


@dataclass(frozen=True, kw_only=True)
class PlaceAssignCommand(AboutFleet):
    """Many requests at once: which goes where, who finds no place and why, and how far that is from the best.

    Ends with 1 where a request finds no place.
    """

    goal: Annotated[
        Goal,
        "Of all ways to place as much as can be placed, one with the least of this.",
    ] = "most_accepted"
    limit: Annotated[float, "Seconds for each program in whole numbers.", Limits(0.01)] = 2.0
    seed: Annotated[int, "Of the search, where there are too many sets to list."] = 0


@dataclass(frozen=True, kw_only=True)
class PlaceWalltimeCommand(AboutFleet):
    """The time to ask a batch system for: a bound that holds on every node the request may go to.

    Ends with 1 where there is none.
    """

    on: Annotated[tuple[str, ...], "A node it may go to; repeat for more.  [default: all]"] = ()
    step: Annotated[float, "Seconds, to whose multiple the time is rounded up.", Limits(1)] = 1.0


@dataclass(frozen=True, kw_only=True)
class PlaceWhatIfCommand(AboutFleet):
    """What changes for whom when a node comes or goes, or a tenant moves: who would no longer be sure to keep
    a limit, who has no place, and where else it could go.

    Ends with 1 where somebody is worse off.
    """

    add: Annotated[tuple[str, ...], "A node that comes, NAME=PLATFORM."] = ()
    add_fleet: Annotated[str | None, "A table of nodes that come."] = None
    remove: Annotated[tuple[str, ...], "A node that goes, with its tenants."] = ()
    move: Annotated[tuple[str, ...], "A tenant that moves, TENANT=NODE, before any node goes."] = ()
    goal: Annotated[
        Goal | None,
        "Assign all requests at once, too, before and after, for this.",
    ] = None


def register(app: typer.Typer) -> None:
    """Add the group `place` to the application."""
    group = typer.Typer(
        help="Where workloads can go so that nobody misses a deadline.", no_args_is_help=True
    )
    group.callback()(lambda: None)
    commands: tuple[tuple[str, type, Callable[..., None]], ...] = (
        ("safe", PlaceSafeCommand, _safe),
        ("rank", PlaceRankCommand, _rank),
        ("assign", PlaceAssignCommand, _assign),
        ("walltime", PlaceWalltimeCommand, _walltime),
        ("whatif", PlaceWhatIfCommand, _what_if),
    )
    for name, settings, act in commands:
        group.command(name)(command_of(settings, act))
    group.command("score")(command_of(PlaceScoreCommand, score))
    app.add_typer(group, name="place")


def _safe(asked: PlaceSafeCommand) -> None:
    placement, requests = asked.placement(), asked.asked()
    with fit_progress("asking") as progress:
        found = placement.safe(
            requests, asked.on or None, together=asked.together, progress=progress
        )
    _end(tables.safe_report(found), asked, found.is_safe)


def _rank(asked: PlaceRankCommand) -> None:
    placement, requests = asked.placement(), asked.asked()
    with fit_progress("ranking") as progress:
        found = placement.rank(requests, by=asked.by, progress=progress)
    good = len(found) == len(requests) and all(len(one) for one in found)
    _end(tables.rank_report(found, requests, asked.by, asked.top), asked, good and bool(found))


def _assign(asked: PlaceAssignCommand) -> None:
    placement, requests = asked.placement(), asked.asked()
    with fit_progress("assigning") as progress:
        found = placement.assign(
            requests, asked.goal, limit_seconds=asked.limit, seed=asked.seed, progress=progress
        )
    _end(tables.assign_report(found), asked, found.is_complete)


def _walltime(asked: PlaceWalltimeCommand) -> None:
    placement, requests = asked.placement(), asked.asked()
    with fit_progress("asking") as progress:
        found = placement.walltime(
            requests, asked.on or None, step_seconds=asked.step, progress=progress
        )
    _end(tables.walltime_report(found), asked, found.is_answered)


def _what_if(asked: PlaceWhatIfCommand) -> None:
    from jostle.errors import UsageError
    from jostle.placement import Fleet, Node

    moves = named_values(asked.move)
    added = [Node(name, platform) for name, platform in named_values(asked.add).items()]
    if asked.add_fleet is not None:
        added += Fleet.read(asked.add_fleet, named_values(asked.fleet_column)).nodes
    if not (moves or added or asked.remove):
        raise UsageError("nothing changes", fix="Say --add, --add-fleet, --remove or --move.")
    placement, requests = asked.placement(), asked.asked(required=False)
    with fit_progress("asking") as progress:
        found = placement.whatif(
            requests,
            add=added,
            remove=asked.remove,
            move=moves,
            goal=asked.goal,
            progress=progress,
        )
    _end(tables.what_if_report(found), asked, found.is_better_for_all)


def _told(table: T, where: str | None) -> T:
    """Say which columns of a table are not used."""
    ignored: tuple[str, ...] = getattr(table, "ignored", ())
    if ignored:
        note(f"{where}: not used: {', '.join(ignored)}")
    return table


def _has_profiles(folder: Path) -> bool:
    """Whether it is a dataset with solo profiles, and no model."""
    from jostle.traces import has_profiles

    return not (folder / "model.json").exists() and has_profiles(folder)


def _end(report: Report, asked: AboutFleet, is_yes: bool) -> None:
    show(report, asked.json_)
    raise typer.Exit(0 if is_yes else 1)
