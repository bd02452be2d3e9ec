"""Questions whose company changes: known arrivals and ends, and what may come after them.

Work is done at the rate 1 / time, so with t_k the seconds that a run takes in company k throughout, it ends
when the sum of dt_k / t_k over its stretches is 1. What of it is done at a moment that has passed already is
the same sum, unless the run itself tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jostle.data import Colocations
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.data import Runs

THROUGHOUT, TIMELINE, FUTURE = "throughout", "timeline", "future"
Over = Literal["throughout", "timeline", "future"]
# Of its work, what is thought to be left at least of a run that goes on past its predicted end.
OVERDUE = 0.05
# How much of its work has to be done before a run's own pace counts as much as the prediction does.
PACE = 0.1
_RISING = "Starts rise from 0, in seconds since the run began."


@dataclass(frozen=True)
class Timelines:
    """Questions of how long a run takes in all, from its start to its end, in company that changes.

    row: (m,) int64 rising, the question of each stretch; each has one at least. start_seconds: (m,) float64
    from the start of the run, 0 for the first of each and rising within it; the last goes on. colocations:
    (m,) what is beside what in each. elapsed_seconds: (n,) since when it runs, 0 before it starts.
    done_ratio: (n,) the share of its work that is done by then, by a heartbeat or a count of instructions;
    NaN where only the time tells. is_open: (n,) bool, whether after the last stretch has begun its company
    ends in its turn and others come as lately seen; else it stays to the end of the run. beside_done: of
    each co-runner in the colocations the share of its own work that was done when its stretch began, below 0
    of one that begins later, NaN where it is not known; None: of none.
    """

    row: np.ndarray
    start_seconds: np.ndarray
    colocations: Colocations
    elapsed_seconds: np.ndarray
    done_ratio: np.ndarray
    is_open: np.ndarray
    beside_done: np.ndarray | None = None

    @classmethod
    def of_colocations(cls, colocations: Colocations) -> Timelines:
        """Make timelines of runs that begin now, in this company throughout."""
        n = len(colocations)
        zero, none = np.zeros(n), np.full(n, np.nan)
        return cls(np.arange(n), zero, colocations, zero, none, np.zeros(n, bool))

    @classmethod
    def from_columns(
        cls,
        *,
        workload: Sequence[str],
        platform: Sequence[str],
        stretches: Sequence[Sequence[tuple[float, Sequence[str]]]],
        elapsed_seconds: Any = None,
        done_ratio: Any = None,
        future: Any = False,
    ) -> Timelines:
        """Make questions from columns of equal length.

        stretches: of each question (start_seconds, names beside it), in order; one with the same names as the
        one before it goes on. Raises UsageError, and BadRows for names that are none.
        """
        n = len(workload)
        counts = [len(one) for one in stretches]
        if len(platform) != n or len(counts) != n or 0 in counts:
            raise UsageError(
                f"{n} workloads, {len(platform)} platforms and {len(counts)} timelines",
                fix="As many of each, with a stretch at least: [(0, [])] is alone throughout.",
            )
        row = np.repeat(np.arange(n), counts)
        parts = [part for one in stretches for part in one]
        colocations = Colocations.from_columns(
            workload=[workload[n] for n in row.tolist()],
            platform=[platform[n] for n in row.tolist()],
            corunners=[beside for _, beside in parts],
        )
        start = np.array([seconds for seconds, _ in parts], np.float64).reshape(-1)
        elapsed = np.zeros(n) if elapsed_seconds is None else np.array(elapsed_seconds, float)
        done = [np.nan if one is None else one for one in (done_ratio or [None] * n)]
        is_open = np.broadcast_to(np.asarray(future, bool), n)
        made = cls(row, start, colocations, elapsed, np.array(done, float), is_open)
        names = [sorted(beside) for _, beside in parts]
        changes = [
            k == 0 or row[k] != row[k - 1] or names[k] != names[k - 1] for k in range(len(row))
        ]
        if all(changes):
            return made
        at = np.flatnonzero(changes)
        return replace(made, row=row[at], start_seconds=start[at], colocations=colocations.take(at))

    def __post_init__(self) -> None:
        first = np.diff(self.row, prepend=-1) != 0
        start, elapsed, done = self.start_seconds, self.elapsed_seconds, self.done_ratio
        with np.errstate(invalid="ignore"):
            late = ~first & ~(np.diff(start, prepend=0) > 0)
            wrong = (
                ("does not start at 0", self.row[first & (start != 0)], _RISING),
                (
                    "has a stretch that does not start after the one before it",
                    self.row[late],
                    _RISING,
                ),
                ("has a start that is not finite", self.row[~np.isfinite(start)], _RISING),
                (
                    "has run for less than nothing",
                    np.flatnonzero(~((elapsed >= 0) & (elapsed < np.inf))),
                    "For how long it has run is in seconds, 0 before it starts.",
                ),
                (
                    "has done less than nothing or all of its work",
                    np.flatnonzero((done < 0) | (done >= 1)),
                    "A share from 0 to under 1, such as 0.4; none of what runs past its end, and the time "
                    "tells.",
                ),
                (
                    "has done work before it started",
                    np.flatnonzero((done > 0) & (elapsed == 0)),
                    "Say for how long it has run, too.",
                ),
                (
                    "is open before its last known stretch has begun",
                    np.flatnonzero(self.is_open & (start[self.last] > elapsed)),
                    "What may come is asked about from now on: name who has come by now, or no future.",
                ),
            )
        for what, rows, fix in wrong:
            if len(rows):
                raise UsageError(f"the timeline in row {rows[0]} {what}", fix=fix)

    def __len__(self) -> int:
        return len(self.elapsed_seconds)

    @property
    def last(self) -> np.ndarray:
        """Position of each question's last stretch, (n,) int64."""
        return np.flatnonzero(np.diff(self.row, append=-1) != 0)

    @property
    def now(self) -> np.ndarray:
        """Position of the stretch that each question is in, (n,) int64."""
        begun = self.start_seconds <= self.elapsed_seconds[self.row]
        counts = np.bincount(self.row, minlength=len(self))
        return self.last - counts + np.bincount(self.row[begun], minlength=len(self))

    @property
    def over(self) -> list[Over]:
        """Scope of each question, (n,): these co-runners throughout, a known timeline, or what may come."""
        many = np.bincount(self.row, minlength=len(self)) > 1
        return [
            FUTURE if is_open else TIMELINE if changes else THROUGHOUT
            for is_open, changes in zip(self.is_open.tolist(), many.tolist(), strict=True)
        ]

    def to_columns(self) -> dict[str, list[Any]]:
        """Return columns as questions are sent: with the stretches of each as a list of objects."""
        now = self.colocations.take(self.last).to_columns()
        companies = self.colocations.to_columns()
        stretches: list[list[dict[str, Any]]] = [[] for _ in range(len(self))]
        beside = companies["corunners"]
        for row, start, names in zip(
            self.row.tolist(), self.start_seconds.tolist(), beside, strict=True
        ):
            stretches[row].append({"start_seconds": start, "corunners": list(names)})
        return {
            "workload": now["workload"],
            "platform": now["platform"],
            "stretches": stretches,
            "elapsed_seconds": self.elapsed_seconds.tolist(),
            "done_ratio": [one if one == one else None for one in self.done_ratio.tolist()],
            "future": self.is_open.tolist(),
        }

    def begun_part(self) -> Timelines:
        """Keep the stretches that have begun: the one of now goes on."""
        return self._with(np.flatnonzero(self.start_seconds <= self.elapsed_seconds[self.row]))

    def _with(self, stretches: np.ndarray) -> Timelines:
        """Keep these stretches."""
        return replace(
            self,
            row=self.row[stretches],
            start_seconds=self.start_seconds[stretches],
            colocations=self.colocations.take(stretches),
            beside_done=self._beside_done(stretches),
        )

    def _beside_done(self, stretches: np.ndarray) -> np.ndarray | None:
        """Return what the co-runners of these stretches had done."""
        if self.beside_done is None:
            return None
        offsets = self.colocations.corunner_offsets
        number = np.diff(offsets)[stretches]
        return self.beside_done[np.repeat(offsets[:-1][stretches], number) + _counted(number)]

    def earlier(
        self, log_times: np.ndarray, shares: Sequence[float]
    ) -> tuple[Timelines, np.ndarray]:
        """Ask about each run at earlier moments: as it began, as its co-runners changed, and as these shares
        of its work were done by the law, with what was known then, by the time. log_times: as of progress.
        Returns (questions, (k,) the row that each is of)."""
        elapsed, rate = self.elapsed_seconds[self.row], np.nan_to_num(np.exp(-log_times))
        end = np.append(self.start_seconds[1:], np.inf)
        end[self.last] = np.inf
        work = np.maximum(np.minimum(end, elapsed) - self.start_seconds, 0) * rate
        before = np.concatenate([[0.0], np.cumsum(work)[:-1]])
        first = self.last + 1 - np.bincount(self.row, minlength=len(self))
        before -= before[first][self.row]
        of, when = [self.row], [self.start_seconds]
        for share in shares:
            there = np.flatnonzero((before < share) & (before + work >= share))
            since = (share - before[there]) / rate[there]
            of.append(self.row[there])
            # A little later, so that rounding leaves nothing less done than that.
            when.append((self.start_seconds[there] + since) * (1 + 1e-9))
        rows, times = np.concatenate(of), np.concatenate(when)
        known = times <= self.elapsed_seconds[rows]
        rows, times = rows[known], times[known]
        n = len(rows)
        some = replace(
            self.take(rows),
            elapsed_seconds=times,
            done_ratio=np.full(n, np.nan),
            is_open=np.zeros(n, bool),
        )
        is_open = self.is_open[rows]
        begun = ~is_open[some.row] | (some.start_seconds <= times[some.row])
        return replace(some._with(np.flatnonzero(begun)), is_open=is_open), rows

    def without(self, name: str) -> Timelines:
        """Remove one co-runner of that name from each stretch that has it."""
        columns = self.colocations.to_columns()
        for beside in columns["corunners"]:
            if name in beside:
                beside.remove(name)
        rest = Colocations.from_columns(**columns, covariates=self.colocations.covariates)
        return replace(self, colocations=rest, beside_done=None)

    def take(self, rows: Any) -> Timelines:
        """Take (k,) of the questions, in this order. rows: int64."""
        rows = np.asarray(rows)
        counts = np.bincount(self.row, minlength=len(self))
        starts = np.cumsum(counts) - counts
        at = np.repeat(starts[rows], counts[rows]) + _counted(counts[rows])
        return Timelines(
            np.repeat(np.arange(len(rows)), counts[rows]),
            self.start_seconds[at],
            self.colocations.take(at),
            self.elapsed_seconds[rows],
            self.done_ratio[rows],
            self.is_open[rows],
            self._beside_done(at),
        )

    def progress(self, log_times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ((n,) share of the work done by now, (n,) pace: how many times faster than the law says the
        run has been). log_times: (m,) natural log of the seconds of each company throughout."""
        return done_and_pace(self.done_ratio, self.lawful(log_times))

    def lawful(self, log_times: np.ndarray) -> np.ndarray:
        """Compute the (n,) share of the work that should be done by now, over 1 if overdue. log_times: as of
        progress."""
        end = np.append(self.start_seconds[1:], np.inf)
        end[self.last] = np.inf
        elapsed = self.elapsed_seconds[self.row]
        past = np.maximum(np.minimum(end, elapsed) - self.start_seconds, 0)
        return np.bincount(self.row, past * np.exp(-log_times), len(self))

    def runtime(self, log_times: np.ndarray) -> np.ndarray:
        """Predict (n,) seconds from start to end, the last company staying to the end; NaN if a rate that
        counts is not known."""
        n = len(self)
        done, pace = self.progress(log_times)
        end = np.append(self.start_seconds[1:], np.inf)
        end[self.last] = np.inf
        begin = np.maximum(self.start_seconds, self.elapsed_seconds[self.row])
        rate = pace[self.row] * np.exp(-log_times)
        with np.errstate(invalid="ignore"):
            work = np.where(np.isfinite(end), np.maximum(end - begin, 0) * rate, np.inf)
        counts = np.bincount(self.row, minlength=n)
        first = np.cumsum(counts) - counts
        left, total = 1 - done, np.full(n, np.nan)
        for place in range(int(counts.max(initial=0))):
            rows = np.flatnonzero((counts > place) & np.isnan(total) & np.isfinite(left))
            at = first[rows] + place
            ends = work[at] >= left[rows]
            total[rows[ends]] = begin[at[ends]] + left[rows[ends]] / rate[at[ends]]
            left[rows] -= work[at]
        return total


def done_and_pace(done_ratio: np.ndarray, lawful: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (share of the work done by now, how many times faster than the law says it went). done_ratio: by
    its own count, NaN where only the time tells. lawful: by the law."""
    known = np.isfinite(done_ratio)
    done = np.where(known, done_ratio, np.minimum(lawful, 1 - OVERDUE))
    return done, np.where(known, (np.nan_to_num(done) + PACE) / (lawful + PACE), 1.0)


def past_and_future(
    runs: Runs, rows: np.ndarray, elapsed_seconds: np.ndarray, *, is_open: bool
) -> Timelines:
    """Make the questions that could be asked when runs had run so long. is_open: only what had been by then
    is known, else all of the timeline, up to the end."""
    parts = runs.stretches.take(rows)
    counts = parts.counts
    before = np.concatenate([[0.0], np.cumsum(parts.seconds)])
    start = before[:-1] - np.repeat(before[np.cumsum(counts) - counts], counts)
    start[np.cumsum(counts) - counts] = 0.0
    kept = (start <= elapsed_seconds[parts.row]) if is_open else np.ones(len(start), bool)
    n = len(rows)
    return Timelines(
        parts.row[kept],
        start[kept],
        parts.colocations.take(np.flatnonzero(kept)),
        np.array(elapsed_seconds, float),
        np.full(n, np.nan),
        np.full(n, is_open),
    )


def _counted(number: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... number - 1 for each of them, one after the other."""
    ends = np.cumsum(number)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)
