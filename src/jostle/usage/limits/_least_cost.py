"""Requests that cost least: from the law of the next peak, hedged by simple rules; and their replay.

A log is replayed in time: of each run only what had ended before it began is known. Every rule is asked about
every run, and what its requests would have cost is added up. A simple rule takes over for a workload once it
has been cheaper there beyond chance.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from jostle.usage.limits._peak_law import PeakForm, WorkloadLaw, forms_of, learn_in_common
from jostle.usage.limits._retry_policy import RetryPolicy

JOSTLE, REQUESTED = "jostle", "requested"
_SIMPLE: dict[str, Callable[[np.ndarray], float]] = {
    "largest_seen": lambda seen: float(seen.max()),
    "largest_seen_x1.2": lambda seen: 1.2 * float(seen.max()),
    "largest_seen_x1.5": lambda seen: 1.5 * float(seen.max()),
    "quantile_0.95": lambda seen: float(np.quantile(seen, 0.95, method="higher")),
}
RULES = (JOSTLE, REQUESTED, *_SIMPLE)
_OTHERS = [n for n, rule in enumerate(RULES) if rule != REQUESTED]
_LATEST = 400  # runs of a workload that its law is made of
_IN_COMMON = 300  # workloads at most, evenly taken, from which is learned what they have in common
_BEYOND_CHANCE, _LEAST_RUNS = 2.0, 6  # standard errors by which a rule has to be cheaper
_FIRST_REPEATS = np.array([0.0, 1.0])  # workloads that repeat their largest peak, of so many
_FORGETS = 0.95  # of what was saved, with each run: a workload may change


@dataclass(frozen=True, eq=False)
class RunHistory:
    """What a log says of n runs. workload: (n,) names. start, end: (n,) s. value: (n,) what each needed, its
    peak in GB or its time in hours, NaN where not known. requested: (n,) in the same unit, NaN likewise.
    hours: (n,) how long each took. covariates: (d, n) what was known before, NaN likewise. is_open: (n,)
    which died at their limit, so that they needed more than `value`."""

    workload: np.ndarray
    start: np.ndarray
    end: np.ndarray
    value: np.ndarray
    requested: np.ndarray
    hours: np.ndarray
    covariates: np.ndarray
    is_open: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)


@dataclass
class _Workload:
    """What has ended of one workload; rows in the order of their starts."""

    rows: list[int] = field(default_factory=list)
    law: WorkloadLaw | None = None
    saved: np.ndarray = field(default_factory=lambda: np.zeros(len(RULES)))
    squares: np.ndarray = field(default_factory=lambda: np.zeros(len(RULES)))
    compared: int = 0
    largest: float = 0.0
    repeats: int = 0  # of what it had needed at most

    @property
    def repeats_ratio(self) -> float:
        """Share of its runs but the first that needed just what others had needed at most."""
        return self.repeats / max(len(self.rows) - 1, 1)


class LeastCost:
    """Learns from runs in the order in which they end, and says the request that costs least."""

    def __init__(self, runs: RunHistory, policy: RetryPolicy, of_time: bool = False) -> None:
        self.runs, self._policy, self._of_time = runs, policy, of_time
        self._cost = policy.cost_of_time if of_time else policy.cost_per_hour
        # Of a run that died it is only known to need more; under doubling it is within twice its limit.
        self._values = np.where(runs.is_open, np.sqrt(2) * runs.value, runs.value)
        self._log_covariates = np.log1p(np.maximum(runs.covariates, 0.0))
        self._forms: list[PeakForm] = forms_of(len(runs.covariates))
        pairs = zip(runs.workload.tolist(), runs.requested.tolist(), strict=True)
        self.requested_last = {name: value for name, value in pairs if np.isfinite(value)}
        # Of runs that began together the longest end last: what turns on their order is seen by their starts.
        self._place = np.argsort(np.argsort(runs.start, kind="stable"))
        self._workloads: dict[str, _Workload] = {}
        self._asked: dict[int, np.ndarray] = {}
        self._repeats = _FIRST_REPEATS.copy()
        self._rise, self._ended, self._learned, self.most = 0.0, 0, 0, 0.0

    def end(self, row: int) -> None:
        """Take in a run that has ended."""
        if not self._values[row] > 0:
            return
        own = self._workloads.setdefault(str(self.runs.workload[row]), _Workload())
        own.law, value, before = None, float(self._values[row]), own.repeats_ratio
        own.repeats += value == own.largest
        insort(own.rows, row, key=self._place.__getitem__)
        own.largest = max(own.largest, value)
        self._repeats += np.array([own.repeats_ratio - before, len(own.rows) == 2])
        self._ended += 1
        self.most = max(self.most, value)
        asked = self._asked.pop(row, None)
        if asked is not None:
            cost = self._weight(row) * self._cost(asked, self._values[row], self._most(row))
            saved = np.where(np.isfinite(cost), cost[0] - cost, 0.0)
            own.saved = own.saved * _FORGETS + saved
            own.squares = own.squares * _FORGETS + saved**2
            own.compared += 1
        if self._ended >= self._learned * 1.1 + 5:
            self._learned = self._ended
            every = list(self._workloads.values())
            some = every[:: -(-len(every) // _IN_COMMON)]
            self._rise = learn_in_common(self._forms, [self._law(one) for one in some])
            for one in every:
                one.law = None

    def ask(self, row: int) -> np.ndarray:
        """Ask every rule about a run that begins. Returns (rules,), NaN of those that cannot say; the first
        is the law's, with the hedge as `choice` has it."""
        requested = float(self.runs.requested[row])
        own = self._workloads.get(str(self.runs.workload[row]))
        asked = np.full(len(RULES), requested)
        if own is None:
            # Nothing of it has ended: what is requested now, or the most that any run needed.
            asked[_OTHERS] = requested if requested > 0 else self.most or np.nan
            return asked
        seen = self._values[own.rows[-_LATEST:]]
        asked[2:] = [rule(seen) for rule in _SIMPLE.values()]
        asked[0] = self._of_law(own, self._log_covariates[:, [row]], requested)
        self._asked[row] = asked
        return asked

    def choice(self, row: int, asked: np.ndarray) -> float:
        """Choose of what the rules answered: the law's request, unless a simple rule has proved cheaper."""
        own = self._workloads.get(str(self.runs.workload[row]))
        return float(asked[0 if own is None else self._best(own, asked)])

    def next_request(
        self, workload: str, covariates: np.ndarray | None = None
    ) -> tuple[float, str, float]:
        """Choose the request of a workload's next run. covariates: (d,) of it; None for any like those seen.
        Returns (request, the rule that it is of, how likely such a run needs more). NaN of what is not known:
        without a run that ended, only what was requested last."""
        requested = self.requested_last.get(workload, np.nan)
        own = self._workloads.get(workload)
        if own is None:
            return requested, REQUESTED, np.nan
        rows = own.rows[-_LATEST:]
        some = np.array(rows)[np.linspace(0, len(rows) - 1, min(len(rows), 30)).astype(int)]
        at = self._log_covariates[:, some]
        most = requested
        if covariates is not None:  # which may be larger than any seen
            at, most = np.log1p(np.maximum(covariates, 0.0))[:, None], np.nan
        seen = self._values[rows]
        asked = np.array(
            [self._of_law(own, at, most), requested, *(f(seen) for f in _SIMPLE.values())]
        )
        best = self._best(own, asked)
        values, chances, *_ = self._drawn(own, at)
        over = float(chances[values > asked[best]].sum() / chances.sum())
        return float(asked[best]), RULES[best], over

    def peaks(self, workload: str) -> tuple[np.ndarray, np.ndarray]:
        """List what has ended of a workload. Returns (values, which of them may have been higher)."""
        own = self._workloads.get(workload)
        rows = np.array(own.rows if own is not None else [], int)
        return self.runs.value[rows], self.runs.is_open[rows]

    def _best(self, own: _Workload, asked: np.ndarray) -> int:
        if own.compared < _LEAST_RUNS:
            return 0
        proof = own.saved / np.sqrt(own.squares + 1e-300)
        proof = np.where(np.isfinite(asked), proof, 0.0)
        best = int(proof.argmax())
        return best if proof[best] > _BEYOND_CHANCE else 0

    def _drawn(self, own: _Workload, covariates: np.ndarray) -> list[np.ndarray]:
        law = self._law(own)
        drawn = [law.draws(column) for column in covariates.T]
        values, chances, longer, tried = map(np.concatenate, zip(*drawn, strict=True))
        # Or it needs just what others needed at most, as often as that was so; not where covariates differ.
        seen = self._log_covariates[:, own.rows]
        again = (own.repeats + self._repeats[0] / self._repeats[1]) / len(own.rows)
        again *= not (seen.max(1) > seen.min(1)).any()
        chances = np.append((1 - again) * chances, again * chances.sum())
        hours = np.exp(law.rise * (np.log(own.largest) - law.usual))
        return [
            np.append(values, own.largest),
            chances,
            np.append(longer, hours),
            np.append(tried, own.largest),
        ]

    def _of_law(self, own: _Workload, covariates: np.ndarray, requested: float) -> float:
        """Find the request of least expected cost. covariates: (d, m) logs of the runs that may come."""
        values, chances, longer, tried = self._drawn(own, covariates)
        largest = float(self._values[own.rows[-_LATEST:]].max())
        most = max(requested, 1.5 * largest) if requested > 0 else 4 * largest
        tried = np.append(tried[tried < most], most)
        if len(tried) > 300:
            tried = np.quantile(tried, np.linspace(0, 1, 300))
        cost = self._cost(tried[:, None], values, max(self.most, most)) @ (chances * longer)
        return float(tried[cost.argmin()])

    def _law(self, own: _Workload) -> WorkloadLaw:
        if own.law is None:
            rows = own.rows[-_LATEST:]
            hours = np.log(np.maximum(self.runs.hours[rows], 1e-6))
            hours = np.zeros(len(rows)) if self._of_time else hours
            own.law = WorkloadLaw(
                self._forms,
                np.log(self._values[rows]),
                hours,
                self._log_covariates[:, rows],
                self._rise,
            )
        return own.law

    def _weight(self, row: int) -> float:
        return 1.0 if self._of_time else float(self.runs.hours[row])

    def _most(self, row: int) -> float:
        return float(np.nanmax([self.runs.requested[row], self.most]))


def replay(
    runs: RunHistory, policy: RetryPolicy, of_time: bool = False
) -> tuple[np.ndarray, LeastCost]:
    """Ask every rule about every run when it begins. Returns ((rules, n) requests, NaN where a rule cannot
    say or nobody knows what the run needed; what has learned from all of them)."""
    learned = LeastCost(runs, policy, of_time)
    asked = np.full((len(RULES), len(runs)), np.nan)
    ends = np.argsort(runs.end, kind="stable")
    ended = 0
    is_asked = np.isfinite(runs.value)
    for row in np.argsort(runs.start, kind="stable").tolist():
        if not is_asked[row]:
            continue
        while ended < len(ends) and runs.end[ends[ended]] <= runs.start[row]:
            learned.end(int(ends[ended]))
            ended += 1
        asked[:, row] = learned.ask(row)
        asked[0, row] = learned.choice(row, asked[:, row])
    for row in ends[ended:].tolist():
        learned.end(row)
    return asked, learned
