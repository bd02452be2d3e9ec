"""The slowdown form on arrays, with the slope of its loss in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jostle.learn.training._slowdown_rows import SlowdownRows

GAIN_PENALTY = 0.05  # of the ridge on gains and exponents
SHIFT = 1.0  # starts the slowdown near none
MOST_LOG = 50.0  # gains and exponents end at exp(50): a search may step far, and what it tries stays finite
ROUND = 0.2  # relative error at which the pseudo-Huber loss turns from quadratic to linear


@dataclass(frozen=True)
class Sizes:
    """What a member is made of. design: (cells, d), dense or sparse, whose columns carry the weights. S and G
    stand side by side in `types`, what they share in `both`."""

    platforms: int
    workloads: int
    rank: int
    design: Any
    exponents: bool
    constants: bool
    alike: float

    def shapes(self) -> dict[str, tuple[int, ...]]:
        d = self.design.shape[1]
        return {
            "types": (d, 2 * self.rank),
            "both": (d if self.alike else 0, self.rank),
            "gain": (self.platforms,),
            "constant": (self.platforms if self.constants else 0,),
            "exponent": (self.workloads if self.exponents else 0,),
        }

    def mixed(self, part: dict[str, np.ndarray]) -> np.ndarray:
        """Mix own numbers and shared ones to S and G side by side, (cells, 2 rank), weighted so that their
        size does not depend on how alike the two are."""
        numbers = part["types"]
        if self.alike:
            shared = np.tile(part["both"], 2)
            numbers = np.sqrt(1 - self.alike) * numbers + np.sqrt(self.alike) * shared
        return self.design @ numbers

    @cached_property
    def parts(self) -> dict[str, tuple[slice, tuple[int, ...]]]:
        """Find where in one vector each of the `shapes` stands, with that shape."""
        out, at = {}, 0
        for name, shape in self.shapes().items():
            size = int(np.prod(shape))
            out[name] = slice(at, at + size), shape
            at += size
        return out

    def unpack(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {name: x[at].reshape(shape) for name, (at, shape) in self.parts.items()}

    @property
    def random_size(self) -> int:
        """Number of parameters that start at random: those of S and G, which stand first."""
        return self.parts["both"][0].stop

    @property
    def size(self) -> int:
        return self.parts["exponent"][0].stop


class FormLoss:
    """Mean pseudo-Huber loss of the relative error plus the ridge, and its gradient, of rows that stay."""

    def __init__(self, sizes: Sizes, rows: SlowdownRows, penalty: float) -> None:
        from scipy.sparse import csr_matrix, issparse

        n, cells = len(rows), sizes.platforms * sizes.workloads
        self.platform = rows.target // sizes.workloads
        self.workload = rows.target % sizes.workloads
        met = np.unique(np.concatenate([rows.target, rows.corunner]))
        if 2 * len(met) < cells:  # the others cost time, and no row asks about them
            at_target, at_corunner = (np.searchsorted(met, c) for c in (rows.target, rows.corunner))
            rows = replace(rows, target=at_target, corunner=at_corunner)
            sizes, cells = replace(sizes, design=sizes.design[met]), len(met)
        self.sizes, self.rows = sizes, rows
        self.turned = sizes.design.T.tocsr() if issparse(sizes.design) else sizes.design.T
        at = np.arange(n)
        # What is summed over rows of the same cell, and over the co-runners of a row.
        self.by_target = csr_matrix((np.ones(n), (rows.target, at)), shape=(cells, n))
        m = len(rows.corunner)
        self.by_corunner = csr_matrix((np.ones(m), (rows.corunner, np.arange(m))), shape=(cells, m))
        self.single = m == n and bool((rows.row == at).all())
        self.in_row = csr_matrix((np.ones(m), (rows.row, np.arange(m))), shape=(n, m))
        self.places = {name: at for name, (at, _) in sizes.parts.items()}
        self.ridge = np.zeros(sizes.size)
        self.ridge[: sizes.random_size] = penalty / n
        for name in ("gain", "exponent"):
            self.ridge[self.places[name]] = GAIN_PENALTY / n

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute (loss, gradient (size of x,))."""
        sizes, rows, n, rank = self.sizes, self.rows, len(self.rows), self.sizes.rank
        part = sizes.unpack(x)
        shifted = sizes.mixed(part) - SHIFT
        above = softplus(shifted)
        hit, each = above[:, :rank][rows.target], above[:, rank:][rows.corunner]
        pressed = each if self.single else self.in_row @ each
        gain = positive(part["gain"])[self.platform]
        reached = gain * (hit * pressed).sum(1)
        constant = softplus(part["constant"])[self.platform] if sizes.constants else 0.0
        inner = 1 + rows.scale * (reached + constant)
        value = np.log(inner)
        exponent = positive(part["exponent"])[self.workload] if sizes.exponents else 1.0
        predicted = value * exponent
        relative = np.expm1(np.clip(predicted - rows.log_slowdown, -30.0, 30.0))
        bend = np.sqrt(1 + (relative / ROUND) ** 2)
        loss = float((ROUND**2 * (bend - 1)).mean())
        d_out = relative / bend * (relative + 1) / n
        slope, at = 2 * self.ridge * x, self.places
        if sizes.exponents:
            by_row = d_out * value * exponent
            slope[at["exponent"]] += np.bincount(self.workload, by_row, sizes.workloads)
        d_sum = d_out * exponent / inner * rows.scale
        if sizes.constants:
            bent = _sigmoid(part["constant"])[self.platform]
            slope[at["constant"]] += np.bincount(self.platform, d_sum * bent, sizes.platforms)
        slope[at["gain"]] += np.bincount(self.platform, d_sum * reached, sizes.platforms)
        weighed = (d_sum * gain)[:, None]
        by_press = weighed * hit
        to_hit = self.by_target @ (weighed * pressed)
        to_press = self.by_corunner @ (by_press if self.single else by_press[rows.row])
        drawn = self.turned @ (np.concatenate([to_hit, to_press], 1) * _sigmoid(shifted))
        slope[at["types"]] += np.sqrt(1 - sizes.alike) * drawn.ravel()
        if sizes.alike:
            shared = drawn[:, :rank] + drawn[:, rank:]
            slope[at["both"]] += np.sqrt(sizes.alike) * shared.ravel()
        return loss + float(self.ridge @ x**2), slope


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


def positive(log: np.ndarray) -> np.ndarray:
    """exp(log), at most exp(MOST_LOG) and at least its inverse."""
    return np.exp(np.clip(log, -MOST_LOG, MOST_LOG))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
