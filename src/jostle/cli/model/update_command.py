"""`jostle update`: a model learns the runs that came since, without being fitted again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.option_fields import Positional, Short
from jostle._base.report import Report
from jostle.cli.console._shared_options import Model
from jostle.errors import UsageError
from jostle.operations import Drifts

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model as Fitted


@dataclass(frozen=True, kw_only=True)
class UpdateCommand:
    """Options of `jostle update`: the model, and the runs to learn."""

    model: Model
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
    dry_run: Annotated[
        bool,
        "Learn nothing: say which platforms, devices and workloads drift, whose runs no longer take as long "
        "as the model says. Ends with 1 where something drifts.",
    ] = False
    back: Annotated[bool, "Take the last update back."] = False
    seed: Annotated[int, "Of the windows that bounds are calibrated on."] = 0


def update(command: UpdateCommand) -> Report | Drifts:
    """Teach a model the runs that came since it was fitted, and the names in them.

    The model that was there stays beside the new one, so the last update can be taken back.
    """
    from jostle.data import Dataset
    from jostle.models import DriftWatch, load, save_over, step_back

    if command.back:
        if command.dataset is not None or command.output is not None or command.since is not None:
            raise UsageError("--back takes the model alone", fix="jostle update MODEL --back")
        model = step_back(command.model)
        version = str(model.metadata.get("data_version"))
        text = f"the model of before is back, which knows dataset version {version}."
        return Report(_document(command.model, model, {}, version), [f"{command.model}: {text}"])
    if command.dataset is None:
        raise UsageError(
            "there is no dataset to learn from", fix="jostle update MODEL DATASET, or MODEL --back."
        )
    model = load(command.model)
    version = Dataset(command.dataset).version()
    runs, notes = _new_runs(model, command.dataset, command.since)
    if command.dry_run:
        watch = DriftWatch(model)
        watch.replay(runs)
        return Drifts.of(watch, model.label)
    target = command.output or command.model
    is_old = not notes and not len(runs.ok()) and version == model.metadata.get("data_version")
    if is_old and command.since is None:
        text = f"{command.model}: nothing is new in {command.dataset}."
        return Report(_document(target, model, {}, version), [text])
    before = None if model.kept is None else _error_of(model, model.kept.unknown(runs))
    newer = model.update(
        runs,
        chosen=command.chosen,
        seed=command.seed,
        updated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        data_version=version,
    )
    if command.output is None:
        save_over(newer, target)
    else:
        newer.save(target)
    record = newer.metadata["updates"][-1]
    document = _document(target, newer, record, version) | {"error_before": before}
    return Report(document, _lines(target, newer, record, before), notes=notes)


def _lines(target: Path, model: Fitted, record: dict[str, Any], before: float | None) -> list[str]:
    counts = {kind: record[f"new_{kind}s"] for kind in ("workload", "platform")}
    names = " and ".join(f"{count} new {kind}s" for kind, count in counts.items() if count)
    lines = [
        f"{target}: learned {record['learned']} of {record['runs']} new runs, "
        f"{record['calibration']} are held out to calibrate bounds on{names and f'; {names}'}."
    ]
    if record["known"]:
        lines.append(f"It knew {record['known']} more already, which were not learned again.")
    if before is not None:
        lines.append(f"Before, it was off by {before:.1%} about those of names it knew (median).")
    return lines + [
        f"{one.category}: bounds up to {one.highest:.4g}, from {one.n} runs"
        for one in model.calibration.summary()
    ]


def _new_runs(model: Fitted, dataset: Path, since: str | None) -> tuple[Runs, list[str]]:
    """Find (the runs to learn, remarks)."""
    from jostle.data import read_runs, runs_since

    if since is not None:
        return runs_since(dataset, since), []
    if known := model.metadata.get("data_version"):
        try:
            return runs_since(dataset, str(known)), []
        except UsageError:
            pass
    return read_runs(dataset), [
        f"note: {dataset} is not the dataset that the model was fitted on with more runs in it, so all "
        "of its runs are taken as new but those that the model knows by their run_id"
    ]


def _error_of(model: Fitted, runs: Runs) -> float | None:
    """Compute the median relative error on runs of known names before they are learned; None without any."""
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


def _document(target: Path, model: Fitted, record: dict[str, Any], version: str) -> dict[str, Any]:
    keys = ("runs", "known", "learned", "calibration", "new_workloads", "new_platforms")
    return {
        "schema": "update/v1",
        "model": str(target),
        "dataset_version": version,
        "updates": len(model.metadata.get("updates", [])),
        **{key: record.get(key, 0) for key in keys},
    }
