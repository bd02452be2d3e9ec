"""`jostle fit DATASET`: learn a model from a dataset and calibrate it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jostle._base.option_fields import (
    REQUIRED,
    Flag,
    Option,
    Positional,
    Short,
    options_of,
    settings_of_texts,
)
from jostle._base.report import Report, Table
from jostle.cli.console import fit_progress
from jostle.errors import UsageError
from jostle.learn import Data, default_method, method_named, method_names

if TYPE_CHECKING:
    from jostle.conformal import CategorySummary
    from jostle.models import Model

USEFUL = 0.99


@dataclass(frozen=True, kw_only=True)
class FitCommand:
    """Options of `jostle fit`: the data, the method, and where the model goes."""

    dataset: Annotated[
        Path | None, "The dataset: a folder of runs, and of traces and profiles.", Positional()
    ] = None
    output: Annotated[Path | None, "The model: a folder to write.", Short("-o")] = None
    method: Annotated[
        str | None,
        "One of the installed methods, such as slowdown or factorization.  [default: ensemble, all that the "
        "data allow; of very many runs factorization]",
    ] = None
    settings: Annotated[
        tuple[str, ...],
        "A setting of the method, NAME=VALUE, several values parted by commas; repeat for more.",
        Flag("--set"),
    ] = ()
    list_settings: Annotated[
        bool, "List the settings of the method, or without one all methods, and fit nothing."
    ] = False
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
    full: Annotated[
        bool,
        "Also print up to which confidence names and platforms that were hardly measured are bounded.",
    ] = False
    seed: Annotated[int, "Of the held-out runs and the training."] = 0


def fit(command: FitCommand) -> Report:
    """Learn from a dataset: jostle fit DATASET -o MODEL. A part is held out to calibrate bounds on.

    --method chooses another method than the default, --set its settings, and --list-settings tells them.
    """
    import jostle

    if command.list_settings:
        return _settings(command.method)
    if command.dataset is None or command.output is None:
        raise UsageError("say a dataset and --output", fix="jostle fit DATASET -o MODEL")
    name = command.method
    if name is None:
        name = default_method(Data(path=command.dataset))
    elif name not in method_names():
        raise UsageError(f"unknown method {name!r}", fix=f"Known: {', '.join(method_names())}.")
    method = settings_of_texts(method_named(name), command.settings)
    with ExitStack() as stack:
        data = jostle.read(command.dataset)
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


def _settings(method: str | None) -> Report:
    """Report the settings of a method; without a method, what each method is."""
    if method is None:
        kinds = {name: method_named(name) for name in method_names()}
        rows = [[name, _first_line(kind.__doc__)] for name, kind in kinds.items()]
        table = Table(["method", "what it is"], rows)
        return Report({"schema": "fit-methods/v1", "methods": dict(rows)}, [table])
    options = [option for option in options_of(method_named(method)) if option.help]
    cells = {"setting": "name", "default": _default, "what it is": "help"}
    document = {
        "schema": "fit-settings/v1",
        "method": method,
        "settings": [{"name": o.name, "default": _default(o), "help": o.help} for o in options],
    }
    return Report(document, [Table.of(options, cells)])


def _default(option: Option) -> str:
    if option.default is REQUIRED:
        return "–"
    is_many = isinstance(option.default, tuple | list)
    return ",".join(map(str, option.default)) if is_many else str(option.default)


def _first_line(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


def _report(model: Model, command: FitCommand, notes: Sequence[str]) -> Report:
    counts: dict[str, Any] = model.metadata["runs"]
    categories = model.calibration.summary()
    document = {
        "schema": "fit/v1",
        "model": str(command.output),
        "dataset_version": model.metadata["data_version"],
        "fitted_at": model.metadata["fitted_at"],
        "runs": counts,
        "calibration": [vars(one) for one in categories],
        "notes": list(notes),
    }
    shown = categories if command.full else _by_corunners(categories)
    cells = {
        "question": lambda one: "solo" if one.category == "alone" else one.category,
        **({command.by: "name_group"} if command.by else {}),
        "calibration runs": "n",
        "of so many sets": "groups",
        "up to": lambda one: _percent(one.highest),
    }
    lines = [
        f"{command.output}: fitted on {counts['fitted']} runs, calibrated on {counts['calibration']}. "
        "A bound is given up to these confidences:",
        Table.of(shown, cells),
    ]
    if not command.full:
        lines.append("--full shows the same for names and platforms that were hardly measured.")
    if any(one.highest < USEFUL for one in shown):
        lines.append(
            f"Under {USEFUL:.0%} there are too few like these: measure more of them, or ask for a lower "
            "confidence."
        )
    return Report(document, lines, notes=[f"note: {text}" for text in notes])


def _by_corunners(categories: Sequence[CategorySummary]) -> list[CategorySummary]:
    """Select the categories of known names, by the number of co-runners; one without runs has no bound."""
    from jostle.conformal import BY_CORUNNERS, CATEGORIES, CategorySummary

    shown: list[CategorySummary] = []
    for name in (CATEGORIES[code] for code in BY_CORUNNERS):
        mine = [one for one in categories if one.category == name]
        shown += mine or [CategorySummary(name, "", "", 0, 0, 0.0)]
    return shown


def _percent(confidence: float) -> str:
    """Rounded down, so that what is printed can be asked for."""
    if confidence <= 0:
        return "no bound"
    return f"{math.floor(confidence * 1000) / 10:g}%"
