"""Who ends when on nodes whose residents have come so far, and how long each takes in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.models import BusyNodes, Rates, Timelines, done_and_pace, ends, no_newcomers
from jostle.placement.queries._fleet import Node
from jostle.placement.queries._requests import Request

if TYPE_CHECKING:
    from jostle.placement.sets._set_bounds import SetBounds


def ends_at(sets: SetBounds, people: Sequence[tuple[Node, Request]]) -> list[tuple[Any, ...]]:
    """Of each, those of a node one after the other: (elapsed seconds, seconds from now to its end if nobody
    comes, seconds from start to end, their bound, its outcome, over what, its limit); None where there is
    none.

    Its company until now is not known: what it has done by the time is as if these had been there. Who has a
    limit is told over the timeline of those who are there: later ones are let in only where it is kept.
    Anybody else, over whatever may come, where the model learned from a log.
    """
    if not people:
        return []
    model, standard = sets.model, sets.standard
    node, count = np.unique([one.name for one, _ in people], return_counts=True)
    place = {name: row for row, name in enumerate(node.tolist())}
    width = int(count.max())
    members = np.full((len(node), width), -1)
    platform, seat, filled = np.zeros(len(node), int), [], dict.fromkeys(place, 0)
    for where, one in people:
        row, column = place[where.name], filled[where.name]
        filled[where.name] += 1
        members[row, column] = sets.workload_code[one.workload]
        platform[row] = sets.platform_code[where.platform]
        seat.append((row, column))
    rates = Rates(model)
    seconds = rates.of(platform, members)
    elapsed, done = np.zeros(members.shape), np.full(members.shape, np.nan)
    for (row, column), (_, one) in zip(seat, people, strict=True):
        elapsed[row, column] = one.elapsed_seconds or 0.0
        if one.done_ratio is not None:
            done[row, column] = one.done_ratio
    by_now, pace = done_and_pace(done, elapsed / seconds)
    left = 1 - by_now
    nodes = BusyNodes(platform, members, left, pace)
    out = ends(rates, nodes, no_newcomers(), watched=width)
    at = np.array([sets.platform_code[one.platform] for one, _ in people])
    limit = sets.limits([one for _, one in people], at[None, :]).diagonal()
    is_open = np.isinf(limit) & (model.acts is not None)
    asked = _timelines(people, seat, elapsed, done, left, out, is_open)
    told, bounds = model.predict_and_bound(asked, standard.confidence)
    return [
        (float(elapsed[s]), *map(_or_none, (out[s], told[n], bounds.seconds[n])),
         str(bounds.outcome[n]), over, _or_none(limit[n]))
        for n, (s, over) in enumerate(zip(seat, asked.over, strict=True))
    ]  # fmt: skip


def _or_none(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _in_order(people: Any, seat: Any, row: int, column: int) -> list[int]:
    """Columns of all others on the node, in the order that co-locations have them: by name."""
    others = [
        (one.workload, c)
        for (r, c), (_, one) in zip(seat, people, strict=True)
        if r == row and c != column
    ]
    return [c for _, c in sorted(others)]


def _timelines(
    people: Any, seat: Any, elapsed: np.ndarray, done: np.ndarray, left: np.ndarray, out: np.ndarray,
    is_open: np.ndarray,
) -> Timelines:  # fmt: skip
    """Of each: these beside it until now, and, where it is not open, then until each of them ends."""
    stretches, beside_done = [], []
    for (row, column), open_ in zip(seat, is_open.tolist(), strict=True):
        here = _in_order(people, seat, row, column)
        who = {c: one.workload for (r, c), (_, one) in zip(seat, people, strict=True) if r == row}
        parts = [(0.0, here)]
        for c in () if open_ else sorted(here, key=lambda c: (out[row, c], c)):
            if out[row, c] < out[row, column]:
                here = [other for other in here if other != c]
                start = float(elapsed[row, column] + out[row, c])
                if start <= parts[-1][0]:
                    parts.pop()
                parts.append((start, here))
        stretches.append([(start, [who[c] for c in there]) for start, there in parts])
        beside_done += [1 - left[row, c] for _, there in parts for c in there]
    ratio = [done[s] for s in seat]
    asked = Timelines.from_columns(
        workload=[one.workload for _, one in people],
        platform=[node.platform for node, _ in people],
        stretches=stretches,
        elapsed_seconds=[elapsed[s] for s in seat],
        done_ratio=[None if np.isnan(one) else float(one) for one in ratio],
        future=is_open,
    )
    return replace(asked, beside_done=np.array(beside_done, float))
