"""Base learners tried on what is left out, weighed, and learned from all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._base.progress import Progress
from jostle.data import Runs
from jostle.learn.contract._coded_runs import turns_of
from jostle.learn.contract._data import Data
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._run_counts import RunCounts
from jostle.learn.ensemble._base_learner import TURNS_ALONE, BaseLearner, FittedBaseLearner
from jostle.learn.ensemble._campaign_effects import CampaignEffects
from jostle.learn.ensemble._cross_validation import (
    FIRST_ROWS,
    CrossValidator,
)
from jostle.learn.ensemble._degree_extrapolation import (
    Answer,
    DegreeExtrapolation,
    fit_extrapolation,
)
from jostle.learn.ensemble._display_names import weights_in_words
from jostle.learn.ensemble._folds import (
    AFTER_SETS,
    ALONE,
    FEWEST_NAMES,
    HARDLY_ALONE,
    KINDS,
    NEW_CELL,
    NEW_NAME,
    NEW_SET,
    TrialFold,
    folds_of,
    is_large,
)
from jostle.learn.ensemble._given_campaign import given_campaign
from jostle.learn.ensemble._run_prior import fit_prior
from jostle.learn.ensemble._set_residuals import fit_set_residuals
from jostle.learn.ensemble._stacked_model import (
    ROWS_AT_ONCE,
    EnsembleState,
    FittedEnsemble,
    in_parts,
)
from jostle.learn.ensemble._stacking import (
    KNOWN_NAMES,
    OutOfFoldPredictions,
    is_of_nothing,
    usual_weights,
    weights_of,
)
from jostle.learn.training._set_keys import keys_of
from jostle.learn.training._solo_baseline import relative_medians
from jostle.learn.training._training_data import TrainingRuns


def fit(
    learners: Sequence[BaseLearner],
    data: Data,
    runs: Runs,
    seed: int,
    progress: Progress | None,
    is_alone: bool = False,
) -> tuple[FittedEnsemble, list[FoldFit]]:
    """Fit on all runs, and on all but some in turn. Returns (the fit to all, the fits without some).
    is_alone: whether there is one answer, which needs no trial. Raises NotEnoughRuns."""
    given = given_campaign(learners, data, runs, seed)
    campaign = given.campaign
    folds = [] if is_alone else folds_of(campaign, seed)
    steps = iter(range(1, len(folds) + 3))

    def tick() -> None:
        done = next(steps)
        if progress:
            progress(done, len(folds) + 2, float("nan"))

    tried = CrossValidator(campaign, given.learners, given.wanted, seed)
    for fold in folds:
        tried.fit(fold)
        tick()
    trial = tried.trial()
    whole = _weighed(tried, trial)
    fitted = whole.ensemble(whole.learners(campaign, best=True), campaign)
    tick()
    fitted, largest = _extended(whole, fitted, trial, tried.labels, is_alone)
    tick()
    removed = {"campaign_effects": given.campaign_effects, "prior": given.prior}
    fitted = fitted.with_state(**removed)
    fitted = fitted.with_state(notes=_notes(fitted, campaign, tried.dropped_learners))
    left_out = _left_out(tried, whole, fitted, given.source)
    unit = campaign.sets(everywhere=True) if largest else np.zeros(0)
    for own, mine in largest:
        one = own.with_state(**removed), campaign.origin[mine], unit[mine]
        left_out.append(FoldFit(*one, "larger"))
    return fitted, [replace(one, runs=given.certain[one.runs]) for one in left_out]


def _weighed(tried: CrossValidator, trial: OutOfFoldPredictions) -> EnsembleBuilder:
    """Weigh the answers by the out-of-fold predictions; those without a weight are not learned."""
    campaign, labels = tried.campaign, tried.labels
    most = int(campaign.degree.max(initial=0))
    usual = usual_weights(labels, tried.rank)
    weight = np.tile(usual, (len(KINDS), most + 1, 1))
    if campaign.is_training_row.any():
        weight = weights_of(usual, trial, most, tried.seed, tried.prior)
    used = tuple(label for at, label in enumerate(labels) if weight[..., at].any())
    weight = weight[..., [labels.index(label) for label in used]]
    return EnsembleBuilder(tried, used, weight, tried.share())


def _extended(
    whole: EnsembleBuilder,
    fitted: FittedEnsemble,
    trial: OutOfFoldPredictions,
    labels: tuple[str, ...],
    is_alone: bool,
) -> tuple[FittedEnsemble, list[tuple[FittedEnsemble, np.ndarray]]]:
    """Add what answers larger sets than any that ran; see EnsembleBuilder.finished."""
    campaign = whole.campaign
    about = int(campaign.degree.max(initial=0)), campaign.cell_table
    if is_alone:
        return fitted.with_state(more=DegreeExtrapolation.of_sums(*about)), []
    if whole.labels == (TURNS_ALONE,):
        return fitted.with_state(more=DegreeExtrapolation.of_turns(*about)), []
    if not campaign.is_training_row.any() or is_of_nothing(whole.labels):
        return fitted, []
    return whole.finished(fitted, trial, labels)


NEVER_MET_FOLDS = 5  # by which workloads are answered as if they had never been met
RUNS_OF_A_NAME = 20  # that are asked about then
FEWEST_REPEATED = 19  # cells or sets, past which their repeated runs say how such runs scatter


def _left_out(
    tried: CrossValidator, whole: EnsembleBuilder, fitted: FittedEnsemble, source: Runs
) -> list[FoldFit]:
    """Collect, per fold, the model fitted without it and runs that score it: new sets and repeats alone, then
    names and cells; last, names never met. Stacking weights have seen these runs. source: runs as given."""
    campaign, out = tried.campaign, []
    measured: list[FoldFit] = []
    repeats = [campaign.cell[fold.kind == ALONE] for fold, _, _ in tried.fits]
    few = len(np.unique(np.concatenate([*repeats, np.zeros(0, np.int64)]))) <= FEWEST_REPEATED
    alone = campaign.degree == 0
    for fold, mine, part in tried.fits:
        own = whole.ensemble(mine, part)
        prior = fitted.state.prior
        if prior is not None and prior.forms:
            prior = fit_prior(source.take(np.sort(part.origin)), tried.seed, prior)
        own = own.with_state(
            more=fitted.state.more, campaign_effects=_told_by(part, fitted), prior=prior
        )
        of_sets = np.isin(fold.kind, (NEW_SET, ALONE))
        if few:
            of_sets |= alone & (fold.kind == NEW_CELL)
        of_names = np.isin(fold.kind, (NEW_NAME, HARDLY_ALONE, NEW_CELL)) & ~of_sets
        for asked, what in ((of_sets, "set"), (of_names, "name")):
            at = np.flatnonzero(asked)
            if len(at):
                out.append(FoldFit(own, campaign.origin[at], fold.unit[at], what))
        measured += [
            FoldFit(again, campaign.origin[at], fold.unit[at], "again")
            for again, at in _measured_again(own, fitted, campaign, fold)
        ]
    if len(np.unique(np.concatenate([*(one.unit for one in measured), []]))) > FEWEST_REPEATED:
        out += measured
    inputs = campaign.origin[campaign.is_input]
    return out + _never_met(fitted, source, inputs, tried.seed)


def _measured_again(
    own: FittedEnsemble, fitted: FittedEnsemble, campaign: TrainingRuns, fold: TrialFold
) -> Iterator[tuple[FittedEnsemble, np.ndarray]]:
    """Answer half of the runs of each set that a fold left out as if the other half had been measured, and
    the other way round. Yields (what answers them, their row numbers). Where runs are in time, what was
    measured is older than what is asked, which halves are not."""
    memory = fitted.state.memory
    if memory is None or campaign.time_block is not None:
        return
    every = campaign.rows_over(own.state.log_solo, campaign.unit_seconds)
    mine = (fold.kind == NEW_SET) & np.isfinite(every.log_slowdown)
    at, rows = np.flatnonzero(mine), every.take(mine)
    left = rows.log_slowdown - in_parts(own.known, rows)[0]
    turn = turns_of(np.unique(keys_of(rows), return_inverse=True)[1].reshape(-1)) % 2
    for known in (turn == 0, turn == 1):
        half = memory.learned_from(rows.take(known), left[known])
        yield own.with_state(memory=half), at[~known & half.has(rows)]


def _told_by(part: TrainingRuns, fitted: FittedEnsemble) -> CampaignEffects | None:
    """Return the campaigns' effects, their shares learned from a part of the runs."""
    effects = fitted.state.campaign_effects
    return None if effects is None else effects.learned_from(part)


