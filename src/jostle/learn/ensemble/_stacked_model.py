"""What the base learners of a campaign say together, answered by NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from jostle._base.tensors import Serializable
from jostle.conformal import Uncertainty
from jostle.errors import UnknownName
from jostle.learn.contract._run_counts import Evidence, RunCounts, mixed_bits
from jostle.learn.ensemble._base_learner import FittedBaseLearner, learner_named
from jostle.learn.ensemble._campaign_effects import CampaignEffects
from jostle.learn.ensemble._degree_extrapolation import DegreeExtrapolation
from jostle.learn.ensemble._folds import NEW_NAME, kinds_of
from jostle.learn.ensemble._run_prior import RunPrior
from jostle.learn.ensemble._set_residuals import SetResiduals
from jostle.learn.training._set_keys import members_key
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle._base.report import Report
    from jostle.data import Colocations, Runs

FLOOR = 0.02  # of the width of a bound, in log seconds
PREFIX = "learner"
ROWS_AT_ONCE = 50_000  # that are answered in one step
USUAL = -1  # the campaign whose effects are none


@dataclass(frozen=True)
class EnsembleState(Serializable):
    """All that an ensemble is but its base learners.

    workload_names, platform_names: sorted. workload_code, platform_code: (names,) their codes in the
    campaign. usual_seconds: () that 1 stands for in the base learners' times; unit: () the extra time that
    counts as 1. log_solo: (platforms, workloads) in the campaign's codes, NaN where nothing tells. sets: (s,)
    ascending keys of the sets of workloads that ran. sets_of_names: (workloads,) in how many of them. labels:
    names of the k answers; weight: (kinds, most + 1, k). memory: residuals of measured co-locations. more:
    answers about more co-runners than any run had; None: the base learners do. prior: answers about names
    never met, and covariates. campaign_effects: None if all runs are of one campaign.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload_code: np.ndarray
    platform_code: np.ndarray
    usual_seconds: np.ndarray
    unit: np.ndarray
    log_solo: np.ndarray
    cell_table: CellTable
    sets: np.ndarray
    sets_of_names: np.ndarray
    labels: tuple[str, ...]
    weight: np.ndarray
    counts: RunCounts
    memory: SetResiduals | None = None
    more: DegreeExtrapolation | None = None
    campaign_effects: CampaignEffects | None = None
    prior: RunPrior | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class FittedEnsemble:
    """Predicts by all that its base learners say. Immutable. base learners: by their names. campaign: the
    code of the one that is asked about, None where none is named. Fields that a subclass adds are tuples of
    names."""

    state: EnsembleState
    learners: Mapping[str, FittedBaseLearner]
    campaign: int | None = None

    @property
    def workload_names(self) -> tuple[str, ...]:
        return self.state.workload_names

    @property
    def platform_names(self) -> tuple[str, ...]:
        return self.state.platform_names

    @property
    def campaign_names(self) -> tuple[str, ...]:
        """Those that a question may name: campaigns of the runs, where there are several."""
        return () if self.state.campaign_effects is None else self.state.campaign_effects.names

    @property
    def campaigns_differ(self) -> bool:
        """Whether runs take longer or shorter in some campaigns."""
        effects = self.state.campaign_effects
        return effects is not None and effects.tell

    @property
    def campaign_error_ratio(self) -> float:
        """The mean relative error that a question bears because it names no campaign."""
        effects = self.state.campaign_effects
        return 0.0 if effects is None or self.campaign is not None else float(effects.cost)

    def for_campaign(self, name: str) -> FittedEnsemble:
        """Return the model for questions about that campaign. Raises UnknownName."""
        if name not in self.campaign_names:
            raise UnknownName("campaign", name, self.campaign_names)
        return replace(self, campaign=self.campaign_names.index(name))

    def for_usual_campaign(self) -> FittedEnsemble:
        """Return the model for questions about runs that `in_usual_campaign` gives."""
        return replace(self, campaign=USUAL)

    def in_usual_campaign(self, runs: Runs) -> Runs:
        """Scale runs to what they would have taken in the usual campaign; of one never met they stay."""
        effects = self.state.campaign_effects
        if effects is None or not effects.tell:
            return runs
        place = {name: at for at, name in enumerate(self.platform_names)}
        known = [place[name] for name in runs.colocations.platform_names]
        platform = self.state.platform_code[known][runs.colocations.platform]
        return effects.removed(runs, platform)

    def in_unknown_campaign(self, runs: Runs, seed: Sequence[int]) -> Runs:
        """Scale runs of the usual campaign to what they may take in ones never met."""
        effects = self.state.campaign_effects
        return runs if effects is None else effects.in_unknown(runs, seed)

    @property
    def covariate_names(self) -> tuple[str, ...]:
        """What of a run that is known before it starts counts in its prediction."""
        prior = self.state.prior
        return () if prior is None else tuple(form.name for form in prior.forms)

    @property
    def answers_new_names(self) -> bool:
        """Whether names that were never met are answered: as typical ones, and by their covariates."""
        prior = self.state.prior
        return prior is not None and min(prior.typical) >= 0

    @property
    def notes(self) -> tuple[str, ...]:
        return self.state.notes

    def measured(self, asked: Colocations) -> np.ndarray:
        """Tell which co-locations are of sets that were measured there, (n,) bool."""
        out, memory = np.zeros(len(asked), bool), self.state.memory
        known = np.flatnonzero(asked.known_in(self.workload_names, self.platform_names))
        if memory is not None and len(known):
            out[known] = memory.has(self._rows(asked.take(known))[0])
        return out

    def evidence(self, asked: Colocations) -> Evidence:
        """Count the runs learned from that tell of each co-location."""
        return self.state.counts.evidence(asked)

    def predict(self, asked: Colocations) -> np.ndarray:
        """Predict (n,) seconds; NaN if nothing tells the workload's time alone. Raises UnknownName."""
        alone, slowdown, _ = self._logs(asked)
        return np.exp(alone + slowdown)

    def slowdown(self, asked: Colocations) -> np.ndarray:
        """Predict (n,) runtimes over runtimes alone, 1 without co-runners; NaN as in `predict`."""
        alone, slowdown, _ = self._logs(asked)
        return np.exp(np.where(np.isfinite(alone), slowdown, np.nan))

    def uncertainty(self, asked: Colocations) -> Uncertainty:
        """Errors may grow with the slowdown, and with how far the base learners are apart."""
        alone, slowdown, apart = self._logs(asked)
        log = alone + slowdown
        widths = np.log(FLOOR + np.nan_to_num(np.abs(np.stack([slowdown, apart]))))
        return Uncertainty(log, widths, np.zeros(2), np.exp(log))

    def shares(self, asked: Colocations) -> list[dict[str, float]]:
        """List the weights of the answers, the greatest first, for each co-location."""
        rows, beside = self._rows(asked)
        weight = np.zeros((len(asked), len(self.state.labels)))
        weight[beside] = self._weight_of(rows.take(beside)).T
        out = []
        for one in weight:
            order = np.argsort(-one, kind="stable")
            out.append({self.state.labels[at]: float(one[at]) for at in order if one[at] > 0})
        return out

    def seconds_of_each(self, asked: Colocations) -> dict[str, float]:
        """Seconds by each of the answers, of the first co-location; without what was measured of it."""
        rows, beside = self._rows(asked.take(np.zeros(1, np.int64)))
        alone = self._log_alone(rows)
        if not beside.any():
            return {}
        answer = np.exp(alone + self.answers(rows))[:, 0]
        return dict(zip(self.state.labels, answer.tolist(), strict=True))

    def explain(self, asked: Colocations) -> Report:
        """Explain what each co-runner adds, which base learners count and what each of them predicts.

        Raises UsageError for more or fewer co-locations than one, UnknownName.
        """
        from jostle.learn.ensemble._explain_ensemble import explained

        return explained(self, asked)

    def apart_from(
        self, asked: Colocations, labels: tuple[str, ...], is_new: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n,) weighted log slowdowns of all answers but these labels, plus the memory of measured
        sets; (k, n) weights of the labels). is_new: whether one of the names was never met."""
        rows, _ = self._rows(asked)
        w, degree = self.state, np.minimum(rows.degree, self.state.weight.shape[1] - 1)
        weight = w.weight[NEW_NAME, degree].T if is_new else self._weight_of(rows)
        others = np.array([label not in labels for label in w.labels], bool)
        log = np.einsum("kn,kn->n", weight[others], self.answers(rows)[others])
        if w.memory is not None and not is_new:
            log = log + w.memory.of(rows)
        own = dict(zip(w.labels, weight, strict=True))
        none = np.zeros(len(rows))
        return log, np.array([own.get(label, none) for label in labels]).reshape(-1, len(rows))

    def _codes(self, asked: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Code names as the campaign does; names never met are taken for typical ones. Raises UnknownName if
        nothing tells what is typical."""
        w = self.state
        if w.prior is None or not self.answers_new_names:
            workload, platform, corunner = asked.codes_in(w.workload_names, w.platform_names)
        else:
            workload, platform, corunner = asked.recode(w.workload_names, w.platform_names)
            of_target, of_corunner = (
                w.workload_names.index(w.prior.workload_names[one]) for one in w.prior.typical
            )
            workload = np.where(workload < 0, of_target, workload)
            corunner = np.where(corunner < 0, of_corunner, corunner)
            platform = np.where(platform < 0, self._usual_platform, platform)
        return w.workload_code[workload], w.platform_code[platform], w.workload_code[corunner]

    @cached_property
    def _usual_platform(self) -> int:
        """The one with the most runs."""
        w = self.state
        runs = dict(zip(w.counts.platform_names, w.counts.platform_runs.tolist(), strict=True))
        return int(np.argmax([runs.get(name, 0) for name in w.platform_names]))

    def quick_seconds(self, asked: Colocations) -> np.ndarray:
        """Predict (n,) seconds by additive effects, quick for very many sets. No slowdown is under 1: if a
        log says otherwise, short runs came when many were there."""
        if self.state.prior is None:
            return self.predict(asked)
        alone, _, _ = self._logs(asked.alone())
        return np.exp(alone + np.maximum(self.state.prior.log_company(asked), 0.0))

    def _rows(self, asked: Colocations) -> tuple[SlowdownRows, np.ndarray]:
        """Return (all co-locations as rows, (n,) bool those beside others)."""
        codes, count = self._codes(asked), np.asarray(asked.number_of_corunners)
        alone = self.state.log_solo[codes[1], codes[0]]
        with np.errstate(invalid="ignore"):
            scale = float(self.state.unit) / np.exp(alone)
        workloads = self.state.log_solo.shape[1]
        rows = SlowdownRows.coded(codes, count, workloads, np.zeros(len(alone)), scale)
        return rows, count > 0

    def _log_alone(self, rows: SlowdownRows) -> np.ndarray:
        """Look up (n,) log seconds alone, the campaign's effect included."""
        w = self.state
        alone = w.log_solo.ravel()[rows.target] + np.log(float(w.usual_seconds))
        effects, workloads = w.campaign_effects, w.log_solo.shape[1]
        if effects is None or not effects.tell or self.campaign == USUAL:
            return alone
        platform = rows.target // workloads
        if self.campaign is None:
            names = rows.target % workloads, platform, rows.corunner % workloads, rows.row
            return alone + effects.of_unnamed(*names)
        return alone + effects.of(platform, self.campaign, rows.degree > 0)

    def _logs(self, asked: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (log seconds alone, log slowdown, standard deviation between base learners), each (n,)."""
        rows, beside = self._rows(asked)
        alone, prior = self._log_alone(rows), self.state.prior
        slowdown, apart = np.zeros(len(rows)), np.zeros(len(rows))
        new = np.zeros(len(rows), bool)
        if prior is not None:
            alone = alone + prior.log_covariates(asked)
            workload, platform, _ = asked.recode(self.workload_names, self.platform_names)
            new = (workload < 0) | (platform < 0)
            if self.answers_new_names:  # nothing else tells of what was only met beside others
                new |= ~np.isfinite(alone)
        if prior is not None and new.any():
            some = asked.take(np.flatnonzero(new))
            alone[new] = prior.log_seconds(some) + prior.log_covariates(some)
            slowdown[new] = prior.log_company(some)
        known = beside & np.isfinite(alone) & ~new
        slowdown[known], apart[known] = in_parts(self.log_slowdown, rows.take(known))
        return alone, slowdown, apart

    def log_slowdown(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """Predict (n,) log slowdowns of rows beside others. Returns also (n,) the spread of base learners."""
        more = self.state.more
        if more is None:
            return self.known(rows)
        past = rows.degree > int(more.most)
        out, apart = np.empty(len(rows)), np.zeros(len(rows))
        if not past.all():
            out[~past], apart[~past] = self.known(rows.take(~past))
        if past.any():
            query = rows.take(past)
            out[past] = more.log_slowdown(
                query, self.state.cell_table, lambda part: self.known(part)[0], self.answers
            )
            apart[past] = np.abs(out[past]) / 2
        return out, apart

    def known(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """Predict as `log_slowdown` does, for rows with no more co-runners than some run had."""
        weight, answer = self._weight_of(rows), self.answers(rows)
        log = np.einsum("kn,kn->n", weight, answer)
        apart = np.sqrt(np.einsum("kn,kn->n", weight, (answer - log) ** 2))
        return (log if self.state.memory is None else log + self.state.memory.of(rows)), apart

    def answers(self, rows: SlowdownRows) -> np.ndarray:
        """Predict (k, n) log slowdowns by each answer, in the order of `labels`."""
        w = self.state
        return answers_of(self.learners, w.labels, rows, w.cell_table)

    def _weight_of(self, rows: SlowdownRows) -> np.ndarray:
        """Look up the stacking weights (k, n) by each row's kind and number of co-runners."""
        w = self.state
        workloads = w.log_solo.shape[1]
        key = mixed_bits(members_key(rows.target % workloads, rows.corunner % workloads, rows.row))
        at = np.minimum(np.searchsorted(w.sets, key), max(len(w.sets) - 1, 0))
        is_known = w.sets[at] == key if len(w.sets) else np.zeros(len(rows), bool)
        kind = kinds_of(rows, w.sets_of_names, is_known)
        degree = np.minimum(rows.degree, w.weight.shape[1] - 1)
        return w.weight[kind, degree].T

    def without_names(self, hidden: Sequence[str], prior: RunPrior) -> FittedEnsemble:
        """Hide workloads as if they had never been met. prior: learned without their runs."""
        w, gone = self.state, set(hidden)
        kept = np.array([name not in gone for name in w.workload_names])
        return self.with_state(
            workload_names=tuple(n for n, k in zip(w.workload_names, kept, strict=True) if k),
            workload_code=w.workload_code[kept],
            counts=w.counts.without(gone),
            prior=prior,
        )

    def with_state(self, **changes: Any) -> FittedEnsemble:
        return replace(self, state=replace(self.state, **changes))

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return (arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays, document = self.state.to_arrays()
        document["learners"] = {}
        for name, learner in self.learners.items():
            own, document["learners"][name] = learner.to_arrays()
            arrays |= {f"{PREFIX}.{name}.{key}": value for key, value in own.items()}
        return arrays, document | {name: getattr(self, name) for name in self._added()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> Self:
        """Raises ValueError, KeyError, TypeError for what to_arrays did not give, UnknownName for a base
        learner of a package that is not installed."""
        learners = {}
        for name, own in dict(document["learners"]).items():
            start = f"{PREFIX}.{name}."
            mine = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            learners[name] = learner_named(name).restore(mine, own)
        added: dict[str, Any] = {name: tuple(map(str, document[name])) for name in cls._added()}
        return cls(EnsembleState.from_arrays(arrays, document), learners, **added)

    @classmethod
    def _added(cls) -> list[str]:
        known = FittedEnsemble.__dataclass_fields__
        return [field.name for field in fields(cls) if field.name not in known]


def in_parts(
    answer: Callable[[SlowdownRows], tuple[np.ndarray, np.ndarray]], rows: SlowdownRows
) -> tuple[np.ndarray, np.ndarray]:
    """Answer rows in batches. answer: gives two arrays (n,), which are returned."""
    out, number = np.zeros((2, len(rows))), np.arange(len(rows)) // ROWS_AT_ONCE
    for part in range(int(number.max(initial=-1)) + 1):
        out[:, number == part] = answer(rows.take(number == part))
    return out[0], out[1]


def answers_of(
    learners: Mapping[str, FittedBaseLearner],
    labels: tuple[str, ...],
    rows: SlowdownRows,
    cell_table: CellTable,
) -> np.ndarray:
    """Predict (k, n) log slowdowns by base learners, in the order of the labels."""
    out = np.full((len(labels), len(rows)), np.nan)
    place = {label: at for at, label in enumerate(labels)}
    for learner in learners.values():
        mine = [at for at, label in enumerate(learner.labels) if label in place]
        if mine:
            answer = learner.log_slowdowns(rows, cell_table)
            out[[place[learner.labels[at]] for at in mine]] = answer[mine]
    missing = ~np.isfinite(out)
    if missing.any():  # who has no answer agrees with the others
        usual = np.zeros(len(rows))
        some = ~missing.all(0)
        usual[some] = np.nanmedian(np.where(missing, np.nan, out)[:, some], axis=0)
        out = np.where(missing, usual, out)
    return out
