"""A calibrated model: what a method has learned, with the bounds fitted to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle._base.report import Glance
from jostle._base.tabular import index_of
from jostle._base.tensors import read_document, write_document
from jostle._base.untrusted import understood
from jostle.conformal import Bounds, Calibration, NameMix, uncertainty_of
from jostle.errors import (
    BadData,
    JostleError,
    UnreadableFile,
    UsageError,
    require_colocations,
    require_runs,
    require_whole,
)
from jostle.learn import method_named
from jostle.models._questions_of import questions_of
from jostle.models.timelines._timeline_calibration import TimelineCalibration

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from jostle.models._answered_table import AnsweredTable
    from jostle.models._drift_adjusted import DriftCorrection
    from jostle.models._explanation import Why
    from jostle.models._model_plots import ModelPlots
    from jostle.models._residual_baseline import ResidualBaseline
    from jostle.models.updates._replay_buffer import ReplayBuffer
    from jostle.models.updates._suggest_runs import Suggestions

# Rises with every change of what is saved; a model of another schema is refused.
SCHEMA = "model/v27"
METADATA = (
    *("method", "settings", "seed", "jostle_version", "data_version", "fitted_at"),
    *("calibrated_by", "by", "new_names", "runs", "updates", "observed"),
)
AGAIN = "Fit it again with jostle fit."


class Model(Glance):
    """Fitted model, as `fit` and `load` return it.

    predictor: what the method learned (jostle.learn.Fitted). metadata: method, settings, seed, version of
    Jostle and of the data, time of fitting where it was given, and counts of runs, kept with it. usual: what
    errors were like when it was fitted, by name, which drifts are told from; kept: runs that it needs to
    learn more later. Both are None in models of before that, and `kept` where the method cannot.
    acts: what was told of earlier jobs of its log over time, and how it came out; None without a log.
    moved: how far names have drifted since, which answers follow (DriftWatch.following); it is not saved.
    """

    def __init__(
        self,
        predictor: Any,
        calibration: Calibration,
        metadata: dict[str, Any],
        usual: ResidualBaseline | None = None,
        kept: ReplayBuffer | Callable[[], ReplayBuffer | None] | None = None,
        acts: TimelineCalibration | None = None,
        campaign_calibration: Calibration | None = None,
    ) -> None:
        self.predictor = predictor
        self.acts = acts
        self.calibration = calibration
        self.metadata = metadata
        self.usual = usual
        self._kept = kept
        self.moved: DriftCorrection | None = None
        # Of answers about a campaign that is named; None where campaigns tell nothing, or are not known.
        self.campaign_calibration = campaign_calibration
        # What every answer says of it; its version is the checksum of its files, so only a saved one has it.
        self.label: dict[str, Any] = {
            "version": None,
            "data_version": str(metadata.get("data_version") or "unknown"),
        }
        if cost := self.campaign_error_ratio:
            self.label["unknown_campaign_error_ratio"] = cost

    @property
    def kept(self) -> ReplayBuffer | None:
        """Runs that it keeps to learn more later; read when they are first needed."""
        if callable(self._kept):
            self._kept = self._kept()
        return self._kept

    @property
    def as_fitted(self) -> Model:
        """The same model, its answers not moved by what has drifted since."""
        if self.moved is None:
            return self
        model = copy(self)
        model.moved = None
        return model

    def for_mix(
        self,
        mix: Mapping[str, float] | Colocations,
        mix_by: str = "platform",
        *,
        measured: Mapping[str, float] | None = None,
    ) -> Model:
        """Return the same model with bounds that hold over another mix of names than was measured. Within a
        name, runs must be drawn as they were measured. Such a model is not saved.

        mix: share of each platform (or workload) in what will be asked, of any sum, or co-locations that have
        the mix. A name without a share has no bound (outcome `outside_mix`).
        mix_by: `platform` or `workload`.
        measured: share of each name among measured runs; bounds are narrower. Raises UsageError, UnknownName.
        """
        if isinstance(mix, Mapping):
            names = getattr(self.predictor, f"{mix_by}_names", ())
            name_mix = NameMix.of(mix_by, mix, names, measured)
        else:
            require_colocations(mix)
            category = self.calibration.categories(self.predictor, mix)
            name_mix = NameMix.like(mix_by, mix, category)
        model = copy(self)
        model.calibration, model.acts = self.calibration.over(name_mix), None
        return model

    def for_campaign(self, name: str) -> Model:
        """Return the same model, about one of the campaigns (`campaign_names`) that it learned from. Such a
        model is not saved. Raises UsageError, UnknownName."""
        if not self.campaign_names:
            raise UsageError(
                "the model knows no campaigns",
                fix="Fit the default to runs of several campaigns (the column campaign).",
            )
        model = copy(self)
        model.predictor = self.predictor.for_campaign(name)
        model.calibration = self.campaign_calibration or self.calibration
        model.label = {k: v for k, v in self.label.items() if k != "unknown_campaign_error_ratio"}
        model.label["campaign"] = name
        return model

    @property
    def campaign_names(self) -> tuple[str, ...]:
        """Campaigns that a question may name."""
        return getattr(self.predictor, "campaign_names", ())

    @property
    def campaign_error_ratio(self) -> float:
        """The mean relative error of an answer, because its question named no campaign; 0 where none is."""
        return getattr(self.predictor, "campaign_error_ratio", 0.0)

    def _facts(self) -> list[tuple[str, str]]:
        """List the method, the names it knows, what it was made of, and how sure it can be."""
        runs = self.metadata.get("runs", {})
        facts = [
            ("method", str(self.metadata.get("method"))),
            ("workloads", f"{len(self.predictor.workload_names)}"),
            ("platforms", f"{len(self.predictor.platform_names)}"),
            ("learned from", f"{runs.get('fitted')} runs"),
            ("calibrated on", f"{runs.get('calibration')} runs"),
        ]
        for one in self.calibration.summary():
            name = f"{one.category} {one.name_group}".strip()
            facts.append((f"{name}, bounds up to", f"{one.highest:.4g}"))
        for key, name in (("data_version", "data version"), ("fitted_at", "fitted at")):
            if self.metadata.get(key):
                facts.append((name, str(self.metadata[key])))
        return facts

    def predict(self, colocations: Any) -> np.ndarray:
        """Predict runtimes. Returns (n,) seconds, in the order of the input; NaN for a co-location without an
        answer.

        colocations: colocations, whose co-runners are there throughout; Timelines, from the start of each run
        to its end; or a table (no file) as of `answer`, with all rows valid. Columns named like the model's
        covariates are used.
        Raises UnknownName if the model has never met a name and cannot answer about it; UsageError if
        co-runners may arrive later, and the model learned from no log.
        """
        colocations = questions_of(self, colocations)
        if hasattr(colocations, "elapsed_seconds"):
            from jostle.models.timelines._timeline_predict import told

            return told(self, colocations)
        require_colocations(colocations)
        seconds = self.predictor.predict(colocations)
        if self.moved is None:
            return seconds
        return seconds * np.exp(self.moved.log_ratio(colocations)[0])

    def bound(
        self, colocations: Any, confidence: float = DEFAULT_CONFIDENCE, *, tail: bool = False
    ) -> Bounds:
        """Return seconds that are not exceeded with probability `confidence`, and what stands behind each.

        colocations: as of `predict`.
        tail: beyond what calibration runs can promise, extrapolate from their largest errors (outcome
        `model_based`) instead of giving no bound. It takes 2000 calibration runs.
        """
        index, colocations = index_of(colocations), questions_of(self, colocations, throughout=tail)
        _, bounds = self.predict_and_bound(colocations, confidence, tail=tail)
        return replace(bounds, index=index)

    def predict_and_bound(
        self, colocations: Any, confidence: float = DEFAULT_CONFIDENCE, *, tail: bool = False
    ) -> tuple[np.ndarray, Bounds]:
        """Return ((n,) predicted seconds, bounds): one call takes less time than `predict` and `bound` do.
        It takes the arguments of `bound`."""
        colocations = questions_of(self, colocations, throughout=tail)
        if hasattr(colocations, "elapsed_seconds"):
            from jostle.models.timelines._timeline_predict import bounded

            return bounded(self, colocations, confidence)
        require_colocations(colocations)
        about = uncertainty_of(self.predictor, colocations)
        bounds = self.calibration.bound(
            self.predictor, colocations, confidence, tail=tail, told=about
        )
        seconds = about.seconds
        if seconds is None:
            seconds = self.predictor.predict(colocations)
        if self.moved is None:
            return seconds, bounds
        seconds = seconds * np.exp(self.moved.log_ratio(colocations)[0])
        return seconds, self.moved.bounded(self, colocations, bounds)

    def answer(
        self,
        table: Any,
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        columns: Mapping[str, str] | None = None,
        separator: str = ";",
        tail: bool = False,
        mix_by: str | None = None,
        throughout: bool = False,
    ) -> AnsweredTable:
        """Answer every row of a table, or say why it cannot be answered: a bad row spoils no other.

        table: a CSV, Parquet, JSON or Arrow file, a pandas, polars or Arrow table, a mapping of columns, or a
        list of mappings. Its columns are workload, platform (not needed if the model knows one) and
        corunners; others are kept.
        columns: what the columns are called in the table, such as ``{"workload": "job"}``.
        separator: between the names of co-runners in one cell.
        tail: as of `bound`.
        mix_by: `platform` or `workload`, for bounds that hold over the mix of the answered rows, see
        `for_mix`.
        throughout: the co-runners stay to the end and nobody else arrives; so it is with `tail` and `mix_by`.
        Raises UnreadableFile, BadData, UnknownName if the table as a whole is wrong; UsageError if the
        confidence is.
        """
        from jostle.models._answered_table import answers

        return answers(
            self,
            table,
            confidence,
            columns,
            separator,
            tail=tail,
            mix_by=mix_by,
            throughout=throughout,
        )

    def explain(
        self,
        colocation: Any,
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        runs: Runs | None = None,
    ) -> Why:
        """Explain one answer: what each co-runner costs, the runs behind it, and the largest doubt.

        colocation: one co-location, or a table of one row.
        runs: measured runs, to find the co-location most like it.
        Raises UsageError if there are several co-locations.
        """
        from jostle.models._explanation import why

        colocation = questions_of(self, colocation)
        if not hasattr(colocation, "elapsed_seconds"):
            require_colocations(colocation)
        if runs is not None:
            require_runs(runs)
        return why(self, colocation, confidence, runs)

    def update(
        self,
        runs: Runs,
        *,
        chosen: bool = False,
        seed: int = 0,
        updated_at: str | None = None,
        data_version: str | None = None,
    ) -> Model:
        """Return a new model that has learned these runs as well; this one stays as it is.

        Names that the model has never met become known by their features and runs. Bounds are calibrated
        anew, on the
        runs that were held out before and on a fifth of the new windows. The same runs and seed give the same
        model.

        runs: new runs; those with a known run_id are passed over.
        chosen: the runs were chosen rather than drawn, such as those of `suggest`: none calibrates bounds.
        updated_at, data_version: stored with the model.
        Raises UsageError if the method cannot learn so, or the model keeps no runs.
        """
        from jostle.models.timelines._timeline_training import taken_by
        from jostle.models.updates._update_model import updated

        require_runs(runs)
        require_whole("seed", seed)
        changed = not bool(runs.ok().is_steady.all())
        before, runs = runs, taken_by(self, runs)
        stamp = {"updated_at": updated_at, "data_version": data_version}
        model = updated(self, runs, seed, chosen, stamp)
        model.acts = TimelineCalibration.updated(self, model, before, seed, chosen)
        if changed or self.calibration.has_changing_corunners:
            model.calibration = replace(model.calibration, has_changing_corunners=True)
        return model

    def suggest(
        self,
        candidates: Colocations | None = None,
        *,
        asked: Colocations | None = None,
        most: int = 10,
        seed: int = 0,
    ) -> Suggestions:
        """Suggest the runs that would narrow the answers to `asked` most, the first one first.

        Learn such runs with ``update(runs, chosen=True)``: they were not drawn, so none may calibrate.

        candidates: runs that can be measured. None: those of `asked`.
        asked: what is to be answered. None: names with few runs, alone everywhere, or every workload on every
        platform.
        most: how many runs to suggest.
        Raises UsageError if the method cannot say; UnknownName.
        """
        from jostle.models.updates._suggest_runs import suggest

        for given in (candidates, asked):
            if given is not None:
                require_colocations(given)
        require_whole("most", most, 1)
        require_whole("seed", seed)
        return suggest(self, candidates, asked, most, seed)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the fit that its user should know."""
        counts, notes = self.metadata.get("runs", {}), list(self.predictor.notes)
        if chosen := counts.get("chosen", 0):
            notes.append(
                f"{chosen} runs were chosen, a random sample of nothing: learned from, never calibrated on"
            )
        if changing := counts.get("changing", 0):
            notes.append(
                f"{changing} runs changed company: each counts in that of its longest stretch, in the time "
                "that the law of rates gives it there, for bounds, too"
            )
        return tuple(notes)

    @property
    def plot(self) -> ModelPlots:
        """Pictures in one line each: `model.plot.slowdowns(runs)`, `.accuracy(runs)`, `.platforms(workload)`,
        `.confidences(workload, platform)`, `.pairs(platform)`; all return matplotlib axes."""
        from jostle.models._model_plots import ModelPlots

        return ModelPlots(self)

    def save(self, path: str | os.PathLike[str], *, only_over: str | None = None) -> None:
        """Write `model.json` and its tensors into a folder, replacing a model there.

        path: folder.
        only_over: checksum of the model that must be there, "" for none. None: any.
        Raises NotPermitted, UnreadableFile if the disk does not take it, or another model is there.
        """
        parts = {
            "predictor": self.predictor,
            "bounds": self.calibration,
            "usual": self.usual,
            "kept": self.kept,
            "acts": self.acts,
            "campaign_calibration": self.campaign_calibration,
        }
        tensors: dict[str, np.ndarray] = {}
        document = dict(self.metadata)
        for name, part in parts.items():
            if part is not None:
                arrays, document[name] = part.to_arrays()
                tensors |= {f"{name}.{key}": value for key, value in arrays.items()}
        write_document(path, "model", SCHEMA, document, tensors, only_over)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model. Raises UnreadableFile for a missing, truncated or changed one, UsageError if the package
    that brings its method is not installed.

    Parameters
    ----------
    path :
        Folder that `Model.save` or `jostle fit` wrote.
    """
    try:
        document, tensors = read_document(path, "model", SCHEMA, fix=AGAIN)
    except BadData as error:
        is_data = os.path.isdir(os.path.join(path, "runs"))
        fix = f"It is a dataset: jostle fit {path} -o MODEL learns one." if is_data else AGAIN
        raise type(error)(error.what, where=error.where, fix=fix) from None
    from jostle.models._residual_baseline import ResidualBaseline
    from jostle.models.updates._replay_buffer import ReplayBuffer

    part = partial(_part, document, tensors, path)
    method = method_named(str(document.get("method")))
    predictor = part("predictor", method.restore)
    calibration, usual = (
        part("bounds", Calibration.from_arrays),
        part("usual", ResidualBaseline.from_arrays),
    )
    acts = part("acts", TimelineCalibration.from_arrays)
    if predictor is None or calibration is None:
        raise UnreadableFile("not a readable model: a part is missing", where=str(path), fix=AGAIN)
    metadata = {k: document[k] for k in METADATA if k in document}
    kept = partial(part, "kept", ReplayBuffer.from_arrays)  # read when it is first needed
    campaign_calibration = part("campaign_calibration", Calibration.from_arrays)
    model = Model(predictor, calibration, metadata, usual, kept, acts, campaign_calibration)
    model.label["version"] = document["sha256"][:16]
    with understood(path, AGAIN), suppress(JostleError), np.errstate(all="ignore"):
        model.predict_and_bound(_ends(predictor), DEFAULT_CONFIDENCE)
    return model


def _ends(predictor: Any) -> Colocations:
    """Make questions of the first and the last workload on the first and the last platform, alone and beside
    each other: arrays that do not fit together show at once, not at a later question."""
    from jostle.data import Colocations

    first, last = predictor.workload_names[0], predictor.workload_names[-1]
    return Colocations.from_columns(
        workload=[first, last] * 3,
        platform=[predictor.platform_names[0], predictor.platform_names[-1]] * 3,
        corunners=[[], [], [last], [first], [first, last], [first, last]],
    )


def _part(
    document: Mapping[str, Any],
    tensors: dict[str, Any],
    path: str | os.PathLike[str],
    name: str,
    restore: Callable[..., Any],
) -> Any:
    """Return None where it was not saved. Raises UnreadableFile, whatever is wrong with it."""
    if document.get(name) is None:
        return None
    with understood(path, AGAIN):
        mine = {key: value for key, value in tensors.items() if key.startswith(f"{name}.")}
        return restore({k.partition(".")[2]: v for k, v in mine.items()}, document[name])