def _never_met(
    fitted: FittedEnsemble, source: Runs, inputs: np.ndarray, seed: int
) -> list[FoldFit]:
    """Answer some runs of, and beside, each workload as if its name had never been met. The base learners
    have seen these runs; the prior has not seen the workload's own, nor are typical names chosen among the
    hidden. inputs: rows never asked."""
    prior, c = fitted.state.prior, source.colocations
    if prior is None or min(prior.typical) < 0 or len(c.workload_names) < FEWEST_NAMES:
        return []
    random = np.random.default_rng([seed, 79])
    met = np.unique(c.workload)
    fold = np.full(len(c.workload_names), -1)
    fold[met] = random.permutation(len(met)) % NEVER_MET_FOLDS
    row, out = c.corunner_row, []
    order = random.permutation(len(source))
    for number in range(NEVER_MET_FOLDS):
        hidden = fold == number
        beside = np.full(len(c), -1)
        here = np.flatnonzero(hidden[c.corunner])
        beside[row[here]] = c.corunner[here]
        name = np.where(hidden[c.workload], c.workload, beside)
        name[inputs] = -1
        asked = order[name[order] >= 0]
        turn = turns_of(name[asked])
        asked = np.sort(asked[turn < RUNS_OF_A_NAME])
        rest = np.flatnonzero(~hidden[c.workload])
        if not len(asked) or not len(rest):
            continue
        names = [c.workload_names[code] for code in np.flatnonzero(hidden)]
        rest_prior = fit_prior(source.take(rest), seed, prior, names)
        if min(rest_prior.typical) < 0:
            continue
        own = fitted.without_names(names, rest_prior)
        unit = name[asked].astype(np.int64) + 2 * AFTER_SETS
        out.append(FoldFit(own, asked, unit, "name"))
    return out


