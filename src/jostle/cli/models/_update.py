"""`jostle update`: a model learns the runs that came since, without being fitted again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._options import Positional, Short
from jostle._report import Report
from jostle.cli.console import command_of, show
from jostle.cli.console._fields import Json
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.models import Model
    from jostle.runs import Runs


@dataclass(frozen=True, kw_only=True)
class UpdateCommand:
    """Teach a model the runs that came since it was fitted, and the names in them, in a second or so.

    The model that was there stays beside the new one, so the last update can be taken back.
    """

    model: Annotated[Path, "A model that jostle fit has made.", Positional()]
    dataset: Annotated[
        Path | None,
        "Runs and features: the dataset that the model was fitted on with more runs in it, of which only "
        "these are learned, or another one, all of which is new.",
        Positional(),
    ] = None
    output: Annotated[
        Path | None, "Write the new model there and leave the old one.", Short("-o")
    ] = None
    since: Annotated[
        str | None,
        "Learn what the dataset got after this version, as jostle runs prints it.  [default: the version "
        "that the model has learned, where the dataset had it]",
    ] = None
    chosen: Annotated[
        bool, "The runs were chosen, as by jostle suggest: calibrate bounds on none of them."
    ] = False
    back: Annotated[bool, "Take the last update back."] = False
    seed: Annotated[int, "Of the windows that bounds are calibrated on."] = 0
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("update")(command_of(UpdateCommand, update))


def update(asked: UpdateCommand) -> None:
    """Print what was learned."""
    from jostle.models import load, save_over, step_back
    from jostle.runs import Dataset

    if asked.back:
        if asked.dataset is not None or asked.output is not None or asked.since is not None:
            raise UsageError("--back takes the model alone", fix="jostle update MODEL --back")
        _show_back(step_back(asked.model), asked)
        return
    if asked.dataset is None:
        raise UsageError(
            "there is no dataset to learn from", fix="jostle update MODEL DATASET, or MODEL --back."
        )
    model = load(asked.model)
    version = Dataset(asked.dataset).version()
    runs, note = _new_runs(model, asked)
    target = asked.output or asked.model
    is_old = note is None and not len(runs.ok()) and version == model.metadata.get("data_version")
    if is_old and asked.since is None:
        document = _document(target, model, {"runs": 0, "learned": 0, "calibration": 0}, version)
        show(Report(document, [f"{asked.model}: nothing is new in {asked.dataset}."]), asked.json_)
        return
    before = _error_of(model, runs)
    found = model.update(
        runs,
        chosen=asked.chosen,
        seed=asked.seed,
        updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        data_version=version,
    )
    if asked.output is None:
        save_over(found, target)
    else:
        found.save(target)
    record = found.metadata["updates"][-1]
    document = _document(target, found, record, version) | {"error_before": before}
    names = [
        f"{record[f'new_{kind}s']} new {kind}s"
        for kind in ("workload", "platform")
        if record[f"new_{kind}s"]
    ]
    lines = [
        f"{target}: learned {record['learned']} of {record['runs']} new runs, "
        f"{record['calibration']} are held out to calibrate bounds on"
        + (f"; {' and '.join(names)}" if names else "")
        + "."
    ]
    if before is not None:
        lines.append(f"Before, it was off by {before:.1%} about those of names it knew (median).")
    lines += [
        f"{name}: bounds up to {pool.highest_confidence:.4g}, from {pool.n} runs"
        for name, pool in found.calibration.pools.items()
    ]
    notes = [] if note is None else [note]
    show(Report(document, lines, notes=notes), asked.json_)


def _new_runs(model: Model, asked: UpdateCommand) -> tuple[Runs, str | None]:
    """(the runs to learn, a remark)."""
    from jostle.runs import read_runs, runs_since

    assert asked.dataset is not None
    if asked.since is not None:
        return runs_since(asked.dataset, asked.since), None
    known = model.metadata.get("data_version")
    if known:
        try:
            return runs_since(asked.dataset, str(known)), None
        except UsageError:
            pass
    return (
        read_runs(asked.dataset),
        f"note: {asked.dataset} is not the dataset that the model was fitted on with more runs in it, so all "
        "of its runs are taken as new",
    )


def _error_of(model: Model, runs: Runs) -> float | None:
    """The median relative error about runs of known names, before they are learned; None without any."""
    import numpy as np

    runs = runs.ok()
    predictor = model.predictor
    known = runs.colocations.known_in(predictor.workload_names, predictor.platform_names)
    some = runs.take(known)
    if not len(some):
        return None
    ratio = model.predict(some.colocations) / some.runtime_seconds
    ratio = ratio[np.isfinite(ratio)]
    return float(np.median(np.abs(ratio - 1))) if len(ratio) else None


def _document(target: Path, model: Model, record: dict[str, Any], version: str) -> dict[str, Any]:
    return {
        "schema": "update/v1",
        "model": str(target),
        "dataset_version": version,
        "updates": len(model.metadata.get("updates", [])),
        **{key: record.get(key, 0) for key in ("runs", "learned", "calibration")},
        **{key: record.get(key, 0) for key in ("new_workloads", "new_platforms")},
    }


def _show_back(model: Model, asked: UpdateCommand) -> None:
    version = str(model.metadata.get("data_version"))
    text = f"{asked.model}: the model of before is back, which knows dataset version {version}."
    show(Report(_document(asked.model, model, {}, version), [text]), asked.json_)
