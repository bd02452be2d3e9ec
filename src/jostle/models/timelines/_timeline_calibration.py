"""Bounds over time, calibrated: earlier jobs of the log are asked about with what was known then.

Errors are logarithms of actual over told: of whole runtimes where progress is told from the time, of the time
that is left where the run itself tells, as each run's own count would. Scores are errors over the usual size
of the name's, shrunk towards that of all, and without the run itself; the conformal rank is taken among those
of all names (by what was known: all company of the run, or what had been until then; and by moment). A run
that lasts longer than predicted, whoever came, is bounded by those that lasted as many times longer. What is
told of whatever may come is corrected by how earlier answers came out; each error is of a correction that had
not seen its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import UNSAVED, Serializable
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
from jostle.models.timelines._timelines import (
    FUTURE,
    OVERDUE,
    TIMELINE,
    Timelines,
    past_and_future,
)
from jostle.models.timelines._told_correction import Signs, ToldCorrection, after

if TYPE_CHECKING:
    from jostle.data import Runs

MOMENTS = (0.0, 0.4, 0.7, 0.9)  # shares of the work that are done
KINDS = (TIMELINE, FUTURE)
MOST = 1600  # runs that are asked about anew as they began
_LATER = 4  # times fewer at each later moment
_SHRUNK = 5.0  # runs of a name, with which half of its width is that of all
_LEAST = 0.1  # of the usual error, that is added to that of each name
_LATELY = 40_000  # answers that are kept


@dataclass(frozen=True)
class TimelineCalibration(Serializable):
    """Calibration errors of runs whose co-runners changed. newcomers: as lately seen. kind, moment, workload:
    (n,) int64 of each error; kind: of KINDS, and so many more where the run itself told how far it had come;
    workload by the codes of the model. error: (n,) float64, log actual over told. correction: of what is told
    of whatever may come. signs, run: (n,) what a correction is learned from, and of which run each answer is;
    None once that is done."""

    newcomers: Newcomers
    kind: np.ndarray
    moment: np.ndarray
    workload: np.ndarray
    error: np.ndarray
    correction: ToldCorrection | None = None
    signs: Signs | None = field(default=None, metadata=UNSAVED)
    run: np.ndarray | None = field(default=None, metadata=UNSAVED)
    _scores: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls, fitted: Any, runs: Runs, calibration: np.ndarray, seed: int, most: int = MOST
    ) -> TimelineCalibration:
        """Calibrate on runs whose co-runners change. fitted: what was learned without the calibration runs.
        runs: all of the log, with status ok. calibration: (k,) rows of it, of which at most so many are asked
        about."""
        rates = Rates(fitted)
        newcomers = Newcomers.of(runs, *rates.names)
        parts = runs.stretches.take(calibration)
        known = np.ones(len(calibration), bool)
        known[parts.row[~parts.colocations.known_in(*rates.names)]] = False
        rows = np.asarray(calibration)[known]
        rows = np.random.default_rng(seed).permutation(rows)[:most]
        if not len(rows):
            none = np.zeros(0, np.int64)
            signs = Signs(none, none, none, none, none, none, none)
            return cls(newcomers, none, none, none, np.zeros(0), None, signs, none)
        age = Ages.of(runs, rates)
        found = [
            _errors(
                age, rows[: most // _LATER] if moment else rows, moment, is_told, newcomers, seed
            )
            for moment in range(len(MOMENTS))
            for is_told in ((False, True) if moment else (False,))
        ]
        columns = [
            np.concatenate(column) for column in zip(*(one for one, _ in found), strict=True)
        ]
        kind, moment, workload, run = (column.astype(np.int64) for column in columns[:4])
        signs = Signs.concatenate([one for _, one in found])
        return cls(newcomers, kind, moment, workload, columns[4], None, signs, run)

    def learned(self, names: Any) -> TimelineCalibration:
        """Learn how what is told of whatever may come is corrected, and the errors that are left. names:
        workloads and platforms."""
        open_ones = np.flatnonzero(self.kind == KINDS.index(FUTURE))
        if self.signs is None or self.run is None:
            return self
        signs = self.signs.take(open_ones)
        found = ToldCorrection.fit(signs, self.error[open_ones], self.run[open_ones], names)
        if found is None:
            return replace(self, signs=None, run=None)
        return self._corrected(*found)

    def corrected_by(self, correction: ToldCorrection | None) -> TimelineCalibration:
        """Return the errors that a correction learned from other runs leaves."""
        if self.signs is None or correction is None:
            return replace(self, signs=None, run=None)
        signs = self.signs.take(np.flatnonzero(self.kind == KINDS.index(FUTURE)))
        return self._corrected(correction, correction.log_ratio(signs))

    def _corrected(self, correction: ToldCorrection, log_ratio: np.ndarray) -> TimelineCalibration:
        """log_ratio: (n,) of open questions."""
        assert self.signs is not None
        mine, error = np.flatnonzero(self.kind == KINDS.index(FUTURE)), self.error.copy()
        signs = self.signs.take(mine)
        error[mine] -= np.log(after(signs, log_ratio) / signs.told)
        return replace(self, error=error, correction=correction, signs=None, run=None)

    @classmethod
    def updated(
        cls, model: Any, now: Any, runs: Runs, seed: int, chosen: bool
    ) -> TimelineCalibration | None:
        """Update with `now`, the model that has learned these runs, too: the old model's answers about them
        count beside those about earlier ones. Chosen runs and known ones do not count."""
        new = model.kept.unknown(runs).ok()
        changed = new.is_stretched and not bool(new.is_steady.all())
        if model.acts is None and not changed:
            return None
        names = Rates(now).names
        asked = cls.of(model, new, np.flatnonzero(~(new.is_chosen | chosen)), seed)
        known = None if model.acts is None else model.acts.correction
        asked = asked.corrected_by(known)
        parts = [asked] if model.acts is None else [model.acts, asked]
        codes = {name: code for code, name in enumerate(names[0])}
        code_of = np.array([codes[name] for name in Rates(model).names[0]], np.int64)
        both = cls.joined(parts)
        lately = slice(-_LATELY, None)
        newcomers = both.newcomers
        if changed:
            newcomers = Newcomers.of(new, *names)
        elif names != Rates(model).names:
            newcomers = newcomers.recoded(Rates(model).names, names)
        return cls(
            newcomers,
            both.kind[lately],
            both.moment[lately],
            code_of[both.workload[lately]],
            both.error[lately],
            known,
        )

    @classmethod
    def joined(cls, parts: Sequence[TimelineCalibration]) -> TimelineCalibration:
        """Concatenate, of the same names; newcomers are those of the first."""
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in parts])
            for name in ("kind", "moment", "workload", "error")
        }
        signs = [one.signs for one in parts if one.signs is not None]
        run = [one.run for one in parts if one.run is not None]
        if len(signs) < len(parts) or len(run) < len(parts):
            return cls(parts[0].newcomers, **columns)
        columns |= {"signs": Signs.concatenate(signs), "run": np.concatenate(run)}
        return cls(parts[0].newcomers, **columns)

    def bound(
        self, told: np.ndarray, asked: Timelines, log_times: np.ndarray, workload: np.ndarray,
        confidence: float,
    ) -> Bounds:  # fmt: skip
        """Bound predictions. told: (n,) predicted seconds. log_times: as of asked.progress. workload: (n,)
        codes."""
        n, elapsed = len(asked), asked.elapsed_seconds
        done = np.nan_to_num(asked.progress(log_times)[0])
        moment = np.searchsorted(MOMENTS, done, "right") - 1
        kind = np.array([int(over == FUTURE) for over in asked.over])
        is_told = np.isfinite(asked.done_ratio) & (elapsed > 0)
        kind[is_told & (moment > 0)] += len(KINDS)
        # When what has been until now would have let it end.
        begun = {"elapsed_seconds": np.zeros(n), "done_ratio": np.full(n, np.nan)}
        due = replace(asked, is_open=np.zeros(n, bool), **begun).runtime(log_times)
        behind = ~is_told & (elapsed > 0) & (due <= elapsed)
        kind[behind], moment[behind] = KINDS.index(TIMELINE), 0
        for one, at in np.unique(np.column_stack([kind, moment]), axis=0).tolist():
            number = len(self._scored(one, at)[0])
            if conformal_rank(number, confidence) > number:  # what was told as runs began holds on
                mine = (kind == one) & (moment == at)
                kind[mine], moment[mine] = one % len(KINDS), 0
        past = np.where(is_told, elapsed, 0.0)
        base = np.where(behind, due, told) - past
        bounds, number, ranks = (
            np.full(n, fill, t) for fill, t in ((np.inf, float), (0, int), (0, int))
        )
        for one, at in np.unique(np.column_stack([kind, moment]), axis=0).tolist():
            mine = np.flatnonzero((kind == one) & (moment == at))
            scores, width = self._scored(one, at)
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
        counted = np.flatnonzero(is_told)
        if len(counted):
            ratio = self._counted_ratios(asked.take(counted), workload[counted], confidence)
            at = np.searchsorted(MOMENTS, done[counted], "right") - 1
            with np.errstate(over="ignore"):
                most = base[counted] * np.exp(ratio[at, np.arange(len(at))])
            bounds[counted] = past[counted] + most
        bounds = np.where(np.isfinite(told), np.maximum(bounds, elapsed), np.inf)
        outcome = np.where(behind, BEHIND, ON_THE_ACT).astype("<U20")
        outcome[~np.isfinite(bounds)] = "too_few_runs"
        pool = np.array([f"{one:.0%} done" for one in MOMENTS], "<U20")[moment]
        evidence = np.full(n, f"{len(self.error)} answers to earlier jobs", "<U160")
        return Bounds(bounds, outcome, pool, number, ranks, confidence, evidence)

    def _counted_ratios(
        self, asked: Timelines, workload: np.ndarray, confidence: float
    ) -> np.ndarray:
        """Bound the time that is left over what a count of its own tells of it, at no moment less than at a
        later one. Returns (moments, n) logarithms."""
        found = np.full((len(MOMENTS), len(asked)), np.nan)
        for kind, name in enumerate(KINDS):
            mine = np.flatnonzero(
                np.array([(over == FUTURE) == (name == FUTURE) for over in asked.over])
            )
            for moment in range(len(MOMENTS)):
                scores, width = self._scored(kind + len(KINDS) * (moment > 0), moment)
                rank = conformal_rank(len(scores), confidence)
                most = scores[rank - 1] if rank <= len(scores) else np.nan
                found[moment, mine] = most * width[np.minimum(workload[mine], len(width) - 1)]
        found = np.where(np.isnan(found), found[0], found)  # what was told as runs began holds on
        return np.nan_to_num(np.maximum.accumulate(found[::-1])[::-1], nan=np.inf)

    def outlasted(
        self, begun: np.ndarray, asked: Timelines, workload: np.ndarray, confidence: float
    ) -> np.ndarray:
        """Count how many had ended by now, once they are so many that the bound of the beginning holds less
        often. begun: (n,) seconds that were predicted as each began. Returns (n,), 0 where they are fewer."""
        counts = np.zeros(len(asked), np.int64)
        kind = np.array([int(over == FUTURE) for over in asked.over])
        for one in np.unique(kind).tolist():
            mine = np.flatnonzero(kind == one)
            scores, width = self._scored(one, 0)
            with np.errstate(divide="ignore"):
                ratio = np.log(asked.elapsed_seconds[mine] / begun[mine])
            over = np.searchsorted(
                scores, ratio / width[np.minimum(workload[mine], len(width) - 1)], "right"
            )
            n = len(scores)
            ranks = np.array([conformal_rank(n - k, confidence) + k for k in over.tolist()])
            counts[mine] = np.where(ranks > conformal_rank(n, confidence), over, 0)
        return counts

    def _scored(self, kind: int, moment: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores in their order, the width of each name; the last for names without any)."""
        if (kind, moment) not in self._scores:
            there = (self.kind == kind) & (self.moment == moment)
            error, name = self.error[there], self.workload[there]
            size = np.abs(error)
            usual = max(float(size.mean()) if len(size) else 0.0, 1e-9)
            number, whole = (np.append(np.bincount(name, weights), 0.0) for weights in (None, size))
            without = (whole[name] - size + _SHRUNK * usual) / (number[name] - 1 + _SHRUNK)
            width = (whole + _SHRUNK * usual) / (number + _SHRUNK)
            scores = np.sort(error / (without + _LEAST * usual))
            self._scores[kind, moment] = scores, width + _LEAST * usual
        return self._scores[kind, moment]


