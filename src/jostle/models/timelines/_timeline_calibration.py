"""Bounds of what was told over time, calibrated on the act: earlier jobs of the log are asked about as they
began, and at each further quarter of their work, with what could be known then.

Scores are (actual - told) / told of whole runtimes, by what was known (all company of the run, or what had
been until then) and by quarter. The conformal rank is taken among runs of the same workload where they are
enough, else among all. Progress is told from the time; a run's own heartbeat can only tell more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.conformal import ON_THE_ACT, Bounds, conformal_rank
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

if TYPE_CHECKING:
    from jostle.data import Runs

QUARTERS = 4
KINDS = (TIMELINE, FUTURE)
_FEWEST = 40  # runs of one workload that it is bounded by alone
MOST = 400  # runs that are asked about anew
_LATELY = 20_000  # answers that are kept


@dataclass(frozen=True)
class Acts(Serializable):
    """newcomers: as lately seen. kind, quarter, workload: (n,) int64 of each score; workload by the codes of
    the model. score: (n,) float64."""

    newcomers: Newcomers
    kind: np.ndarray
    quarter: np.ndarray
    workload: np.ndarray
    score: np.ndarray

    @classmethod
    def of(
        cls, fitted: Any, runs: Runs, calibration: np.ndarray, seed: int, most: int = MOST
    ) -> Acts:
        """fitted: what was learned without the calibration runs. runs: all of the log, with status ok.
        calibration: (k,) rows of it, of which at most so many are asked about."""
        rates = Rates(fitted)
        newcomers = Newcomers.of(runs, *rates.names)
        parts = runs.take(calibration).stretches
        known = np.ones(len(calibration), bool)
        known[parts.row[~parts.colocations.known_in(*rates.names)]] = False
        rows = np.asarray(calibration)[known]
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
        if not len(rows):
            none = np.zeros(0, np.int64)
            return cls(newcomers, none, none, none, np.zeros(0))
        actual, age = runs.runtime_seconds[rows], Ages.of(runs, rates)
        workload, _, _ = runs.colocations.take(rows).recode(*rates.names)
        found: list[tuple[np.ndarray, ...]] = []
        for quarter in range(QUARTERS):
            elapsed = age.when_done(rows, quarter / QUARTERS) if quarter else np.zeros(len(rows))
            on = np.flatnonzero(elapsed < actual)
            for kind, name in enumerate(KINDS):
                asked = past_and_future(runs, rows[on], elapsed[on], is_open=name == FUTURE)
                if name == FUTURE:
                    asked = age.with_residents(asked, rows[on])
                told = told_by(rates, asked, newcomers, seed)
                good = np.isfinite(told) & (told > 0)
                score = actual[on][good] / told[good] - 1
                n = len(score)
                found.append((np.full(n, kind), np.full(n, quarter), workload[on][good], score))
        columns = [np.concatenate(column) for column in zip(*found, strict=True)]
        kind, quarter, workload = (column.astype(np.int64) for column in columns[:3])
        return cls(newcomers, kind, quarter, workload, columns[3])

    @classmethod
    def updated(cls, model: Any, now: Any, runs: Runs, seed: int, chosen: bool) -> Acts | None:
        """Those of `now`, which is the model when it has learned these runs, too: its answers about them
        before it had count beside those about earlier ones. Chosen runs and known
        ones do not count."""
        new = model.kept.unknown(runs).ok()
        changed = new.is_stretched and not bool(new.is_steady.all())
        if model.acts is None and not changed:
            return None
        names = Rates(now).names
        asked = cls.of(model, new, np.flatnonzero(~(new.is_chosen | chosen)), seed)
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
            both.quarter[lately],
            code_of[both.workload[lately]],
            both.score[lately],
        )

    @classmethod
    def joined(cls, parts: Sequence[Acts]) -> Acts:
        """One after the other, of the same names; newcomers are those of the first."""
        columns = (
            np.concatenate([getattr(one, name) for one in parts])
            for name in ("kind", "quarter", "workload", "score")
        )
        return cls(parts[0].newcomers, *columns)

    def bound(
        self, told: np.ndarray, asked: Timelines, quarter: np.ndarray, workload: np.ndarray,
        confidence: float,
    ) -> Bounds:  # fmt: skip
        """told: (n,) seconds. quarter: (n,) of its work that each is in. workload: (n,) codes."""
        n = len(asked)
        seconds, outcome = np.full(n, np.inf), np.full(n, "too_few_runs", "<U20")
        pool = np.full(n, "", "<U20")
        number, ranks = np.zeros(n, np.int64), np.zeros(n, np.int64)
        kind = np.array([int(over == FUTURE) for over in asked.over])
        keys, inverse = np.unique(
            np.column_stack([kind, quarter, workload]), axis=0, return_inverse=True
        )
        for place, (one, at, who) in enumerate(keys.tolist()):
            mine = inverse.reshape(-1) == place
            there = (self.kind == one) & (self.quarter == at)
            own = there & (self.workload == who)
            is_own = own.sum() >= max(_FEWEST, _enough(confidence))
            scores = np.sort(self.score[own if is_own else there])
            rank = conformal_rank(len(scores), confidence)
            number[mine], ranks[mine] = len(scores), rank
            pool[mine] = f"quarter {at + 1}{', by name' if is_own else ''}"
            if rank <= len(scores):
                seconds[mine] = told[mine] * (1 + scores[rank - 1])
                outcome[mine] = ON_THE_ACT
        seconds = np.where(np.isfinite(told), np.maximum(seconds, asked.elapsed_seconds), np.inf)
        rest = f"{len(self.score)} answers to earlier jobs"
        evidence = np.full(n, rest, "<U160")
        return Bounds(seconds, outcome, pool, number, ranks, confidence, evidence)


def _enough(confidence: float) -> int:
    """So many runs that a bound by them is none of the largest few."""
    return int(np.ceil(4 / max(1 - confidence, 1e-9)))


def told_by(
    rates: Rates, asked: Timelines, newcomers: Newcomers | None, seed: int = 0
) -> np.ndarray:
    """(n,) seconds from start to end, the median of drawn futures where they are open. Raises UsageError for
    such a question where nobody was seen to come."""
    log_times = np.log(rates.fitted.predict(asked.colocations))
    told = asked.runtime(log_times)
    rows = np.flatnonzero(asked.is_open)
    if not len(rows):
        return told
    if newcomers is None:
        raise UsageError(
            "nobody was seen to come: the model learned from no log",
            fix="Say who is there and when it ends, or learn from a log (jostle import sacct).",
        )
    done, pace = asked.progress(log_times)
    # The closer answer is taken of those who are there now, and quick ones of how others change it.
    quick = np.log(rates.seconds(asked.colocations, np.nan))
    pace = pace * np.exp(np.nan_to_num((quick - log_times)[asked.last]))
    random = np.random.default_rng(seed)
    now = asked.take(rows)
    c, done, pace = now.colocations, done[rows], pace[rows]
    workload, platform, corunner = c.take(now.last).recode(*rates.names)
    number = c.number_of_corunners[now.last]
    width = int(number.max(initial=0)) + 1
    members, left = np.full((len(rows), width), -1), np.full((len(rows), width), np.nan)
    members[:, 0], left[:, 0] = workload, 1 - done
    row = np.repeat(np.arange(len(rows)), number)
    column = np.concatenate([np.arange(k) for k in number] or [np.zeros(0, int)])
    members[row, column + 1] = corunner
    if now.beside_done is not None:
        offsets = c.corunner_offsets
        at = np.repeat(offsets[:-1][now.last], number) + column
        left[row, column + 1] = 1 - now.beside_done[at]
    many = [np.repeat(one, DRAWS, axis=0) for one in (platform, members, left)]
    luck = np.stack([spread_over(random) for _ in range(width)], axis=1)
    many[2] = np.where(np.isnan(many[2]), np.tile(luck, (len(rows), 1)), many[2])
    speed = np.ones(many[1].shape)
    speed[:, 0] = np.repeat(pace, DRAWS)
    nodes = BusyNodes(many[0], many[1], many[2], speed)
    more = ends(rates, nodes, newcomers, watched=1, seed=seed + 1)[:, 0]
    told[rows] = now.elapsed_seconds + np.median(more.reshape(-1, DRAWS), axis=1)
    return told


@dataclass(frozen=True)
class Ages:
    """How far runs of a log had come when others were there. start, end: (n,) int64 microseconds; order: of
    runs by node and start."""

    runs: Runs
    rates: Rates
    node: np.ndarray
    start: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, runs: Runs, rates: Any) -> Ages:
        """rates: those of what was learned, or it."""
        rates = rates if isinstance(rates, Rates) else Rates(rates)
        n = len(runs)
        node, start = np.zeros(n, np.int64), np.zeros(n, np.int64)
        if "node" in runs.table.schema.names:
            node = np.unique(
                np.array(runs.table.column("node").cast("string").fill_null("").to_pylist(), str),
                return_inverse=True,
            )[1].reshape(-1)
            at = runs.table.column("measured_at").combine_chunks().cast("int64")
            start = at.fill_null(0).to_numpy()
        return cls(runs, rates, node, start, np.lexsort((start, node)))

    def _work(self, rows: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        """(stretches of these, lawful work of each stretch, its start)."""
        asked = past_and_future(self.runs, rows, np.zeros(len(rows)), is_open=False)
        seconds = self.rates.seconds(asked.colocations)
        end = np.append(asked.start_seconds[1:], 0)
        end[asked.last] = self.runs.runtime_seconds[rows]
        return asked, (end - asked.start_seconds) / seconds, seconds

    def when_done(self, rows: np.ndarray, share: float) -> np.ndarray:
        """(k,) seconds after their start when the law says that so much was done; infinite where never."""
        asked, work, seconds = self._work(rows)
        total = np.concatenate([[0.0], np.cumsum(work)])
        first = asked.last + 1 - np.bincount(asked.row, minlength=len(rows))
        before = total[:-1] - total[first][asked.row]
        there = (before < share) & (before + work >= share)
        out = np.full(len(rows), np.inf)
        out[asked.row[there]] = (asked.start_seconds + (share - before) * seconds)[there]
        return out

    def with_residents(self, asked: Timelines, rows: np.ndarray) -> Timelines:
        """With what was done by co-runners that are runs of the log themselves."""
        runs, c = self.runs, asked.colocations
        done = np.full(len(c.corunner), np.nan)
        when = self.start[rows] + (1e6 * asked.elapsed_seconds).astype(np.int64)
        key = self.node[self.order]
        names = runs.colocations.workload
        pairs: list[tuple[int, int, float]] = []  # place in done, run, age
        for n, (row, last) in enumerate(zip(rows.tolist(), asked.last.tolist(), strict=True)):
            low = np.searchsorted(key, self.node[row])
            high = np.searchsorted(key, self.node[row], "right")
            mine = self.order[low:high]
            mine = mine[: np.searchsorted(self.start[mine], when[n], "right")][-50:]
            age = (when[n] - self.start[mine]) / 1e6
            there = (age < runs.runtime_seconds[mine]) & (mine != row)
            free = {int(j): a for j, a in zip(mine[there], age[there], strict=True)}
            for at in range(c.corunner_offsets[last], c.corunner_offsets[last + 1]):
                who = next((j for j in free if names[j] == c.corunner[at]), None)
                if who is not None:
                    pairs.append((at, who, free.pop(who)))
        if pairs:
            at, who, age = (np.array(one) for one in zip(*pairs, strict=True))
            past = past_and_future(runs, who, age, is_open=True)
            done[at] = past.progress(np.log(self.rates.seconds(past.colocations)))[0]
        return replace(asked, beside_done=done)


def asked_codes(rates: Rates, asked: Timelines) -> np.ndarray:
    """(n,) of whom each question is, by the model's codes."""
    workload, _, _ = asked.colocations.take(asked.last).recode(*rates.names)
    return workload
