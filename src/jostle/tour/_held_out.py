"""Runs held out of the tour to check its answers on, and the simple rules beside them."""

from __future__ import annotations

import numpy as np

from jostle.runs import Runs


def hold_out_sets(runs: Runs, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(held, rest) indices: a share of the distinct sets with co-runners, all runs of a set together."""
    c = runs.colocations
    names = c.to_columns()
    key = [
        (platform, tuple(sorted([workload, *beside]))) if beside else None
        for workload, platform, beside in zip(*names.values(), strict=True)
    ]
    sets = sorted({k for k in key if k is not None})
    places = np.random.default_rng(seed).permutation(len(sets))[: round(share * len(sets))]
    held_sets = {sets[i] for i in places}
    held = np.array([k in held_sets for k in key], bool)
    return np.flatnonzero(held), np.flatnonzero(~held)