def _errors(
    age: Ages, rows: np.ndarray, moment: int, is_told: bool, newcomers: Newcomers, seed: int
) -> tuple[tuple[np.ndarray, ...], Signs]:
    """Ask about runs of the log at one of the moments of their work, by the law or, is_told, by their own
    count. Returns ((kinds, moments, workloads, runs, errors), signs)."""
    share = MOMENTS[moment]
    elapsed = age.when_done(rows, share, is_told) if moment else np.zeros(len(rows))
    on = np.flatnonzero(elapsed < age.runs.runtime_seconds[rows])
    rows, elapsed = rows[on], elapsed[on]
    actual = age.runs.runtime_seconds[rows]
    found: list[tuple[np.ndarray, ...]] = []
    shown: list[Signs] = []
    for kind, name in enumerate(KINDS):
        asked = past_and_future(age.runs, rows, elapsed, is_open=name == FUTURE)
        if is_told:
            asked = replace(asked, done_ratio=np.full(len(rows), share))
        if name == FUTURE:
            asked = age.with_residents(asked, rows)
        past = elapsed if is_told else 0.0
        with np.errstate(invalid="ignore", divide="ignore"):
            told, log_times = _told_with_times(age.rates, asked, newcomers, seed)
            error = np.log((actual - past) / (told - past))
        good = np.flatnonzero(np.isfinite(error))
        signs = Signs.of(asked, log_times, told, age.rates.names, age.of_log[rows]).take(good)
        n, code = len(good), kind + len(KINDS) * is_told
        columns = np.full(n, code), np.full(n, moment), signs.workload, rows[good], error[good]
        found.append(columns)
        shown.append(signs)
    return tuple(np.concatenate(one) for one in zip(*found, strict=True)), Signs.concatenate(shown)


