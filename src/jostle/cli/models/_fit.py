"""`jostle fit METHOD DATASET`: learn a model from a dataset and calibrate it. One command for each method."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer
from typer.core import TyperGroup
from typer.main import get_command

from jostle.cli.console import command_of, fit_progress, note, print_json, say

if TYPE_CHECKING:
    from jostle.methods import Data, Method
    from jostle.models import Model

# From so many runs on, tables of them are not held in memory.
FROM_DISK = 3_000_000
USUAL = "factorization"


class _Methods(TyperGroup):
    """Commands by the names of the methods; a method is loaded when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from jostle.methods import method_names

        return list(method_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from jostle.methods import method_named

        if cmd_name not in self.list_commands(ctx):
            return None
        app = typer.Typer(add_completion=False)
        app.command(cmd_name)(command_of(method_named(cmd_name), _fit, _shared))
        return get_command(app)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`jostle fit DATASET` is short for the usual method."""
        known = self.list_commands(ctx)
        if args and args[0] not in (*known, *ctx.help_option_names):
            _refuse_unknown_method(args, known)
            args = [USUAL, *args]
        return super().parse_args(ctx, args)


def _refuse_unknown_method(args: list[str], known: list[str]) -> None:
    """Two names without an option: the first was meant as a method."""
    two = len(args) > 1 and not any(name.startswith("-") for name in args[:2])
    if two and not Path(args[0]).exists():
        raise click.UsageError(f"unknown method {args[0]!r}. Known: {', '.join(known)}.")


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    text = (
        "Learn from a dataset: jostle fit METHOD DATASET -o MODEL. A part is held out to calibrate bounds "
        f"on. Without METHOD it is {USUAL}; jostle fit METHOD --help lists a method's options."
    )
    group = typer.Typer(
        cls=_Methods, no_args_is_help=True, help=text, subcommand_metavar="[METHOD] DATASET ..."
    )
    app.add_typer(group, name="fit")


def _shared(
    dataset: Annotated[
        Path, typer.Argument(help="The dataset: a folder of runs, and of traces and profiles.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model: a folder to write.")],
    calibrate_by: Annotated[
        str | None,
        typer.Option(
            help="Hold out whole windows, or sets of workloads never measured together: window or "
            "together.  [default: what the method says]"
        ),
    ] = None,
    from_disk: Annotated[
        bool | None,
        typer.Option(
            "--from-disk/--in-memory",
            help="Draw training batches from scratch files (in TMPDIR) instead of reading all runs into "
            "memory, where the method can.  [default: from 3 million runs on]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the held-out runs and the training.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """What every method takes besides its own options."""


def _fit(
    method: Method,
    dataset: Path,
    output: Path,
    calibrate_by: str | None,
    from_disk: bool | None,
    seed: int,
    json_: bool,
) -> None:
    import jostle
    from jostle.errors import UsageError

    if calibrate_by not in (None, "window", "together"):
        raise UsageError(f"calibrate by {calibrate_by!r}", fix="Known: window, together.")
    with ExitStack() as stack:
        data = _data(stack, method, dataset, from_disk, seed)
        report = stack.enter_context(fit_progress("fitting"))
        model = jostle.fit(data, method, seed=seed, calibrate_by=calibrate_by, progress=report)
    model.save(output)
    _print(model, output, jostle.read(dataset).version, json_)


def _data(
    stack: ExitStack, method: Method, dataset: Path, from_disk: bool | None, seed: int
) -> Data:
    """The folder, or its runs in scratch files where there are too many for memory."""
    import jostle
    from jostle.methods import LearnsFromDisk

    if from_disk is None and isinstance(method, LearnsFromDisk):
        from_disk = jostle.Dataset(dataset).number_of_runs() >= FROM_DISK
    if not from_disk:
        return jostle.read(dataset)
    with fit_progress("reading") as report:
        stored = jostle.StoredRuns(dataset, seed=seed, progress=report)
    return jostle.Data(stack.enter_context(stored), path=dataset)


def _print(model: Model, output: Path, version: str | None, json_: bool) -> None:
    pools = {name: pool.n for name, pool in model.calibration.pools.items()}
    counts: dict[str, Any] = model.metadata["runs"]
    if json_:
        print_json(
            {
                "schema": "fit/v1",
                "model": str(output),
                "dataset_version": version,
                "runs": counts,
                "calibration_runs_by_pool": pools,
                "notes": list(model.notes),
            }
        )
        return
    for text in model.notes:
        note(f"note: {text}")
    say(
        f"{output}: fitted on {counts['fitted']} runs, calibrated on {counts['calibration']} "
        f"({', '.join(f'{name}: {n}' for name, n in pools.items())})"
    )