@dataclass(frozen=True)
class EnsembleBuilder:
    """What all fits of one campaign share. labels, weight: the answers with a weight. share: weight of the
    solo learner's times alone."""

    tried: CrossValidator
    labels: tuple[str, ...]
    weight: np.ndarray
    share: float

    @property
    def campaign(self) -> TrainingRuns:
        return self.tried.campaign

    def learners(self, part: TrainingRuns, best: bool) -> dict[str, FittedBaseLearner]:
        """Fit the learners that have a weight, and the solo learner if times alone are asked."""
        out, ready = {}, self.tried.ready
        for name, learner in self.tried.learners.items():
            own = learner.labels(part)
            wanted = tuple(label for label in own if label in self.labels)
            if name in ready:
                if best and (wanted or name == self.solo_learner):
                    out[name] = ready[name]
            elif wanted or (name == self.solo_learner and best):
                out[name] = self.tried.fit_learner(name, part, wanted or own, best)
        return out

    @property
    def solo_learner(self) -> str | None:
        """Learner that predicts times alone of workloads that never ran on a platform, if it has a share."""
        return self.tried.solo_learner if self.share > 0 else None

    def ensemble(
        self, learners: dict[str, FittedBaseLearner], part: TrainingRuns
    ) -> FittedEnsemble:
        """Assemble the stacked model without memory and larger sets."""
        order = [np.argsort(np.array(each, object), kind="stable") for each in part.names]
        workload, platform = (
            [each[at] for at in one] for each, one in zip(part.names, order, strict=True)
        )
        state = EnsembleState(
            *(tuple(workload), tuple(platform), order[0], order[1]),
            np.array(part.common.usual_seconds),
            np.array(part.unit_seconds),
            self.log_solo(learners, part),
            part.cell_table,
            np.unique(part.sets(everywhere=True)[part.beside]),
            part.sets_of_names,
            self.labels,
            self.weight,
            RunCounts.of_coded(part.runs.colocations.take(np.flatnonzero(~part.is_input))),
        )
        fitted = FittedEnsemble(state, learners)
        return fitted.with_state(log_solo=_with_levels(fitted, part, 1 - self.share))

    def adding_up(self, learners: Mapping[str, FittedBaseLearner], of_pairs: bool) -> set[str]:
        """Return the labels that may answer larger sets though nothing tested it: where only pairs ran, those
        of learners that simulate, else those that add up."""
        out = set()
        for name, learner in learners.items():
            one: Any = self.tried.learners.get(name)
            if of_pairs:
                out |= set(learner.labels) if getattr(one, "simulates", False) else set()
            elif hasattr(one, "adds_up"):
                out |= {label for label in learner.labels if one.adds_up(label)}
        return out

    def log_solo(self, learners: dict[str, FittedBaseLearner], part: TrainingRuns) -> np.ndarray:
        """Return (platforms, workloads) log seconds alone: measured, or by names and the solo learner."""
        by_names = part.log_solo
        if self.solo_learner not in learners:
            return by_names
        measured = np.zeros(by_names.size, bool)
        measured[part.cell[part.degree == 0]] = True
        measured |= part.is_traced
        told = learners[self.solo_learner].log_solo()  # type: ignore[attr-defined]
        blend = self.share * told + (1 - self.share) * by_names
        blend = np.where(np.isfinite(blend), blend, np.where(np.isfinite(told), told, by_names))
        return np.where(measured.reshape(by_names.shape), by_names, blend)

    def finished(
        self, fitted: FittedEnsemble, trial: OutOfFoldPredictions, labels: tuple[str, ...]
    ) -> tuple[FittedEnsemble, list[tuple[FittedEnsemble, np.ndarray]]]:
        """Add the memory of measured sets and the rule for larger sets. Returns that model, and per half of
        the largest sets a model fitted without them, rules weighed on the other half, and the half's rows."""
        campaign, cell_table = self.campaign, fitted.state.cell_table
        rows = campaign.rows
        of_run = np.full(len(campaign), np.nan)
        new = trial.of(*KNOWN_NAMES)
        at = [labels.index(label) for label in self.labels]
        degree = np.minimum(new.degree, self.weight.shape[1] - 1)
        answered = np.einsum("nk,kn->n", self.weight[new.kind, degree], new.answer[at])
        of_run[new.place] = answered
        every = campaign.rows_over(fitted.state.log_solo, campaign.unit_seconds)
        asked = (campaign.degree > 0) & np.isfinite(every.log_slowdown)
        y = every.log_slowdown[asked]
        plain, _ = in_parts(fitted.known, every.take(asked))
        memory = fit_set_residuals(every.take(asked), y - plain, y - of_run[asked])
        fitted = fitted.with_state(memory=memory)
        without: list[FittedEnsemble] = []

        def fewer(keep: np.ndarray) -> tuple[Answer, Answer]:
            is_kept = np.ones(len(campaign), bool)
            is_kept[np.flatnonzero(campaign.is_training_row)[~keep]] = False
            part = campaign.take(is_kept)
            some = self.ensemble(self.learners(part, best=False), part)
            without.append(some)
            return (lambda query: some.known(query)[0]), some.answers

        add_up = self.adding_up(fitted.learners, of_pairs=rows.degree.max() == 1)
        untried = [label in add_up for label in self.labels]
        half = halves_of(campaign)
        more, tried = fit_extrapolation(
            *(rows, cell_table, lambda query: fitted.known(query)[0], fewer),
            untried=np.where(untried, self.weight[NEW_SET, -1], 0.0),
            half=half[campaign.is_training_row],
        )
        is_largest = campaign.is_training_row & (campaign.degree == campaign.degree.max(initial=0))
        largest = [
            (without[0].with_state(more=one), np.flatnonzero(is_largest & (half == is_second)))
            for one, is_second in zip(tried, (False, True), strict=False)
        ]
        return fitted.with_state(more=more), largest


