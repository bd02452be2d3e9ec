"""The slowdown form on arrays, with the slope of its loss in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

GAIN_PENALTY = 0.05
OFFSET_PENALTY = 1.0
SHIFT = 1.0  # starts the slowdown near none
ROUND = 0.2  # relative error at which the pseudo-Huber loss turns from quadratic to linear


@dataclass(frozen=True)
class SlowdownRows:
    """Rows with co-runners. target: (n,) cell (platform * workloads + workload) of the target;
    corunner: (m,) cells, row: (m,) which row they belong to; log_slowdown: (n,); scale: (n,) what one
    unit of the sum adds to the runtime in solo runtimes."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_slowdown: np.ndarray
    scale: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    def take(self, keep: np.ndarray) -> SlowdownRows:
        """keep: (n,) bool."""
        number = np.cumsum(keep) - 1
        kept = keep[self.row]
        return SlowdownRows(
            self.target[keep],
            self.corunner[kept],
            number[self.row[kept]],
            self.log_slowdown[keep],
            self.scale[keep],
        )


@dataclass(frozen=True)
class Sizes:
    """What a member is made of. design: (cells, d), whose columns carry the parts' weights."""

    platforms: int
    workloads: int
    rank: int
    design: np.ndarray
    exponents: bool
    offsets: bool
    constants: bool
    alike: float

    def shapes(self) -> dict[str, tuple[int, ...]]:
        d = self.design.shape[1]
        cells = self.platforms * self.workloads
        return {
            "s": (d, self.rank),
            "g": (d, self.rank),
            "both": (d if self.alike else 0, self.rank),
            "gain": (self.platforms,),
            "constant": (self.platforms if self.constants else 0,),
            "exponent": (self.workloads if self.exponents else 0,),
            "offset": (cells if self.offsets else 0,),
        }

    def mixed(self, part: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(S, G), each (cells, rank): own numbers and shared ones, weighted so that their size does not
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
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self.shapes().values())


def forward(
    x: np.ndarray, sizes: Sizes, rows: SlowdownRows
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """(predicted log slowdown (n,), what the slope needs)."""
    part = sizes.unpack(x)
    shifted_s, shifted_g = (each - SHIFT for each in sizes.mixed(part))
    platform = rows.target // sizes.workloads
    each = softplus(shifted_g)[rows.corunner]
    n = len(rows)
    pressed = np.stack([np.bincount(rows.row, each[:, t], n) for t in range(sizes.rank)], 1)
    hit = softplus(shifted_s)[rows.target]
    gain = np.exp(part["gain"])[platform]
    reached = gain * (hit * pressed).sum(1)
    inner = 1 + rows.scale * (
        reached + (softplus(part["constant"])[platform] if sizes.constants else 0.0)
    )
    value = np.log(inner)
    out = (
        value * np.exp(part["exponent"])[rows.target % sizes.workloads]
        if sizes.exponents
        else value
    )
    if sizes.offsets:
        out = out + part["offset"][rows.target]
    return out, (shifted_s, shifted_g, hit, pressed, gain, reached, inner, value)


def loss_and_slope(
    x: np.ndarray, sizes: Sizes, rows: SlowdownRows, penalty: float
) -> tuple[float, np.ndarray]:
    """Mean pseudo-Huber loss of the relative error plus the ridge, and its gradient (size of x,)."""
    predicted, kept = forward(x, sizes, rows)
    shifted_s, shifted_g, hit, pressed, gain, reached, inner, value = kept
    part, n = sizes.unpack(x), len(rows)
    cells = sizes.platforms * sizes.workloads
    platform, workload = rows.target // sizes.workloads, rows.target % sizes.workloads
    error = np.clip(predicted - rows.log_slowdown, -30.0, 30.0)
    relative = np.expm1(error)
    bend = np.sqrt(1 + (relative / ROUND) ** 2)
    loss = float((ROUND**2 * (bend - 1)).mean())
    d_out = relative / bend * (relative + 1) / n
    slope: dict[str, Any] = {name: np.zeros(shape) for name, shape in sizes.shapes().items()}
    d_value = d_out
    if sizes.exponents:
        exponent = np.exp(part["exponent"])[workload]
        slope["exponent"] = np.bincount(workload, d_out * value * exponent, sizes.workloads)
        d_value = d_out * exponent
    if sizes.offsets:
        slope["offset"] = np.bincount(rows.target, d_out, cells)
    d_sum = d_value / inner * rows.scale
    if sizes.constants:
        bent = _sigmoid(part["constant"])[platform]
        slope["constant"] = np.bincount(platform, d_sum * bent, sizes.platforms)
    slope["gain"] = np.bincount(platform, d_sum * reached, sizes.platforms)
    by_hit = (d_sum * gain)[:, None] * pressed
    by_press = ((d_sum * gain)[:, None] * hit)[rows.row]
    for name, at, each, shifted in (
        ("s", rows.target, by_hit, shifted_s),
        ("g", rows.corunner, by_press, shifted_g),
    ):
        summed = np.stack([np.bincount(at, each[:, t], cells) for t in range(sizes.rank)], 1)
        drawn = sizes.design.T @ (summed * _sigmoid(shifted))
        slope[name] = np.sqrt(1 - sizes.alike) * drawn
        if sizes.alike:
            slope["both"] += np.sqrt(sizes.alike) * drawn
    strengths = {
        "s": penalty,
        "g": penalty,
        "both": penalty,
        "gain": GAIN_PENALTY,
        "constant": 0.0,
        "exponent": GAIN_PENALTY,
        "offset": OFFSET_PENALTY,
    }
    for name, strength in strengths.items():
        loss += strength * float((part[name] ** 2).sum()) / n
        slope[name] = slope[name] + 2 * strength * part[name] / n
    return loss, np.concatenate([slope[name].ravel() for name in sizes.shapes()])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(x / 2))


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
