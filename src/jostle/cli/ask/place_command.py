"""`jostle place rank` and the like: a command for each verb about a placement, made from its question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from jostle._base.option_fields import Positional, Short
from jostle.cli.console import command_of, fit_progress, note
from jostle.errors import UsageError
from jostle.operations import Verb, all_verbs
from jostle.placement import Standard

if TYPE_CHECKING:
    from jostle.placement import DevicePlacement, Fleet, Placement, Requests

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class AboutFleet:
    """Options of every question about a fleet."""

    model: Annotated[
        Path,
        "A fitted model; or a folder with solo profiles of accelerators, on which sharing is simulated.",
        Positional(),
    ]
    dataset: Annotated[
        Path | None, "Measured runs, whose times alone count for limits such as 1.5x."
    ] = None
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
    column: Annotated[
        Mapping[str, str] | None,
        "A column of the requests or of --table, NAME=THEIRS; of the fleet, fleet.NAME=THEIRS.",
    ] = None
    sharing: Annotated[
        tuple[str, ...],
        "With profiles: a way in which devices may be shared: concurrent, sequential, time-sliced, shares "
        "(MPS), or slices such as 3g,4g (MIG); repeat for more, of which the best is chosen.",
    ] = ()
    bounds: Annotated[
        Path | None, "With profiles: a fitted model of measured co-runs, whose bounds count."
    ] = None

    @property
    def has_fleet(self) -> bool:
        """True if it says more than the model, its runs and names of columns."""
        alone = AboutFleet(model=self.model, dataset=self.dataset, column=self.column)
        return self != alone

    def placed(self, fleet: Any, standard: Standard) -> Placement:
        """Combine a fleet with the model. Raises what reading raises."""
        from jostle.data import read_runs
        from jostle.models import load
        from jostle.placement import place

        runs = None if self.dataset is None else read_runs(self.dataset)
        return place(load(self.model), fleet, runs=runs, **vars(standard))

    def placement(self, standard: Standard) -> Placement | DevicePlacement:
        """Raises UsageError, and what reading raises."""
        if _has_profiles(self.model):
            return self._devices(standard)
        if self.sharing or self.bounds:
            raise UsageError(
                "--sharing and --bounds go with a folder of solo profiles",
                where=str(self.model),
            )
        return self.placed(self._fleet(), standard)

    def _devices(self, standard: Standard) -> DevicePlacement:
        from jostle.models import load
        from jostle.placement import place_devices

        if self.dataset is not None:
            raise UsageError("--dataset goes with a fitted model")
        return place_devices(
            self.model,
            self._fleet(),
            sharing=self.sharing,
            **vars(standard),
            model=None if self.bounds is None else load(self.bounds),
        )

    def _fleet(self) -> Fleet:
        from jostle.placement import Fleet, Node, Request

        if (self.fleet is None) == (self.platform is None):
            raise UsageError("say either --fleet or --platform")
        if self.platform is None:
            if self.beside:
                raise UsageError("--beside goes with --platform", fix="Name tenants in the fleet.")
            return _all_used(
                Fleet.read(self.fleet, self._columns(of_fleet=True), self.tenants), self.fleet
            )
        try:
            beside = [Request.of_text(text) for text in self.beside]
        except ValueError as error:
            raise UsageError(f"--beside: {error}") from None
        node = Node(self.platform, self.platform, tenants=tuple(beside))
        fleet = Fleet((node,))
        if self.tenants is None:
            return fleet
        return _all_used(fleet.with_tenants(self.tenants), self.platform)

    def _columns(self, *, of_fleet: bool = False) -> dict[str, str] | None:
        """Return names of columns of the fleet, or of the requests."""
        head = "fleet."
        return {
            name.removeprefix(head): theirs
            for name, theirs in (self.column or {}).items()
            if name.startswith(head) == of_fleet
        } or None

    def items(self, *, required: bool = True) -> Requests:
        """Raises UsageError, and what reading raises."""
        from jostle.placement import Request, Requests

        if self.requests is not None and self.workload:
            raise UsageError("say either --requests or --workload")
        if self.requests is not None:
            return _all_used(Requests.read(self.requests, self._columns()), self.requests)
        if not self.workload and required:
            raise UsageError("say --requests or --workload")
        try:
            rows = [Request.of_text(text) for text in self.workload]
        except ValueError as error:
            raise UsageError(f"--workload: {error}") from None
        names = [row.name for row in rows]
        return Requests.of(
            [replace(row, name="") if names.count(row.name) > 1 else row for row in rows]
        )


@dataclass(frozen=True, kw_only=True)
class BulkTable:
    """Options for a table of many co-locations, instead of a fleet and requests."""

    table: Annotated[
        Path | None,
        "Instead of a fleet and requests: a Parquet table of any length, a row a workload, its platform, its "
        "corunners and its limit as deadline_seconds or slowdown; corunner_limits_seconds holds theirs.",
    ] = None
    output: Annotated[Path | None, "With --table: the Parquet file to write.", Short("-o")] = None
    scheduler: Annotated[
        str | None, "With --table: a Dask scheduler whose workers score; they must see the table."
    ] = None


def _asking(verb: Verb) -> Callable[..., Any]:
    def ask(
        about: AboutFleet, standard: Standard, question: Any, bulk: BulkTable | None = None
    ) -> Any:
        if bulk is not None and any(value is not None for value in vars(bulk).values()):
            if bulk.table is None or bulk.output is None:
                raise UsageError("--table and --output go together, and --scheduler with them")
            if about.has_fleet or question != verb.question():
                raise UsageError(
                    "--table stands for a fleet, its requests and what is asked of them"
                )
            placement, asked, items = about.placed((), standard), _VERBS["score"], ()
            question = asked.question(bulk.table, bulk.output, about.column, bulk.scheduler)
        else:
            placement, asked = about.placement(standard), verb
            items = about.items(required=verb.needs_items)
        with fit_progress("asking") as progress:
            return placement.ask(asked, items, question, progress)

    return ask


def _all_used(table: T, where: str | None) -> T:
    """Say which columns of a table are not used."""
    ignored: tuple[str, ...] = getattr(table, "ignored", ())
    if ignored:
        note(f"{where}: not used: {', '.join(ignored)}")
    return table


def _has_profiles(folder: Path) -> bool:
    """Check whether a folder is a dataset with solo profiles, and no model."""
    from jostle.data import has_profiles

    return not (folder / "model.json").exists() and has_profiles(folder)


place = typer.Typer(
    help="Where workloads can go so that nobody misses a deadline.", no_args_is_help=True
)
place.callback()(lambda: None)
_VERBS = {verb.name: verb for verb in all_verbs("placement")}
for _verb in _VERBS.values():
    if _verb.takes_items:
        _more = (BulkTable,) if _verb.name == "safe" else ()
        _settings = (AboutFleet, Standard, _verb.question, *_more)
        place.command(_verb.name)(command_of(_settings, _asking(_verb), _verb.help))
