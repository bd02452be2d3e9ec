"""What `fit` gives, asked about runs that it did not see, beside simple rules that saw the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.documents import VerbAnswer
from jostle._base.option_fields import (
    Confidence,
    Flag,
    Limits,
    NoOption,
    check_settings,
    settings_of_texts,
)
from jostle._base.progress import Progress, share_of
from jostle._base.report import Report, Table, percent
from jostle.data import Runs
from jostle.errors import MissingExtra, NotEnoughRuns
from jostle.learn import Data, Method, default_method, method_named, method_of
from jostle.operations.evaluation._error_measures import (
    bound_measures,
    corun_groups,
    error_measures,
)
from jostle.operations.evaluation._left_out_runs import LeaveOut, left_out_runs

if TYPE_CHECKING:
    from jostle.models import Model

MEASURES = ("mape", "median_error", "coverage", "margin", "no_bound")
HEADS = {
    "mape": "mean error",
    "median_error": "median error",
    "coverage": "covers",
    "margin": "margin",
    "no_bound": "no bound",
}
LEFT_OUT = {
    "row": "windows of runs",
    "set": "sets of workloads",
    "name": "names of workloads, beside others",
}


@dataclass(frozen=True)
class EvaluateQuestion:
    """Fit on a part of a dataset and ask about the rest: errors and bounds of what fit gives, beside simple
    rules that see the same runs and have bounds of the same kind, and quantiles by name and of boosted trees.

    Names that stand only in the rest are answered as unknown, and counted.
    """

    method: Annotated[
        str | None, "The method, by the name that jostle fit knows.  [default: as jostle fit]"
    ] = None
    settings: Annotated[
        tuple[str, ...], "A setting of the method, NAME=VALUE; repeat for more.", Flag("--set")
    ] = ()
    leave_out: Annotated[
        LeaveOut,
        "What is left out as one: rows, those measured together together; sets of workloads, on all "
        "platforms; or all runs beside others of names of workloads.",
    ] = "row"
    share: Annotated[float, "How much of the rows, sets or names is left out."] = 0.25
    rules: Annotated[bool, "Whether simple rules stand beside it.", NoOption()] = True
    draws: Annotated[int, "How often, each with a seed one higher; means are told.", Limits(1)] = 1
    confidence: Confidence = DEFAULT_CONFIDENCE
    seed: Annotated[int, "Of what is left out, and of the fits."] = 0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        check_settings(self)


@dataclass(frozen=True)
class Evaluated:
    """Scores of one method or rule on one group of runs, means over the draws; NaN where nothing can be told.

    name: of the method or rule. group: `all`, `solo`, `corun`, `corun_2`, ... runs: that were asked about
    and answered by every method. mape, median_error: of |predicted / true - 1|. coverage, margin: of the
    bounds. no_bound: share without one.
    """

    name: str
    group: str
    runs: float
    mape: float
    median_error: float
    coverage: float
    margin: float
    no_bound: float


@dataclass(frozen=True, repr=False)
class Evaluation(VerbAnswer):
    """Scores of the default and of simple rules on held-out runs.

    asked: runs that were left out, in all draws. unknown: of these, with a name that no fit had seen.
    unanswered: of these, known but without an answer by some method. of_data: what was read. left_aside:
    rules that could not be learned, and why.
    """

    method: str
    leave_out: str
    share: float
    draws: int
    confidence: float
    seed: int
    asked: int
    unknown: int
    unanswered: int
    results: tuple[Evaluated, ...]
    of_data: str | None = None
    data_version: str | None = None
    left_aside: tuple[str, ...] = ()
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "evaluate/v2"

    def of(self, group: str = "all") -> tuple[Evaluated, ...]:
        """Return the results on one group of runs, the method's first."""
        return tuple(one for one in self.results if one.group == group)

    @property
    def tables(self) -> tuple[Table, ...]:
        """A table for every group of runs, the whole first."""
        groups = dict.fromkeys(one.group for one in self.results)
        return tuple(
            Table.of(
                self.of(group),
                {group_in_words(group): self._called, **{HEADS[n]: _cell(n) for n in MEASURES}},
            )
            for group in groups
        )

    def _called(self, one: Evaluated) -> str:
        """Name a rule as it is, and the method that is evaluated as Jostle's."""
        if one.name != self.method:
            return one.name
        return "Jostle, by default" if self.method == "ensemble" else f"Jostle, {self.method}"

    @property
    def sentence(self) -> str:
        """Say how many runs were asked about, how many have no answer, and what the columns hold."""
        text = (
            f"{self.asked} runs were asked about: {self.share:.0%} of the {LEFT_OUT[self.leave_out]}, which "
            f"no fit saw. covers: the share of them under their bound at {self.confidence:g}; margin: how "
            "far bounds lie above the time."
        )
        if self.unknown:
            text += f" Of {self.unknown} a name stands nowhere else: they are unknown."
        if self.unanswered:
            text += f" {self.unanswered} more have no answer by some of these, and are not counted."
        return text

    def report(self) -> Report:
        """Write the results as tables, one for each group of runs."""
        notes = [f"left aside: {text}" for text in self.left_aside]
        return Report(self.to_document(), [*self.tables, self.sentence], notes=notes)


