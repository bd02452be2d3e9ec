"""Better assignments from one at hand: empty a few nodes, and pack them anew by HiGHS.

Source: Shaw, Using constraint programming and local search methods to solve vehicle routing problems (CP
1998), large neighbourhood search; Schrimpf et al., Record breaking optimization results using the ruin and
recreate principle (2000).
"""

from __future__ import annotations

import numpy as np

from jostle.placement.assign._columns import Columns
from jostle.placement.assign._packing import TOLERANCE, Relaxed, packed

NODES = 7  # emptied at once
PATIENCE = 20  # rounds without a better one, after which it ends
MOST_COLUMNS = 800  # for a few nodes, the best by their reduced costs
LIMIT_SECONDS = 0.5  # for one packing of a few nodes


def improve(
    columns: Columns,
    x: np.ndarray,
    gain: np.ndarray,
    prices: Relaxed,
    random: np.random.Generator,
    *,
    rounds: int,
    enough: float,
) -> np.ndarray:
    """(n,) how often each column, with at least as much gain. enough: a gain with which to stop."""
    problem = columns.problem
    places = problem.size[1]
    reduced = prices.over(gain, columns.place, columns.items)
    x, idle = x.copy(), 0
    for _ in range(rounds):
        if x @ gain >= enough - TOLERANCE or idle == PATIENCE:
            break
        idle += 1
        node, held = _instances(columns, x)
        some = random.permutation(len(node))[:NODES]
        room = np.bincount(node[some], minlength=places)
        base = x.copy()
        np.subtract.at(base, held[some][held[some] >= 0], 1)
        left = problem.counts - _taken(columns, base)
        inside = (room[columns.place] > 0) & (np.append(left, 1)[columns.items] > 0).all(axis=1)
        at = np.flatnonzero(inside)
        if len(at) > MOST_COLUMNS:
            mine = held[some][held[some] >= 0]
            best = at[np.argsort(-(reduced[at] + 0.1 * random.random(len(at))))[:MOST_COLUMNS]]
            at = np.union1d(best, mine)
        packing = packed(columns.take(at), gain[at], room=(left, room), limit_seconds=LIMIT_SECONDS)
        if packing is not None:
            new = base.copy()
            new[at] += packing.x
            if new @ gain > x @ gain + 1e-9:
                idle = 0
            if new @ gain >= x @ gain - 1e-12:
                x = new
    return x


def _instances(columns: Columns, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(kind of every node, the column that it holds, -1 for none)."""
    problem = columns.problem
    held = np.repeat(np.arange(len(columns)), x)
    free = problem.copies - np.bincount(columns.place[held], minlength=problem.size[1])
    empty = np.repeat(np.arange(problem.size[1]), free)
    return (
        np.concatenate([columns.place[held], empty]),
        np.concatenate([held, np.full(len(empty), -1)]),
    )


def _taken(columns: Columns, x: np.ndarray) -> np.ndarray:
    """(kinds,) how many requests of each kind have a place."""
    items = columns.items[x > 0]
    times = np.repeat(x[x > 0][:, None], items.shape[1], axis=1)
    here = items >= 0
    return np.bincount(items[here], weights=times[here], minlength=columns.problem.size[0]).astype(
        int
    )
