"""May these share? The newcomer and all tenants of a node, each against its own limit."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np

from jostle._base.report import duration
from jostle.operations.placement._sharers import SafeAnswer, Sharer
from jostle.placement import CODES, PREDICTED, REASONS, FleetBounds, Node, Request

WORDS = tuple(REASONS)
BY_BOUNDS = ("ok", "no_ground", "newcomer_late", "tenant_late")
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # that might be offered instead
MOST_OTHERS = 3  # nodes that are named as other places
PAIRS_AT_ONCE = 20_000  # of a request and a node, explained


def safe_each(
    requests: Sequence[Request], here: FleetBounds, fleet: FleetBounds
) -> Iterator[list[SafeAnswer]]:
    """Assess every request on every node, explained. fleet: where else they might go."""
    n = len(here)
    step = max(1, PAIRS_AT_ONCE // max(1, n))
    for start in range(0, len(requests), step):
        some = requests[start : start + step]
        answers = _Explained(some, here, np.ones((len(some), n), bool)).answers(fleet)
        yield from (answers[row * n : (row + 1) * n] for row in range(len(some)))


def safe_at_once(requests: Sequence[Request], here: FleetBounds) -> Iterator[list[SafeAnswer]]:
    """Assess every request on every node, without its members and without what would help."""
    for request, assessed in zip(requests, here.assess_each(requests), strict=True):
        rows = zip(here.nodes, assessed.reason.tolist(), assessed.predicted.tolist(), strict=True)
        yield [
            SafeAnswer(
                request.name,
                request.workload,
                node.name,
                node.platform,
                code == CODES["ok"],
                WORDS[code],
                predicted and code == CODES["ok"],
            )
            for node, code, predicted in rows
        ]


def safe_together(requests: Sequence[Request], node: Node, fleet: FleetBounds) -> list[SafeAnswer]:
    """Assess requests that come to a node at once: each beside the others and beside the tenants."""
    crowds = [
        replace(node, tenants=(*node.tenants, *requests[:n], *requests[n + 1 :]))
        for n in range(len(requests))
    ]
    pairs = np.eye(len(requests), dtype=bool)
    return _Explained(requests, FleetBounds(crowds, fleet.sets), pairs).answers(fleet)


class _Explained:
    """Pairs of a request and a node. pairs: (requests, nodes) which of them. row, at: (n,) of each the
    request and the node. bounded: (m,) those that bounds answer, in whose order `joined` is."""

    def __init__(self, requests: Sequence[Request], here: FleetBounds, pairs: np.ndarray) -> None:
        self.requests, self.here = requests, here
        self.assessed = here.assess_all(requests, pairs)
        self.row, self.at = pairs.nonzero()
        self.reasons = [WORDS[code] for code in self.assessed.reason[self.row, self.at].tolist()]
        self.bounded = np.array([n for n, r in enumerate(self.reasons) if r in BY_BOUNDS], int)
        row, at = self.row[self.bounded], self.at[self.bounded]
        self.joined = here.joined(requests, row, at, self.assessed.limit_seconds)

    def answers(self, fleet: FleetBounds) -> list[SafeAnswer]:
        """Explain the answers. fleet: where else they might go."""
        members, requests, nodes = self._members(), self.requests, self.here.nodes
        helps, answers = self._helps(members, fleet), []
        predicted = self.assessed.predicted[self.row, self.at].tolist()
        for n, (row, at) in enumerate(zip(self.row.tolist(), self.at.tolist(), strict=True)):
            request, node, reason = requests[row], nodes[at], self.reasons[n]
            arrangement = ""
            if n in members:
                arrangement = self.here.arrangement((*node.tenants, request), node)
            answers.append(
                SafeAnswer(
                    request.name,
                    request.workload,
                    node.name,
                    node.platform,
                    reason == "ok",
                    reason,
                    predicted[n] and reason == "ok",
                    members.get(n, ()),
                    tuple(helps.get(n, ())),
                    arrangement,
                )
            )
        return answers

    def _members(self) -> dict[int, tuple[Sharer, ...]]:
        """List the members of each pair that bounds answer, by the pair's number."""
        joined, sets = self.joined, self.here.sets
        bounds, limits = _or_none(joined.bounds(sets)[0]), _or_none(joined.limit)
        words: dict[tuple[int, int], Sequence[tuple[float, str]]] = {}
        for own, confidence in enumerate(joined.confidences):
            rows = (joined.own == own).any(axis=1).nonzero()[0]
            some = joined.take(rows)
            explained = sets.explained(some.platform, some.members, confidence)
            words |= {(n, own): e for n, e in zip(rows.tolist(), explained, strict=True)}
        owns, last = joined.own.tolist(), joined.members.shape[1] - 1
        members = {}
        for number, n in enumerate(self.bounded.tolist()):
            request = self.requests[int(self.row[n])]
            tenants = self.here.nodes[self.at[n]].tenants
            people = list(zip(tenants, range(last - len(tenants), last), strict=True))
            place = bisect([one.workload for one in tenants], request.workload)
            people.insert(place, (request, last))
            sharers = []
            for place, (one, column) in enumerate(people):
                predicted, outcome = words[number, owns[number][column]][place]
                sharers.append(
                    Sharer(
                        one.name or one.workload,
                        one.workload,
                        one is request,
                        limits[number][column],
                        predicted if isfinite(predicted) else None,
                        bounds[number][column],
                        outcome,
                        sets.standard.of_each(one.confidence, len(people)),
                    )
                )
            members[n] = tuple(sharers)
        return members

    def _helps(
        self, members: dict[int, tuple[Sharer, ...]], fleet: FleetBounds
    ) -> dict[int, list[str]]:
        """List what would turn each no into a yes, one change at a time."""
        helps: dict[int, list[str]] = {n: [] for n, r in enumerate(self.reasons) if r != "ok"}
        if not helps:
            return helps
        for n, texts in helps.items():
            hurt = [member for member in members.get(n, ()) if member.keeps is False]
            if hurt and all(member.bound_seconds is not None for member in hurt):
                wide = (f"{m.name} at most {duration(m.bound_seconds or 0)}" for m in hurt)
                texts.append(f"wider limits: {', '.join(wide)}")
        self._without_one(helps)
        self._elsewhere(helps, fleet)
        self._by_another_standard(helps)
        return helps

    def _without_one(self, helps: dict[int, list[str]]) -> None:
        nodes, rest, start = self.here.nodes, [], {}
        for at in dict.fromkeys(self.at[list(helps)].tolist()):
            start[at], everybody = len(rest), nodes[at].tenants
            for tenant in everybody:
                others = tuple(other for other in everybody if other is not tenant)
                rest.append(replace(nodes[at], tenants=others))
        pairs = np.zeros((len(self.requests), len(rest)), bool)
        for n in helps:
            first = start[self.at[n]]
            pairs[self.row[n], first : first + len(nodes[self.at[n]].tenants)] = True
        view = FleetBounds(rest, self.here.sets)
        is_safe = view.assess_all(self.requests, pairs).is_safe
        for n, texts in helps.items():
            first = start[self.at[n]]
            for place, tenant in enumerate(nodes[self.at[n]].tenants):
                if is_safe[self.row[n], first + place]:
                    texts.append(f"without {tenant.name or tenant.workload} there")

    def _elsewhere(self, helps: dict[int, list[str]], fleet: FleetBounds) -> None:
        rows = list(dict.fromkeys(self.row[list(helps)].tolist()))
        if self.here is fleet:
            is_safe = self.assessed.is_safe[rows]
        else:
            is_safe = fleet.assess_all([self.requests[row] for row in rows]).is_safe
        places = {
            row: [fleet.nodes[at].name for at in safe.nonzero()[0][: MOST_OTHERS + 2]]
            for row, safe in zip(rows, is_safe, strict=True)
        }
        for n, texts in helps.items():
            here = self.here.nodes[self.at[n]].name
            others = [name for name in places[int(self.row[n])] if name != here]
            if others:
                more = ", …" if len(others) > MOST_OTHERS else ""
                texts.append(f"another node: {', '.join(others[:MOST_OTHERS])}{more}")

    def _by_another_standard(self, helps: dict[int, list[str]]) -> None:
        sets, joined = self.here.sets, self.joined
        reasons = [self.reasons[n] for n in self.bounded]
        has_own = np.array([c is not None for c in (*joined.confidences, None)])
        common = ~has_own[joined.own].any(axis=1)
        left = np.flatnonzero(common & np.array([r != "ok" for r in reasons], bool))
        levels = sorted((x for x in LEVELS if x < sets.standard.confidence), reverse=True)
        if levels and len(left) and not sets.standard.takes_predictions:
            # Bounds never fall as confidence rises: what the lowest does not help, none does.
            left = left[joined.take(left).is_kept(sets.by(confidence=levels[-1]))]
        for level in levels:
            if not len(left):
                break
            helped = joined.take(left).is_kept(sets.by(confidence=level))
            for number in left[helped]:
                helps[int(self.bounded[number])].append(f"a confidence of {level:g}")
            left = left[~helped]
        rows = np.flatnonzero([r == "no_ground" for r in reasons])
        if len(rows) and not sets.standard.takes_predictions:
            helped = joined.take(rows).is_kept(sets.by(promise=PREDICTED))
            for number in rows[helped]:
                text = "to accept predictions, for which nothing is promised"
                helps[int(self.bounded[number])].append(text)


def _or_none(values: np.ndarray) -> list[list[float | None]]:
    """Return None for what is not finite."""
    return np.where(np.isfinite(values), values, np.array(None)).tolist()
