"""Bounds of what was told over time, calibrated on the act: earlier jobs of the log are asked about as they
began, and at further moments of their work, with what could be known then.

Errors are logarithms of actual over told: of whole runtimes where progress is told from the time, of the time
that is left where the run itself tells, as each run's own count would. Scores are errors over the usual size
of the name's, shrunk towards that of all, and without the run itself; the conformal rank is taken among those
of all names (by what was known: all company of the run, or what had been until then; and by moment). A run
that lasts longer than predicted, whoever came, is bounded by those that lasted as many times longer. What is
told of whatever may come is corrected by how earlier answers came out; each error is of a correction that had
not seen its run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.conformal import BEHIND, ON_THE_ACT, Bounds, conformal_rank
from jostle.errors import UsageError
from jostle.models.timelines._arrival_simulation import (
    DRAWS,
    BusyNodes,
    Newcomers,
    Rates,
    ends,
    spread_over,
)
from jostle.models.timelines._timelines import FUTURE, TIMELINE, Timelines, past_and_future
from jostle.models.timelines._told_correction import Signs, ToldCorrection, after

if TYPE_CHECKING:
    from jostle.data import Runs

MOMENTS = (0.0, 0.4, 0.7, 0.9)  # shares of the work that are done
KINDS = (TIMELINE, FUTURE)
_OPEN = KINDS.index(FUTURE)
MOST = 1600  # runs that are asked about anew as they began
_LATER = 4  # times fewer at each later moment
_SHRUNK = 5.0  # runs of a name, with which half of its width is that of all
_LEAST = 0.1  # of the usual error, that is added to that of each name
_LATELY = 40_000  # answers that are kept


@dataclass(frozen=True)
class ReplayedAnswers(Signs):
    """Answers about runs of a log, n of them, and how they came out. kind, moment: (n,) int64 as of
    TimelineCalibration. run: (n,) of which each is. error: (n,) log actual over told."""

    kind: np.ndarray
    moment: np.ndarray
    run: np.ndarray
    error: np.ndarray

    @classmethod
    def about(
        cls,
        fitted: Any,
        runs: Runs,
        calibration: np.ndarray,
        newcomers: Newcomers,
        seed: int,
        most: int = MOST,
    ) -> ReplayedAnswers:
        """Ask about runs of a log at moments of their work. fitted: what was learned without them. runs: all
        of the log, with status ok. calibration: (k,) rows of it, of which at most so many are asked about."""
        rates = Rates(fitted)
        parts = runs.stretches.take(calibration)
        known = np.ones(len(calibration), bool)
        known[parts.row[~parts.colocations.known_in(*rates.names)]] = False
        rows = np.asarray(calibration)[known]
        rows = np.random.default_rng(seed).permutation(rows)[:most]
        found = []
        for moment in range(len(MOMENTS)):
            some = rows[: most // _LATER] if moment else rows
            for is_told in (False, True)[: 1 + (moment > 0)]:
                found += cls._at(rates, runs, some, newcomers, seed, moment, is_told)
        return cls.concatenate(found)

    @classmethod
    def _at(
        cls,
        rates: Rates,
        runs: Runs,
        rows: np.ndarray,
        newcomers: Newcomers,
        seed: int,
        moment: int,
        is_told: bool,
    ) -> list[ReplayedAnswers]:
        """Ask at one of the moments, by the law or, is_told, by their own count."""
        share, actual = MOMENTS[moment], runs.runtime_seconds
        elapsed = when_done(rates, runs, rows, share, is_told) if moment else np.zeros(len(rows))
        on = elapsed < actual[rows]
        rows, elapsed = rows[on], elapsed[on]
        past, found = elapsed if is_told else 0.0, []
        for kind, name in enumerate(KINDS):
            asked = past_and_future(runs, rows, elapsed, is_open=name == FUTURE)
            if is_told:
                asked = replace(asked, done_ratio=np.full(len(rows), share))
            told, log_times = told_with_times(rates, asked, newcomers, seed)
            signs = Signs.of(asked, log_times, told, rates.names, _ages(runs)[rows])
            with np.errstate(invalid="ignore", divide="ignore"):
                error = np.log((actual[rows] - past) / (told - past))
            code = np.full(len(rows), kind + len(KINDS) * is_told)
            columns = {"kind": code, "moment": np.full(len(rows), moment), "run": rows}
            found.append(cls(**vars(signs), **columns, error=error))
        return [one.take(np.isfinite(one.error)) for one in found]


@dataclass(frozen=True)
class TimelineCalibration(Serializable):
    """Calibration errors of runs whose co-runners changed. newcomers: as lately seen. kind, moment, workload:
    (n,) int64 of each error; kind: of KINDS, and so many more where the run itself told how far it had come;
    workload by the codes of the model. error: (n,) float64, log actual over told. correction: of what is told
    of whatever may come."""

    newcomers: Newcomers
    kind: np.ndarray
    moment: np.ndarray
    workload: np.ndarray
    error: np.ndarray
    correction: ToldCorrection | None = None

    @classmethod
    def fit(cls, newcomers: Newcomers, answers: ReplayedAnswers, names: Any) -> TimelineCalibration:
        """Learn how what is told of whatever may come is corrected, and the errors that are left. names:
        workloads and platforms."""
        signs = answers.take(answers.kind == _OPEN)
        found = ToldCorrection.fit(signs, signs.error, signs.run, names)
        return cls.left_by(newcomers, answers, *(found or (None, None)))

    @classmethod
    def left_by(
        cls,
        newcomers: Newcomers,
        answers: ReplayedAnswers,
        correction: ToldCorrection | None,
        log_ratio: np.ndarray | None = None,
    ) -> TimelineCalibration:
        """Take the errors that a correction leaves. log_ratio: (m,) what those that have not seen the run say
        of each open question; None: what the correction says."""
        error = answers.error.copy()
        if correction is not None:
            mine = answers.kind == _OPEN
            signs = answers.take(mine)
            log_ratio = correction.log_ratio(signs) if log_ratio is None else log_ratio
            error[mine] -= np.log(after(signs, log_ratio) / signs.told)
        return cls(newcomers, answers.kind, answers.moment, answers.workload, error, correction)

    @classmethod
    def updated(
        cls, model: Any, now: Any, runs: Runs, seed: int, chosen: bool
    ) -> TimelineCalibration | None:
        """Update with `now`, the model that has learned these runs, too: the old model's answers about them
        count beside those about earlier ones. Chosen runs and known ones do not count."""
        new, before = model.kept.unknown(runs).ok(), model.acts
        changed = not bool(new.is_steady.all())
        if before is None and not changed:
            return None
        old, names = Rates(model).names, Rates(now).names
        came = Newcomers.of(new, *old)
        rows = np.flatnonzero(~(new.is_chosen | chosen))
        answers = ReplayedAnswers.about(model, new, rows, came, seed)
        more = cls.left_by(came, answers, None if before is None else before.correction)
        kind, moment, workload, error = (
            np.concatenate([getattr(one, name) for one in (before, more) if one is not None])
            for name in ("kind", "moment", "workload", "error")
        )
        place = {name: code for code, name in enumerate(names[0])}
        code = np.array([place[name] for name in old[0]], np.int64)[workload]
        if changed or before is None:
            came = Newcomers.of(new, *names)
        else:
            came = before.newcomers.recoded(old, names)
        kind, moment, code, error = (one[-_LATELY:] for one in (kind, moment, code, error))
        return cls(came, kind, moment, code, error, more.correction)

    def bound(
        self, told: np.ndarray, asked: Timelines, log_times: np.ndarray, workload: np.ndarray,
        confidence: float,
    ) -> Bounds:  # fmt: skip
        """Bound predictions. told: (n,) predicted seconds. log_times: as of asked.progress. workload: (n,)
        codes."""
        n, elapsed = len(asked), asked.elapsed_seconds
        done = np.nan_to_num(asked.progress(log_times)[0])
        moment = np.searchsorted(MOMENTS, done, "right") - 1
        is_told = np.isfinite(asked.done_ratio) & (elapsed > 0)
        kind = np.array([int(over == FUTURE) for over in asked.over])
        kind[is_told & (moment > 0)] += len(KINDS)
        # When what has been until now would have let it end.
        begun = {"elapsed_seconds": np.zeros(n), "done_ratio": np.full(n, np.nan)}
        due = replace(asked, is_open=np.zeros(n, bool), **begun).runtime(log_times)
        behind = ~is_told & (elapsed > 0) & (due <= elapsed)
        kind[behind], moment[behind] = KINDS.index(TIMELINE), 0
        past = np.where(is_told, elapsed, 0.0)
        base = np.where(behind, due, told) - past
        bounds, number, ranks = np.full(n, np.inf), np.zeros(n, int), np.zeros(n, int)
        for one, at in np.unique(np.column_stack([kind, moment]), axis=0).tolist():
            mine = np.flatnonzero((kind == one) & (moment == at))
            scores, width = self._scored(one, at)
            if conformal_rank(len(scores), confidence) > len(scores):
                # What was told as runs began holds on.
                scores, width = self._scored(one % len(KINDS), 0)
                moment[mine] = 0
            width = width[np.minimum(workload[mine], len(width) - 1)]
            with np.errstate(divide="ignore"):
                so_far = np.where(behind[mine], np.log(elapsed[mine] / base[mine]) / width, -np.inf)
            over = np.searchsorted(scores, so_far, "right")
            number[mine] = len(scores) - over
            ranks[mine] = [conformal_rank(int(k), confidence) for k in number[mine]]
            place = over + ranks[mine] - 1
            offset = np.append(scores, np.inf)[np.minimum(place, len(scores))]
            with np.errstate(over="ignore"):
                bounds[mine] = past[mine] + base[mine] * np.exp(offset * width)
        bounds = np.where(np.isfinite(told), np.maximum(bounds, elapsed), np.inf)
        outcome = np.where(behind, BEHIND, ON_THE_ACT).astype("<U20")
        outcome[~np.isfinite(bounds)] = "too_few_runs"
        pool = np.array([f"{one:.0%} done" for one in MOMENTS], "<U20")[moment]
        evidence = np.full(n, f"{len(self.error)} answers to earlier jobs", "<U160")
        return Bounds(bounds, outcome, pool, number, ranks, confidence, evidence)

    def _scored(self, kind: int, moment: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores in their order, the width of each name; the last for names without any)."""
        there = (self.kind == kind) & (self.moment == moment)
        error, name = self.error[there], self.workload[there]
        size = np.abs(error)
        usual = max(float(size.mean()) if len(size) else 0.0, 1e-9)
        number, whole = (np.append(np.bincount(name, weights), 0.0) for weights in (None, size))
        without = (whole[name] - size + _SHRUNK * usual) / (number[name] - 1 + _SHRUNK)
        width = (whole + _SHRUNK * usual) / (number + _SHRUNK)
        return np.sort(error / (without + _LEAST * usual)), width + _LEAST * usual


