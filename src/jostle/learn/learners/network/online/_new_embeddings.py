"""A fitted factorization with more names, which nothing is known of yet but their features."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from jostle.learn.learners.network._embeddings import Embeddings
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network._spread import Spread
from jostle.learn.learners.network._spread_effects import Effects, Keys

BY_WORKLOAD = ("workload_base", "workload_main", "target", "corunner", "workload_component")
BY_PLATFORM = (
    *("platform_base", "platform_main", "platform_corun", "platform_corun_base"),
    *("susceptibility", "intensity", "platform_component"),
)
HEADS = ("head_main", "head_base", "head_target")
UNCONNECTED_WORKLOAD, UNCONNECTED_PLATFORM = -1, -2  # components of names that nothing tells of


def with_names(
    fitted: FittedFactorization, workloads: tuple[str, ...], platforms: tuple[str, ...]
) -> FittedFactorization:
    """Add names to a model: embeddings of 0, and no answer until they are learned."""
    names_w, from_w = _joined_names(fitted.workload_names, workloads)
    names_p, from_p = _joined_names(fitted.platform_names, platforms)
    if len(names_w) == len(fitted.workload_names) and len(names_p) == len(fitted.platform_names):
        return fitted
    e = fitted.embeddings
    arrays = {name: _taken(getattr(e, name), from_w, 0) for name in BY_WORKLOAD}
    arrays |= {name: _taken(getattr(e, name), from_p, 0) for name in BY_PLATFORM}
    arrays |= {name: _taken(getattr(e, name), from_w, 1) for name in HEADS if len(getattr(e, name))}
    arrays["workload_component"][from_w < 0] = UNCONNECTED_WORKLOAD
    arrays["platform_component"][from_p < 0] = UNCONNECTED_PLATFORM
    parts: dict[str, Any] = {f.name: arrays.get(f.name, getattr(e, f.name)) for f in fields(e)}
    return replace(
        fitted,
        workload_names=names_w,
        platform_names=names_p,
        embeddings=Embeddings(**parts),
        spread=_spread_with(fitted.spread, from_w, from_p),
    )


def _joined_names(
    known: tuple[str, ...], more: tuple[str, ...]
) -> tuple[tuple[str, ...], np.ndarray]:
    """Join known and further names. Returns (all of them, sorted; (n,) the position of each among the known,
    -1 for a new one)."""
    names = tuple(sorted({*known, *more}))
    place = {name: code for code, name in enumerate(known)}
    return names, np.array([place.get(name, -1) for name in names], np.int64)


def _taken(values: np.ndarray, source: np.ndarray, axis: int) -> np.ndarray:
    """Take the values of names along an axis; 0 for new names. source: (n,) positions, -1 for a new name."""
    shape = list(values.shape)
    if shape[axis] == 0:
        shape[axis] = len(source)
        return np.zeros(shape, values.dtype)
    rows = np.take(values, np.maximum(source, 0), axis)
    place = [slice(None)] * rows.ndim
    place[axis] = source < 0  # type: ignore[call-overload]
    rows[tuple(place)] = 0
    return rows


def _spread_with(spread: Spread, from_w: np.ndarray, from_p: np.ndarray) -> Spread:
    """New names spread as the others do in the middle."""
    effects: dict[str, np.ndarray] = {}
    for field in fields(Effects):
        values = getattr(spread.effects, field.name)
        by_workload = field.name in ("workload", "corunner", "workload_table")
        by_platform = field.name in ("platform", "platform_table", "corunner_table")
        if by_workload or by_platform:
            values = _taken(values, from_w if by_workload else from_p, 1)
        effects[field.name] = values
    levels = (
        np.where((source < 0)[:, None], level.min(axis=0), _taken(level, source, 0))
        if len(level)
        else np.zeros((len(source), level.shape[1]), level.dtype)
        for level, source in (
            (spread.keys.workload_level, from_w),
            (spread.keys.platform_level, from_p),
        )
    )
    keys = Keys(spread.keys.runtime_edges, spread.keys.slowdown_edges, *levels)
    even = _taken(spread.even_platform, from_p, 1)
    return Spread(Effects(**effects), keys, spread.shape, even, spread.even_runtime)
