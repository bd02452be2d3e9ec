"""Calibration sets and held-out sets with limits, and those of them that are placed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from studies.placement.sets import MeasuredSets

LIMIT_SECONDS = 0.5  # for packing in one draw


def drawn_limits(
    parts: Sequence[MeasuredSets], ratios: np.ndarray, random: np.random.Generator
) -> list[np.ndarray]:
    """(n, k) for each part: a workload on a platform is one request, with one limit wherever it is."""
    codes = [part.platform[:, None] * 1_000_003 + part.members for part in parts]
    every = np.unique(np.concatenate([c.reshape(-1) for c in codes])) if codes else np.zeros(0, int)
    ratio = random.choice(ratios, size=len(every))
    limits_of_parts = []
    for part, code in zip(parts, codes, strict=True):
        known = np.isfinite(part.solo) & np.isfinite(part.seconds)
        limits_of_parts.append(
            np.where(known, ratio[np.searchsorted(every, code)] * part.solo, np.inf)
        )
    return limits_of_parts


def pack_measured(parts: Sequence[MeasuredSets], takes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of the accepted sets those that save most platforms, each workload of a platform in one of them."""
    from scipy import sparse

    keys, saved, rows, count = [], [], [], 0
    for part, some in zip(parts, takes, strict=True):
        at = np.flatnonzero(some)
        k = part.members.shape[1]
        keys.append((part.platform[at, None] * 1_000_003 + part.members[at]).reshape(-1))
        rows.append(np.repeat(np.arange(len(at)) + count, k))
        saved.append(np.full(len(at), k - 1.0))
        count += len(at)
    chosen = np.zeros(count, bool)
    if count:
        _, item = np.unique(np.concatenate(keys), return_inverse=True)
        ones = np.ones(len(item))
        matrix = sparse.csr_matrix((ones, (item, np.concatenate(rows))))
        matrix.data[:] = np.minimum(matrix.data, 1.0)  # beside itself it is two of them
        chosen = packed_once(matrix, np.concatenate(saved), LIMIT_SECONDS)
    chosen_of_parts, start = [], 0
    for some in takes:
        out = np.zeros(len(some), bool)
        out[some] = chosen[start : start + int(some.sum())]
        start += int(some.sum())
        chosen_of_parts.append(out)
    return chosen_of_parts


def packed_once(matrix: Any, gain: np.ndarray, limit_seconds: float) -> np.ndarray:
    """(n,) bool, the columns of most gain of which each row, (r, n) sparse, is in one at most; the largest
    gains first where time runs out."""
    from scipy import optimize

    result = optimize.milp(
        -gain,
        integrality=np.ones(len(gain)),
        bounds=optimize.Bounds(0, 1),
        constraints=[optimize.LinearConstraint(matrix, -np.inf, 1.0)],
        options={"time_limit": limit_seconds, "mip_rel_gap": 0.005},
    )
    if result.x is not None:
        return np.round(result.x).astype(bool)
    chosen, taken = np.zeros(len(gain), bool), np.zeros(matrix.shape[0], bool)
    columns = matrix.tocsc()
    for at in np.argsort(-gain, kind="stable"):
        rows = columns.indices[columns.indptr[at] : columns.indptr[at + 1]]
        if not taken[rows].any():
            chosen[at], taken[rows] = True, True
    return chosen
