"""A log replayed in time: what Jostle's requests and those of simple rules would have cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle._base.documents import Record, VerbAnswer
from jostle._base.report import Report, Table, percent
from jostle.errors import NotEnoughRuns
from jostle.operations.requests._logged_history import memory_history, runs_of, time_history
from jostle.usage import RULES, RetryPolicy, RunHistory, replay


@dataclass(frozen=True)
class ReplayedRule(Record):
    """Cost of the requests of one rule. waste: GB-hours of memory, or hours of time, that were held and not
    used or lost; of both at once, the price of all that. failures_ratio: runs that died at least once.
    lost_hours: of attempts that died."""

    resource: str
    rule: str
    waste: float
    failures_ratio: float
    lost_hours: float


@dataclass(frozen=True, repr=False)
class ReplayedRequests(VerbAnswer):
    """Costs of requests, replayed over a log. asked: runs that every rule was asked about. unknown: runs
    without a peak."""

    results: tuple[ReplayedRule, ...]
    asked: int
    unknown: int
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "evaluate-limits/v1"

    @property
    def metrics(self) -> dict[str, float]:
        """Each figure by its name: `waste_jostle_gbh`, `failures_largest_seen_ratio`, `lost_jostle_hours`;
        of time `time_waste_jostle_hours` and so on, of both `both_waste_jostle_price`."""
        found = {}
        for one in self.results:
            head = "" if one.resource == "memory" else f"{one.resource}_"
            unit = {"memory": "gbh", "time": "hours", "both": "price"}[one.resource]
            found[f"{head}waste_{one.rule}_{unit}"] = one.waste
            found[f"{head}failures_{one.rule}_ratio"] = one.failures_ratio
            found[f"{head}lost_{one.rule}_hours"] = one.lost_hours
        return found

    def to_document(self) -> dict[str, Any]:
        """Make the JSON object, with each metric by its name."""
        return super().to_document() | self.metrics

    def report(self) -> Report:
        """Write a table for each resource."""
        units = {"memory": "wasted GB-hours", "time": "wasted hours", "both": "price"}
        tables: list[Table | str] = []
        for resource in dict.fromkeys(one.resource for one in self.results):
            cells = {
                resource: lambda one: one.rule,
                units[resource]: lambda one: f"{one.waste:.4g}",
                "died": lambda one: percent(one.failures_ratio),
                "hours lost": lambda one: f"{one.lost_hours:.3g}",
            }
            mine = [one for one in self.results if one.resource == resource]
            tables.append(Table.of(mine, cells))
        text = f"{self.asked} runs were asked about in time, each from those that had ended before."
        if self.unknown:
            text += f" Of {self.unknown} more nobody knows what they needed."
        return Report(self.to_document(), [*tables, text])


def evaluate_limits(data: Any, policy: RetryPolicy | None = None) -> ReplayedRequests:
    """Replay a log and price the requests of Jostle and of simple rules, for memory, time and both.

    Parameters
    ----------
    data :
        What :func:`fit` takes: runs with peaks of memory.
    policy :
        What happens after a failed attempt, and what it costs. None: the next attempt requests twice as much.

    Returns
    -------
    ReplayedRequests

    Raises
    ------
    NotEnoughRuns
        If no peak and no time is known.
    """
    policy = policy or RetryPolicy()
    runs = runs_of(data)
    kinds = {"memory": memory_history(runs), "time": time_history(runs)}
    asked = {
        name: replay(each, policy, name == "time")[0]
        for name, each in kinds.items()
        if np.isfinite(each.value).any()
    }
    if not asked:
        raise NotEnoughRuns("no run says what it needed", fix="Import a log with peaks and times.")
    results: list[ReplayedRule] = []
    for name, requests in asked.items():
        results += _single(name, kinds[name], requests, policy)
    if len(asked) == 2:
        results += _both(kinds["memory"], asked["memory"], asked["time"], policy)
    first, requests = next(iter(asked.items()))
    count = int((np.isfinite(requests[0]) & ~kinds[first].is_open).sum())
    return ReplayedRequests(tuple(results), count, len(runs) - count)


def _rules(*requests: np.ndarray) -> list[int]:
    """List the rules that answer wherever Jostle does."""
    known = np.isfinite([one[0] for one in requests]).all(axis=0)
    return [
        n for n in range(len(RULES)) if all(np.isfinite(one[n, known]).all() for one in requests)
    ]


def _single(
    name: str, runs: RunHistory, requests: np.ndarray, policy: RetryPolicy
) -> list[ReplayedRule]:
    rules = _rules(requests)
    known = np.isfinite(requests[0]) & ~runs.is_open
    most = float(np.nanmax([*runs.requested, *runs.value]))
    value, hours = runs.value[known], runs.hours[known]
    results = []
    for rule in rules:
        failed, held, last = policy.attempts(requests[rule, known], value, most)
        waste, lost = last - value + policy.loses * held, policy.loses * held
        if name == "memory":
            waste, lost = waste * hours, policy.loses * failed * hours
        share = float((failed > 0).mean()) if len(value) else np.nan
        results.append(
            ReplayedRule(name, RULES[rule], float(waste.sum()), share, float(lost.sum()))
        )
    return results


def _both(
    memory: RunHistory, gb: np.ndarray, hours: np.ndarray, policy: RetryPolicy
) -> list[ReplayedRule]:
    """Replay runs with both limits: each attempt dies by the one that is reached first, and only that one is
    raised. A peak is reached at the end."""
    rules = _rules(gb, hours)
    known = np.isfinite(gb[0]) & np.isfinite(hours[0]) & ~memory.is_open
    results = []
    for rule in rules:
        price = lost = died = 0.0
        for row in np.flatnonzero(known).tolist():
            peak, took = float(memory.value[row]), float(memory.hours[row])
            cost, hours_lost = _lived(gb[rule, row], hours[rule, row], peak, took, policy)
            price, lost, died = price + cost, lost + hours_lost, died + (hours_lost > 0)
        share = died / max(int(known.sum()), 1)
        results.append(ReplayedRule("both", RULES[rule], price, share, lost))
    return results


def _lived(
    gb: float, hours: float, peak: float, took: float, policy: RetryPolicy
) -> tuple[float, float]:
    """Returns (the price of a run's attempts, the hours that were lost)."""
    price = lost = 0.0
    factor = {"x2": 2.0, "max": np.inf, "none": np.inf}[policy.retry]
    for _ in range(100):
        if gb >= peak * (1 - 1e-12) and hours >= took * (1 - 1e-12):
            unused = policy.gb_hour_price * (gb - peak) * took + (hours - took)
            return price + (unused if lost == 0 or policy.retry != "none" else 0.0), lost
        spent = policy.loses * min(hours, took)
        lost += spent
        price += spent * (policy.gb_hour_price * gb + max(1.0, policy.hour_price))
        if hours < took:
            hours = took if factor == np.inf else hours * factor
        else:
            gb = peak if factor == np.inf else gb * factor
    return price, lost
