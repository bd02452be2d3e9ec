"""`jostle fit METHOD DATASET`: learn a model from a dataset and calibrate it. One command for each method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jostle._options import Flag, Positional, Short
from jostle._report import Report, Table
from jostle.cli.console import fit_progress, group_of, registered_commands
from jostle.errors import UsageError
from jostle.methods import DEFAULT_METHOD, method_named, method_names

if TYPE_CHECKING:
    from jostle.methods import Data, Method
    from jostle.models import Model

# From so many runs on, tables of them are not held in memory.
FROM_DISK = 3_000_000
MOST_CLASSES = 12
USEFUL = 0.99


@dataclass(frozen=True, kw_only=True)
class FitCommand:
    """What every method takes besides its own options."""

    dataset: Annotated[
        Path, "The dataset: a folder of runs, and of traces and profiles.", Positional()
    ]
    output: Annotated[Path, "The model: a folder to write.", Short("-o")]
    calibrate_by: Annotated[
        Literal["window", "together"] | None,
        "Hold out whole windows, or sets of workloads never measured together.  [default: what the method "
        "says]",
    ] = None
    new_names: Annotated[
        bool,
        "Also bound names that were never or hardly measured: fit some ten to twenty times more, each time "
        "without some of the names.",
    ] = False
    by: Annotated[
        str | None,
        "Hold bounds within each platform, workload or value of a feature (such as device), not only over "
        "all of them. Takes some nine calibration runs in each for 0.9, ninety-nine for 0.99.",
    ] = None
    from_disk: Annotated[
        bool | None,
        "Draw training batches from scratch files (in TMPDIR) instead of reading all runs into memory, "
        "where the method can.  [default: from 3 million runs on]",
        Flag("--from-disk/--in-memory"),
    ] = None
    seed: Annotated[int, "Of the held-out runs and the training."] = 0


def _fit(method: Method[Any], command: FitCommand) -> Report:
    import jostle

    with ExitStack() as stack:
        data = _data(stack, method, command)
        progress = stack.enter_context(fit_progress("fitting"))
        model = jostle.fit(
            data,
            method,
            seed=command.seed,
            calibrate_by=command.calibrate_by,
            new_names=command.new_names,
            by=command.by,
            fitted_at=datetime.now(UTC).isoformat(timespec="seconds"),
            progress=progress,
        )
        notes = (*(data.runs.notes if data.has_runs else ()), *model.notes)
    model.save(command.output)
    return _report(model, command, notes)


def _data(stack: ExitStack, method: Method[Any], command: FitCommand) -> Data:
    """The folder, or its runs in scratch files where there are too many for memory."""
    import jostle
    from jostle.methods import LearnsFromDisk

    dataset, from_disk = command.dataset, command.from_disk
    if from_disk is None and isinstance(method, LearnsFromDisk):
        from_disk = jostle.Dataset(dataset).number_of_runs() >= FROM_DISK
    if not from_disk:
        return jostle.read(dataset)
    with fit_progress("reading") as report:
        stored = jostle.StoredRuns(dataset, seed=command.seed, progress=report)
    return jostle.Data(stack.enter_context(stored), path=dataset)


def _report(model: Model, command: FitCommand, notes: Sequence[str]) -> Report:
    counts: dict[str, Any] = model.metadata["runs"]
    classes = model.calibration.summary()
    document = {
        "schema": "fit/v1",
        "model": str(command.output),
        "dataset_version": model.metadata["data_version"],
        "fitted_at": model.metadata["fitted_at"],
        "runs": counts,
        "calibration_runs_by_pool": {n: p.n for n, p in model.calibration.pools.items()},
        "calibration": [vars(one) for one in classes],
        "notes": list(notes),
    }
    cells = {
        "beside": lambda one: one.pool,
        **({command.by: lambda one: one.group} if command.by else {}),
        "measured of the names": lambda one: one.evidence,
        "calibration runs": lambda one: str(one.n),
        "up to": lambda one: _percent(one.highest),
    }
    numbers = (len(cells) - 2, len(cells) - 1)
    lines = [
        f"{command.output}: fitted on {counts['fitted']} runs, calibrated on {counts['calibration']}. "
        "A bound is given up to these confidences:",
        Table.of(classes[:MOST_CLASSES], cells, numbers),
    ]
    if len(classes) > MOST_CLASSES:
        lines.append(f"and {len(classes) - MOST_CLASSES} more, all in --json")
    if any(one.highest < USEFUL for one in classes):
        lines.append(
            f"Under {USEFUL:.0%} there are too few like these: measure more of them, or ask for a lower "
            "confidence."
        )
    return Report(document, lines, notes=[f"note: {text}" for text in notes])


def _percent(confidence: float) -> str:
    """Rounded down, so that what is printed can be asked for."""
    return f"{math.floor(confidence * 1000) / 10:g}%"


class _Methods(registered_commands(method_names, method_named, _fit, FitCommand)):
    """Commands by the names of the methods."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`jostle fit DATASET` is short for the default method."""
        known = self.list_commands(ctx)
        if args and args[0] not in (*known, *ctx.help_option_names):
            # Two names without an option: the first was meant as a method.
            two = len(args) > 1 and not any(name.startswith("-") for name in args[:2])
            if two and not Path(args[0]).exists():
                raise UsageError(f"unknown method {args[0]!r}", fix=f"Known: {', '.join(known)}.")
            args = [_default(args), *args]
        return super().parse_args(ctx, args)


def _default(args: Sequence[str]) -> str:
    """The method for the dataset among the arguments."""
    from jostle.methods import Data, default_method

    folders = [Path(arg) for arg in args if Path(arg).is_dir()]
    return default_method(Data(path=folders[0])) if folders else DEFAULT_METHOD


fit = group_of(
    _Methods,
    "Learn from a dataset: jostle fit METHOD DATASET -o MODEL. A part is held out to calibrate bounds on. "
    f"Without METHOD it is {DEFAULT_METHOD}; jostle fit METHOD --help lists a method's options.",
    subcommand_metavar="[METHOD] DATASET ...",
)