def told_by(
    rates: Rates,
    asked: Timelines,
    newcomers: Newcomers | None,
    seed: int = 0,
    correction: ToldCorrection | None = None,
) -> np.ndarray:
    """Predict (n,) seconds from start to end, the median of drawn futures if the question is open. Raises
    UsageError for such a question if no arrivals were seen."""
    told, log_times = told_with_times(rates, asked, newcomers, seed)
    if correction is None:
        return told
    drift = getattr(rates.fitted, "moved", None)
    moved = np.zeros(len(asked), bool)
    if drift is not None:
        moved = drift.log_ratio(asked.colocations.take(asked.now))[1]
    return correction.corrected(asked, log_times, told, moved)


def told_with_times(
    rates: Rates, asked: Timelines, newcomers: Newcomers | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) seconds as of told_by, not corrected, log_times as of asked.progress)."""
    log_times = np.log(rates.fitted.predict(asked.colocations))
    told = asked.runtime(log_times)
    rows = np.flatnonzero(asked.is_open)
    if not len(rows):
        return told, log_times
    if newcomers is None:
        raise UsageError(
            "nobody was seen to come: the model learned from no log",
            fix="Say who is there and when it ends, or learn from a log (jostle import sacct).",
        )
    done, pace = asked.progress(log_times)
    # The closer answer is taken of those who are there now, and quick ones of how others change it.
    quick = np.log(rates.seconds(replace(asked.colocations, covariates={}), np.nan))
    pace = pace * np.exp(np.nan_to_num((quick - log_times)[asked.last]))
    now = asked.colocations.take(asked.last[rows])
    workload, platform, corunner = now.recode(*rates.names)
    number = now.number_of_corunners
    width = int(number.max(initial=0)) + 1
    members = np.full((len(rows), width), -1)
    members[:, 0] = workload
    members[:, 1:][np.arange(width - 1) < number[:, None]] = corunner
    random = np.random.default_rng(seed)
    # Of co-runners what is left is drawn: any share is as likely.
    luck = np.stack([spread_over(random) for _ in range(width)], axis=1)
    left, speed = np.tile(luck, (len(rows), 1)), np.ones((DRAWS * len(rows), width))
    left[:, 0], speed[:, 0] = np.repeat(1 - done[rows], DRAWS), np.repeat(pace[rows], DRAWS)
    nodes = BusyNodes(np.repeat(platform, DRAWS), np.repeat(members, DRAWS, axis=0), left, speed)
    more = ends(rates, nodes, newcomers, watched=1, seed=seed + 1)[:, 0]
    told[rows] = asked.elapsed_seconds[rows] + np.median(more.reshape(-1, DRAWS), axis=1)
    return told, log_times


def when_done(
    rates: Rates, runs: Runs, rows: np.ndarray, share: float, of_own: bool = False
) -> np.ndarray:
    """Return (k,) seconds after the start when the law says that so much was done (of_own: of what it says of
    the whole run); infinite if never."""
    whole = past_and_future(runs, rows, runs.runtime_seconds[rows], is_open=False)
    log_times = np.log(rates.seconds(whole.colocations))
    work = share * (whole.lawful(log_times) if of_own else np.ones(len(rows)))
    begun = replace(whole, elapsed_seconds=np.zeros(len(rows)))
    return np.nan_to_num(begun.runtime(log_times + np.log(work)[whole.row]), nan=np.inf)


def _ages(runs: Runs) -> np.ndarray:
    """Return when each run began, (n,) from -1 where the log begins to 0 where it ends; 0 if not known."""
    at = runs.table.column("measured_at").combine_chunks().cast("int64").fill_null(0).to_numpy()
    latest = int(at.max(initial=0))
    first = int(at[at > 0].min(initial=latest))
    return np.where(at > 0, (at - latest) / max(latest - first, 1), 0.0)


def asked_codes(rates: Rates, asked: Timelines) -> np.ndarray:
    """Code the workload of each question as the model does, (n,)."""
    workload, _, _ = asked.colocations.take(asked.last).recode(*rates.names)
    return workload