def _with_levels(fitted: FittedEnsemble, part: TrainingRuns, by_names: float) -> np.ndarray:
    """Return (platforms, workloads) log seconds alone, moved in cells that only ran beside others: by the
    median residual of their own runs, as far as cells differ by more than runs within a cell. by_names: the
    share of what has not learned from these runs."""
    alone = fitted.state.log_solo
    is_told = part.ran_alone | part.is_traced
    asked = part.beside & ~is_told[part.cell] & np.isfinite(alone.ravel()[part.cell])
    if not (asked.any() and fitted.state.labels):
        return alone
    rows = part.rows_over(alone, part.unit_seconds).take(asked).drawn(ROWS_AT_ONCE, [0])
    left = rows.log_slowdown - in_parts(fitted.known, rows)[0]
    moved = relative_medians(rows.target, left, alone.size)
    count = np.bincount(rows.target, minlength=alone.size)
    repeated = count[rows.target] > 1
    noise = _variance((left - moved[rows.target])[repeated] if repeated.any() else left)
    between = _variance(moved[count > 0])
    beyond = max(between - noise * float(np.mean(1 / count[count > 0])), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = beyond / (beyond + noise / count)
    return alone + np.nan_to_num(by_names * share * moved).reshape(alone.shape)


def _variance(values: np.ndarray) -> float:
    """Estimate the variance about 0 robustly, by the median absolute value."""
    return float(np.median(np.abs(values)) * 1.4826) ** 2


def halves_of(campaign: TrainingRuns) -> np.ndarray:
    """Tell in which half of the largest sets each run's set is. Returns (n,) bool."""
    largest, half = campaign.degree == campaign.degree.max(), np.zeros(len(campaign), bool)
    sets = campaign.sets(everywhere=True)[largest]
    half[largest] = np.unique(sets, return_inverse=True)[1].reshape(-1) % 2 == 1
    return half


def _notes(
    fitted: FittedEnsemble, campaign: TrainingRuns, dropped_learners: tuple[str, ...]
) -> tuple[str, ...]:
    """List for people which learners count, what is estimated, what campaigns cost and, if there are many
    runs, who learns from all and who was dropped."""
    notes = []
    weight = fitted.state.weight[NEW_SET, -1] if fitted.state.labels else np.zeros(0)
    has_rows, labels = bool(campaign.is_training_row.any()), fitted.state.labels
    if not labels or is_of_nothing(labels):
        why = "no evidence of interference" if has_rows else "no run with co-runners"
        what = (
            "slowdowns are turns on shared cores"
            if TURNS_ALONE in labels
            else "every slowdown is 1"
        )
        notes.append(f"{why}: {what}")
    else:
        words = weights_in_words(dict(zip(fitted.state.labels, weight, strict=True)))
        text = ", ".join(f"{name} {part:.0%}" for name, part in list(words.items())[:4] if part)
        notes.append(f"a new set of workloads is answered by {text}")
    cells = int(campaign.ran_alone.sum())
    guessed = int(np.isfinite(fitted.state.log_solo).sum()) - cells
    if guessed > 0:
        notes.append(
            f"{guessed} pairs of workload and platform never ran alone: their time alone is estimated"
        )
    effects = fitted.state.campaign_effects
    if effects is not None and effects.tell:
        more = ", ..." if len(effects.names) > 3 else ""
        notes.append(
            f"campaigns differ: a question that names none of {', '.join(effects.names[:3])}{more} "
            f"is off by {float(effects.cost):.1%} in the mean"
        )
    if is_large(campaign):
        notes.append(f"of {len(campaign)} runs some learn from nearly all, others from samples")
    if dropped_learners:
        notes.append(
            f"far off after {FIRST_ROWS} runs beside others, so dropped: {', '.join(dropped_learners)}"
        )
    learned = (getattr(learner, "notes", ()) for learner in fitted.learners.values())
    return (*notes, *(note for own in learned for note in own))