def told_by(
    rates: Rates,
    asked: Timelines,
    newcomers: Newcomers | None,
    seed: int = 0,
    correction: ToldCorrection | None = None,
) -> np.ndarray:
    """Predict (n,) seconds from start to end, the median of drawn futures if the question is open. Raises
    UsageError for such a question if no arrivals were seen."""
    told, log_times = _told_with_times(rates, asked, newcomers, seed)
    if correction is None:
        return told
    drift = getattr(rates.fitted, "moved", None)
    moved = np.zeros(len(asked), bool)
    if drift is not None:
        moved = drift.log_ratio(asked.colocations.take(asked.now))[1]
    return correction.corrected(asked, log_times, told, moved)


def _told_with_times(
    rates: Rates, asked: Timelines, newcomers: Newcomers | None, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) seconds as of told_by, log_times as of asked.progress)."""
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
    random = np.random.default_rng(seed)
    now = asked.take(rows)
    c, done, pace = now.colocations, done[rows], pace[rows]
    workload, platform, corunner = c.take(now.last).recode(*rates.names)
    number = c.number_of_corunners[now.last]
    width = int(number.max(initial=0)) + 1
    members, left = np.full((len(rows), width), -1), np.full((len(rows), width), np.nan)
    members[:, 0] = workload
    row = np.repeat(np.arange(len(rows)), number)
    column = np.concatenate([np.arange(k) for k in number] or [np.zeros(0, int)])
    members[row, column + 1] = corunner
    if now.beside_done is not None:
        at = np.repeat(c.corunner_offsets[:-1][now.last], number) + column
        left[row, column + 1] = 1 - now.beside_done[at]
        since = now.elapsed_seconds - now.start_seconds[now.last]
        left = np.maximum(left - since[:, None] / rates.of(platform, members), OVERDUE)
    left[:, 0] = 1 - done
    many = [np.repeat(one, DRAWS, axis=0) for one in (platform, members, left)]
    luck = np.stack([spread_over(random) for _ in range(width)], axis=1)
    many[2] = np.where(np.isnan(many[2]), np.tile(luck, (len(rows), 1)), many[2])
    speed = np.ones(many[1].shape)
    speed[:, 0] = np.repeat(pace, DRAWS)
    nodes = BusyNodes(many[0], many[1], many[2], speed)
    more = ends(rates, nodes, newcomers, watched=1, seed=seed + 1)[:, 0]
    told[rows] = now.elapsed_seconds + np.median(more.reshape(-1, DRAWS), axis=1)
    return told, log_times


@dataclass(frozen=True)
class Ages:
    """Progress of the runs of a log at the moments at which others were there. start: (n,) int64
    microseconds; order: of runs by node and start. of_log: (n,) from -1 where the log begins to 0 where it
    ends; 0 if not known."""

    runs: Runs
    rates: Rates
    node: np.ndarray
    start: np.ndarray
    order: np.ndarray
    of_log: np.ndarray

    @classmethod
    def of(cls, runs: Runs, rates: Any) -> Ages:
        """Take what was known of runs at several of their ages.

        rates: those of what was learned, or it.
        """
        rates = rates if isinstance(rates, Rates) else Rates(rates)
        n = len(runs)
        node, start, of_log = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n)
        if "node" in runs.table.schema.names:
            node = np.unique(
                np.array(runs.table.column("node").cast("string").fill_null("").to_pylist(), str),
                return_inverse=True,
            )[1].reshape(-1)
            at = runs.table.column("measured_at").combine_chunks().cast("int64")
            start = at.fill_null(0).to_numpy()
            latest = int(start.max(initial=0))
            first = int(start[start > 0].min(initial=latest))
            of_log = np.where(start > 0, (start - latest) / max(latest - first, 1), 0.0)
        return cls(runs, rates, node, start, np.lexsort((start, node)), of_log)

    def _work(self, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return (stretches of the rows, work that the law gives each, seconds of a run throughout it)."""
        asked = past_and_future(self.runs, rows, np.zeros(len(rows)), is_open=False)
        seconds = self.rates.seconds(asked.colocations)
        end = np.append(asked.start_seconds[1:], 0)
        end[asked.last] = self.runs.runtime_seconds[rows]
        return asked, (end - asked.start_seconds) / seconds, seconds

    def when_done(self, rows: np.ndarray, share: float, of_own: bool = False) -> np.ndarray:
        """Return (k,) seconds after the start when the law says that so much was done (of_own: of what it
        says of the whole run); infinite if never."""
        asked, work, seconds = self._work(rows)
        done = share * (np.bincount(asked.row, work) if of_own else np.ones(len(rows)))[asked.row]
        total = np.concatenate([[0.0], np.cumsum(work)])
        first = asked.last + 1 - np.bincount(asked.row, minlength=len(rows))
        before = total[:-1] - total[first][asked.row]
        there = (before < done) & (before + work >= done)
        out = np.full(len(rows), np.inf)
        out[asked.row[there]] = (asked.start_seconds + (done - before) * seconds)[there]
        return out

    def with_residents(self, asked: Timelines, rows: np.ndarray) -> Timelines:
        """Add what co-runners that are runs of the log themselves had done as each stretch began."""
        runs, c = self.runs, asked.colocations
        done = np.full(len(c.corunner), np.nan)
        # A co-runner that changes the company begins or ends at that very moment.
        when = self.start[rows][asked.row] + (1e6 * asked.start_seconds).astype(np.int64) + 1000
        key = self.node[self.order]
        names = runs.colocations.workload
        pairs: list[tuple[int, int, float]] = []  # place in done, run, age
        for part, row in enumerate(rows[asked.row].tolist()):
            low = np.searchsorted(key, self.node[row])
            high = np.searchsorted(key, self.node[row], "right")
            mine = self.order[low:high]
            mine = mine[: np.searchsorted(self.start[mine], when[part], "right")][-50:]
            age = (when[part] - self.start[mine]) / 1e6
            there = (age < runs.runtime_seconds[mine]) & (mine != row)
            free = {int(j): a for j, a in zip(mine[there], age[there], strict=True)}
            for at in range(c.corunner_offsets[part], c.corunner_offsets[part + 1]):
                who = next((j for j in free if names[j] == c.corunner[at]), None)
                if who is not None:
                    pairs.append((at, who, free.pop(who)))
        if pairs:
            at, who, age = (np.array(one) for one in zip(*pairs, strict=True))
            done[at] = self._done(who, age)
        return replace(asked, beside_done=done)

    def _done(self, rows: np.ndarray, age: np.ndarray) -> np.ndarray:
        """Return share of its work that each of these runs has done at an age, by the law."""
        some, of = np.unique(rows, return_inverse=True)
        asked, work, seconds = self._work(some)
        before = np.concatenate([[0.0], np.cumsum(work)[:-1]])
        span = float(self.runs.runtime_seconds[some].max()) + 1.0
        part = np.searchsorted(asked.row * span + asked.start_seconds, of * span + age, "right") - 1
        first = asked.last + 1 - np.bincount(asked.row, minlength=len(some))
        done = before[part] - before[first[of]] + (age - asked.start_seconds[part]) / seconds[part]
        return np.minimum(done, 1 - OVERDUE)


def asked_codes(rates: Rates, asked: Timelines) -> np.ndarray:
    """Code the workload of each question as the model does, (n,)."""
    workload, _, _ = asked.colocations.take(asked.last).recode(*rates.names)
    return workload
