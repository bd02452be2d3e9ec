"""Prices of a packing without its linear program: every kind of node spreads itself over its best columns.

With the entropy of the shares in its objective, the linear program has shares in proportion to exp(reduced
gain / temperature), and the prices that keep all requests within their number come from scaling them in turn:
Sinkhorn's way for inequalities (Benamou et al., Iterative Bregman projections for regularized transportation
problems, SIAM J. Sci. Comput. 2015). Degenerate programs take HiGHS seconds that this does in milliseconds,
with prices a little off.
"""

from __future__ import annotations

import numpy as np

from jostle.placement.assign._columns import Columns
from jostle.placement.assign._packing import Relaxed

ROUNDS = 120
TEMPERATURE = 0.04  # of the mean worth of a request


def smoothed(columns: Columns, gain: np.ndarray, start: Relaxed | None = None) -> Relaxed:
    """Nearly what `relaxed` gives; value: an upper bound on it. start: prices near these."""
    problem = columns.problem
    kinds, places = problem.size
    heat = TEMPERATURE * float(problem.worth.mean())
    here = columns.items >= 0
    members = np.where(here, columns.items, kinds)
    price = np.zeros(kinds + 1) if start is None else np.append(start.item_price, 0.0)
    copies, counts = problem.copies.astype(float), problem.counts.astype(float)
    step = heat / max(1, columns.items.shape[1])
    x = np.zeros(len(columns))
    for _ in range(ROUNDS):
        reduced = gain - price[members].sum(axis=1)
        top = np.zeros(places)  # a node may stay empty
        np.maximum.at(top, columns.place, reduced)
        weight = np.exp((reduced - top[columns.place]) / heat)
        total = np.bincount(columns.place, weight, places) + np.exp(-top / heat)
        x = weight * (copies / total)[columns.place]
        load = np.bincount(members.reshape(-1), np.repeat(x, members.shape[1]), kinds + 1)[:kinds]
        price[:kinds] = np.maximum(
            0.0, price[:kinds] + step * np.log(np.maximum(load, 1e-9) / counts)
        )
    reduced = gain - price[members].sum(axis=1)
    top = np.zeros(places)
    np.maximum.at(top, columns.place, reduced)
    value = float(counts @ price[:kinds] + copies @ top)
    return Relaxed(value, x, price[:kinds], top)
