"""The slowdown form on arrays, with the slope of its loss in closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.learn.training._slowdown_rows import SlowdownRows

GAIN_PENALTY = 0.05  # of the ridge on gains and exponents
SHIFT = 1.0  # starts the slowdown near none
MOST_LOG = 50.0  # gains and exponents end at exp(50): a search may step far, and what it tries stays finite
ROUND = 0.2  # relative error at which the pseudo-Huber loss turns from quadratic to linear


@dataclass(frozen=True)
class Sizes:
    """What a member is made of. design: (cells, d), dense or sparse, whose columns carry the weights."""

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
            "s": (d, self.rank),
            "g": (d, self.rank),
            "both": (d if self.alike else 0, self.rank),
            "gain": (self.platforms,),
            "constant": (self.platforms if self.constants else 0,),
            "exponent": (self.workloads if self.exponents else 0,),
        }

    def mixed(self, part: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Mix own numbers and shared ones to (S, G), each (cells, rank), weighted so that their size does not
        depend on how alike the two are."""
        own, shared = np.sqrt(1 - self.alike), np.sqrt(self.alike)
        both = shared * part["both"] if self.alike else 0.0
        return self.design @ (own * part["s"] + both), self.design @ (own * part["g"] + both)

    def unpack(self, x: np.ndarray) -> dict[str, np.ndarray]:
        out, at = {}, 0
        for name, shape in self.shapes().items():
            size = int(np.prod(shape))
            out[name] = x[at : at + size].reshape(shape)
            at += size
        return out

    @property
    def random_size(self) -> int:
        """Number of parameters that start at random: those of S and G, which stand first."""
        return sum(int(np.prod(self.shapes()[name])) for name in ("s", "g", "both"))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes().values())


class FormLoss:
    """Mean pseudo-Huber loss of the relative error plus the ridge, and its gradient, of rows that stay."""

    def __init__(self, sizes: Sizes, rows: SlowdownRows, penalty: float) -> None:
        from scipy.sparse import csr_matrix

        n, cells = len(rows), sizes.platforms * sizes.workloads
        self.platform = rows.target // sizes.workloads
        self.workload = rows.target % sizes.workloads
        met = np.unique(np.concatenate([rows.target, rows.corunner]))
        if 2 * len(met) < cells:  # the others cost time, and no row asks about them
            at_target, at_corunner = (np.searchsorted(met, c) for c in (rows.target, rows.corunner))
            rows = replace(rows, target=at_target, corunner=at_corunner)
            sizes, cells = replace(sizes, design=sizes.design[met]), len(met)
        self.sizes, self.rows, self.penalty = sizes, rows, penalty
        at = np.arange(n)
        # What is summed over rows of the same cell, and over the co-runners of a row.
        self.by_target = csr_matrix((np.ones(n), (rows.target, at)), shape=(cells, n))
        m = len(rows.corunner)
        self.by_corunner = csr_matrix((np.ones(m), (rows.corunner, np.arange(m))), shape=(cells, m))
        self.single = m == n and bool((rows.row == at).all())
        self.in_row = csr_matrix((np.ones(m), (rows.row, np.arange(m))), shape=(n, m))
        self.slices: dict[str, slice] = {}
        self.shapes = sizes.shapes()
        start = 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            self.slices[name] = slice(start, start + size)
            start += size

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Compute (loss, gradient (size of x,))."""
        sizes, rows, n = self.sizes, self.rows, len(self.rows)
        part = {name: x[at].reshape(self.shapes[name]) for name, at in self.slices.items()}
        shifted_s, shifted_g = (each - SHIFT for each in sizes.mixed(part))
        each = softplus(shifted_g)[rows.corunner]
        pressed = each if self.single else self.in_row @ each
        hit = softplus(shifted_s)[rows.target]
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
        slope = np.zeros(len(x))
        at = self.slices
        if sizes.exponents:
            by_row = d_out * value * exponent
            slope[at["exponent"]] = np.bincount(self.workload, by_row, sizes.workloads)
        d_sum = d_out * exponent / inner * rows.scale
        if sizes.constants:
            bent = _sigmoid(part["constant"])[self.platform]
            slope[at["constant"]] = np.bincount(self.platform, d_sum * bent, sizes.platforms)
        slope[at["gain"]] = np.bincount(self.platform, d_sum * reached, sizes.platforms)
        weighed = (d_sum * gain)[:, None]
        by_press = weighed * hit
        for name, summed, shifted in (
            ("s", self.by_target @ (weighed * pressed), shifted_s),
            ("g", self.by_corunner @ (by_press if self.single else by_press[rows.row]), shifted_g),
        ):
            drawn = (sizes.design.T @ (summed * _sigmoid(shifted))).ravel()
            slope[at[name]] = np.sqrt(1 - sizes.alike) * drawn
            if sizes.alike:
                slope[at["both"]] += np.sqrt(sizes.alike) * drawn
        strengths = {
            "s": self.penalty,
            "g": self.penalty,
            "both": self.penalty,
            "gain": GAIN_PENALTY,
            "exponent": GAIN_PENALTY,
        }
        for name, strength in strengths.items():
            own = x[at[name]]
            loss += strength * float(own @ own) / n
            slope[at[name]] += 2 * strength * own / n
        return loss, slope


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


def positive(log: np.ndarray) -> np.ndarray:
    """exp(log), at most exp(MOST_LOG) and at least its inverse."""
    return np.exp(np.clip(log, -MOST_LOG, MOST_LOG))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