def evaluate(
    data: Any,
    method: Method[Any] | type[Method[Any]] | str | None = None,
    *,
    leave_out: str = "row",
    share: float = 0.25,
    rules: bool = True,
    draws: int = 1,
    confidence: float = DEFAULT_CONFIDENCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare what `fit` gives with simple rules on runs that neither has seen.

    Parameters
    ----------
    data :
        What :func:`fit` takes.
    method :
        As :func:`fit` takes it. None: the default.
    leave_out :
        `row`, `set` or `name`, see :func:`left_out_runs`.
    share :
        Share of rows, sets or names that is left out, between 0 and 1.
    rules :
        Whether simple rules are fitted to the same runs, with bounds of the same kind.
    draws :
        How often, with seeds `seed`, `seed + 1`, ...; results are means.
    confidence :
        Of the bounds, under 1.
    seed :
        Of what is left out, and of the fits.
    progress :
        Called with (done, total, loss).

    Returns
    -------
    Evaluation

    Raises
    ------
    UsageError, NotEnoughRuns
        And what reading and fitting raise.
    """
    confidence = float(exact_confidence(confidence))
    source = Data.of(data)
    chosen = method_of(default_method(source) if method is None else method)
    runs = source.runs.ok()
    rivals: dict[str, Any] = {chosen.name: chosen}
    if rules:
        rivals |= _rules()
    aside: dict[str, str] = {}
    tally = _Tally(list(rivals), confidence)
    total = draws * len(rivals)
    for draw in range(draws):
        seen, asked = left_out_runs(runs, leave_out, share, seed + draw)
        models: dict[str, Any] = {}
        for number, (name, rival) in enumerate(rivals.items()):
            own = share_of(progress, draw * len(rivals) + number, total)
            try:
                if isinstance(rival, type):
                    models[name] = rival.of(seen, seed + draw)
                else:
                    models[name] = _fit(source.with_runs(seen), rival, seed + draw, own)
            except (NotEnoughRuns, MissingExtra) as error:
                if name == chosen.name:
                    raise
                aside[name] = str(error)
        tally.add(models, asked)
    if not tally.rows:
        raise NotEnoughRuns("nothing that was left out has an answer", fix="Measure more runs.")
    return Evaluation(
        chosen.name,
        leave_out,
        share,
        draws,
        confidence,
        seed,
        tally.asked,
        tally.unknown,
        tally.unanswered,
        tally.results(),
        None if source.path is None else str(source.path),
        source.version,
        tuple(f"{name}: {why}" for name, why in aside.items()),
    )


def evaluated(dataset: Any, question: EvaluateQuestion, progress: Progress) -> Evaluation:
    """Answer the question about a dataset. Raises UsageError for an unknown method or setting."""
    method: Any = question.method
    if question.settings:
        name = question.method or default_method(Data.of(dataset))
        method = settings_of_texts(method_named(name), question.settings)
    rest = {name: value for name, value in vars(question).items() if name != "settings"}
    return evaluate(dataset, **(rest | {"method": method}), progress=progress)


def _rules() -> dict[str, Any]:
    from jostle.operations.evaluation._quantile_rivals import quantile_rivals
    from jostle.operations.evaluation._rule_rivals import RULES, SimpleRule

    rules = {title: SimpleRule(label) for title, label in RULES.items()}
    return rules | quantile_rivals()


def _fit(data: Data, method: Any, seed: int, progress: Progress | None) -> Model:
    from jostle.models import fit

    return fit(data, method, seed=seed, progress=progress)


class _Tally:
    """Adds up what methods answer about runs that were left out, draw by draw."""

    def __init__(self, names: Sequence[str], confidence: float) -> None:
        self.names, self.confidence = names, confidence
        self.asked = self.unknown = self.unanswered = 0
        self.rows: list[Evaluated] = []

    def add(self, models: dict[str, Any], asked: Runs) -> None:
        """Measure all models on the runs that all of them answer."""
        predictor = next(iter(models.values())).predictor
        known = asked.colocations.known_in(predictor.workload_names, predictor.platform_names)
        self.asked += len(asked)
        self.unknown += int((~known).sum())
        asked = asked.take(np.flatnonzero(known))
        if not len(asked):
            return
        answers = {
            name: model.predict_and_bound(asked.colocations, self.confidence)
            for name, model in models.items()
        }
        predicted = {name: np.asarray(both[0], float) for name, both in answers.items()}
        bounds = {name: np.asarray(getattr(b, "seconds", b)) for name, (_, b) in answers.items()}
        silent = [name for name, one in predicted.items() if not np.isfinite(one).any()]
        answered = np.all(
            [np.isfinite(one) for name, one in predicted.items() if name not in silent], axis=0
        )
        self.unanswered += int((~answered).sum())
        groups = {"all": np.ones(len(asked), bool)} | corun_groups(asked)
        for group, inside in groups.items():
            at = np.flatnonzero(inside & answered)
            for name in models if len(at) else ():
                if name not in silent:
                    actual, bound = asked.runtime_seconds[at], bounds[name][at]
                    found = error_measures(predicted[name][at], actual)
                    found |= bound_measures(bound, actual)
                    values = (found[one] for one in MEASURES)
                    self.rows.append(Evaluated(name, group, float(len(at)), *values))

    def results(self) -> tuple[Evaluated, ...]:
        """Return means over the draws, of each group the methods in their order."""
        groups = dict.fromkeys(one.group for one in self.rows)
        out = []
        for group in groups if len(groups) != 2 else ("all",):  # one group is the whole
            for name in self.names:
                mine = [one for one in self.rows if (one.name, one.group) == (name, group)]
                if mine:
                    means = (_mean([getattr(one, m) for one in mine]) for m in ("runs", *MEASURES))
                    out.append(Evaluated(name, group, *means))
        return tuple(out)


def group_in_words(group: str) -> str:
    """Write the name of a group of runs for people."""
    plain = {"all": "all runs", "solo": "alone", "corun": "beside others"}
    return plain.get(group) or f"beside {group.removeprefix('corun_')}"


def _mean(values: Sequence[float]) -> float:
    finite = [value for value in values if np.isfinite(value)]
    return float(np.mean(finite)) if finite else float("nan")


def _cell(name: str) -> Callable[[Evaluated], str]:
    return lambda one: percent(getattr(one, name))
