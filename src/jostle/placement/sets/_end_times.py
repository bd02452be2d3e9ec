"""Who ends when on nodes whose residents have come so far, and how long each takes in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.models import (
    BusyNodes,
    Rates,
    Timelines,
    done_and_pace,
    ends,
    no_newcomers,
    over_time,
)
from jostle.placement.queries._fleet import Node
from jostle.placement.queries._requests import Request

if TYPE_CHECKING:
    from jostle.conformal import Bounds
    from jostle.placement.sets._set_bounds import SetBounds


def newcomer_bounds(
    sets: SetBounds, nodes: Sequence[Node], request: Request
) -> tuple[np.ndarray, np.ndarray]:
    """Return ((n,) seconds at most of a request that begins now on each of these nodes, infinite where
    nothing tells, (n,) whether a prediction stands in), over what ends_at says."""
    kinds = [
        (one.platform, *((t.workload, t.elapsed_seconds, t.done_ratio) for t in one.tenants))
        for one in nodes
    ]
    first = {kind: place for place, kind in reversed(list(enumerate(kinds)))}
    some = [nodes[place] for place in first.values()]
    people = [(node, one) for node in some for one in (*node.tenants, request)]
    mine = [place for place, (_, one) in enumerate(people) if one is request]
    told = ends_at(sets, people, mine)
    bound = {kind: one[3] for kind, one in zip(first, told, strict=True)}
    guess = {kind: one[2] for kind, one in zip(first, told, strict=True)}
    seconds = np.array([bound[kind] for kind in kinds], float)
    predicted = np.isnan(seconds) & sets.standard.takes_predictions
    seconds = np.where(predicted, np.array([guess[kind] for kind in kinds], float), seconds)
    return np.where(np.isnan(seconds), np.inf, seconds), predicted


def ends_at(
    sets: SetBounds, people: Sequence[tuple[Node, Request]], of: Sequence[int] | None = None
) -> list[tuple[Any, ...]]:
    """Compute when each of these tenants ends, the tenants of a node one after the other. Returns for each
    (elapsed seconds, seconds from now to its end if nobody comes, seconds from start to end, their bound, its
    outcome, over what, its limit); a value is None if there is none. of: positions of those who are asked
    about, all by default.

    Their co-runners until now are not known: what a tenant has done by the time is computed as if the present
    ones had been there. A model of a log answers over whatever may come. Later tenants are let in only while
    limits are kept, so a limit that is kept over those who are there, or over the future, is the bound of the
    tenant that has it.
    """
    if not people:
        return []
    model, asked_of = sets.model, np.arange(len(people)) if of is None else np.array(of)
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
    count = (members >= 0).sum(axis=1)
    level = np.array([
        sets.standard.of_each(one.confidence, int(count[row]))
        for (row, _), (_, one) in zip(seat, people, strict=True)
    ])  # fmt: skip
    here = _timelines(people, seat, elapsed, done, 1 - left, seconds, out)
    asked = over_time(model, here.begun_part()) if model.acts is not None else here
    asked, level, limit = asked.take(asked_of), level[asked_of], limit[asked_of]
    told, bounds = _bounded(model, asked, level)
    limited = np.flatnonzero(np.isfinite(limit) & asked.is_open)
    if len(limited):
        _, among = _bounded(model, here.take(asked_of[limited]), level[limited])
        most = limit[limited]
        over = np.flatnonzero(among.seconds > most)
        least = among.put(over, bounds.take(limited[over]))
        holds = least.seconds <= most
        kept = replace(least.take(np.flatnonzero(holds)), seconds=most[holds])
        bounds = bounds.put(limited[holds], kept)
    return [
        (float(elapsed[seat[at]]), *map(_or_none, (out[seat[at]], told[n], bounds.seconds[n])),
         str(bounds.outcome[n]), over, _or_none(limit[n]))
        for n, (at, over) in enumerate(zip(asked_of.tolist(), asked.over, strict=True))
    ]  # fmt: skip


def _bounded(model: Any, asked: Timelines, level: np.ndarray) -> tuple[np.ndarray, Bounds]:
    """Return (seconds, bounds), each at its own confidence."""
    told, bounds = model.predict_and_bound(asked, float(level.max()))
    for one in np.unique(level[level < level.max()]).tolist():
        rows = np.flatnonzero(level == one)
        bounds = bounds.put(rows, model.predict_and_bound(asked.take(rows), one)[1])
    return told, bounds


def _or_none(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _timelines(
    people: Any, seat: Any, elapsed: np.ndarray, done: np.ndarray, by_now: np.ndarray,
    seconds: np.ndarray, out: np.ndarray,
) -> Timelines:  # fmt: skip
    """Build the timeline of each tenant: these co-runners until now, and then until each of them ends. What a
    tenant has done is unknown if nothing tells it. by_now: the share that each has done. seconds: what each
    takes in this set."""
    there: dict[int, list[tuple[int, str, float]]] = {}
    for (row, column), (node, one) in zip(seat, people, strict=True):
        is_told = one.elapsed_seconds is not None or one.done_ratio is not None
        is_new = not any(one is tenant for tenant in node.tenants)
        share = float(by_now[row, column]) if is_told or is_new else np.nan
        there.setdefault(row, []).append((column, one.workload, share))
    stretches, beside_done = [], []
    for row, column in seat:
        # In the order that co-locations have them: by name.
        # Of each what it had done, at this pace, as this one began.
        since = elapsed[row, column] / seconds[row]
        here = sorted((who, c, share - since[c]) for c, who, share in there[row] if c != column)
        parts = [(0.0, here)]
        for _, c, _ in sorted(here, key=lambda one: (out[row, one[1]], one[1])):
            if out[row, c] < out[row, column]:
                here = [other for other in here if other[1] != c]
                start = float(elapsed[row, column] + out[row, c])
                if start <= parts[-1][0]:
                    parts.pop()
                parts.append((start, here))
        stretches.append([(start, [who for who, _, _ in beside]) for start, beside in parts])
        beside_done += [share for _, beside in parts for _, _, share in beside]
    ratio = [done[s] for s in seat]
    asked = Timelines.from_columns(
        workload=[one.workload for _, one in people],
        platform=[node.platform for node, _ in people],
        stretches=stretches,
        elapsed_seconds=[elapsed[s] for s in seat],
        done_ratio=[None if np.isnan(one) else float(one) for one in ratio],
    )
    return replace(asked, beside_done=np.array(beside_done, float))
