"""A small network for how much longer a workload takes beside others, trained and answered by NumPy.

    slowdown = 1 + exp(u_1) + exp(u_2),    (u_1, u_2) = S [z, z'] + W3 tanh(W2 tanh(W1 [z, z']))

z and z' are the rates of the workload and of the others, each as it is and as its logarithm. Time that is
lost is a product of powers of rates where memory is slow to answer (misses times what a miss costs times how
full the bus is), so its logarithm is nearly a sum; two such terms and a bend are what a cache and a bus need.
Without anyone beside it a workload is exactly as fast as alone. The first layer takes workload and others
apart, so that what it makes of each sample of a run alone is computed once (`own_part`, `others_part`).

Several networks that begin differently are averaged.

`PhaseNetwork` is of logarithms alone, those of what workload and others do together (what is shared is
pressed by the total) among them. It learns from periods inside phases: a law is seen there as it is, and
where a period holds the end of one only on the mean of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

TERMS = 2
LOWEST, HIGHEST = -12.0, 4.0
SMALLEST = 1e-4  # of a rate's scale: what is less is as good as none
BATCH = 256
FIRST_STEP, LAST_STEP = 5e-3, 2e-5


@dataclass(frozen=True, eq=False)
class Layers:
    """E networks for d rates. scale: (d,) of the rates. mean, spread: (f,) of the features. layers: (weights,
    biases) of the two hidden layers, the straight part (no biases) and the output, each with E in
    front. limits: the least and the largest slowdown that is answered."""

    scale: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    biases: tuple[np.ndarray, np.ndarray, np.ndarray]
    limits: tuple[float, float]


@dataclass(frozen=True, eq=False)
class Network(Layers):
    """Of z and z', (4 d,) features."""

    @staticmethod
    def features(own: np.ndarray, others: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(n, 4 d) of (n, d) rates."""
        return np.concatenate([bent(own, scale), bent(others, scale)], axis=1)

    @property
    def own_shape(self) -> tuple[int, int]:
        """(E, h + TERMS)."""
        return len(self.weights[0]), self.weights[0].shape[2] + TERMS

    def own_part(self, own: np.ndarray) -> np.ndarray:
        """(n, E, h + TERMS) what the first layer and the straight part make of the own (n, d) rates."""
        return self._part(own, 0) + np.concatenate([self.biases[0], self.biases[2]], axis=1)

    def others_part(self, others: np.ndarray) -> np.ndarray:
        """The same of the others' rates."""
        return self._part(others, 1)

    def _part(self, rates: np.ndarray, side: int) -> np.ndarray:
        width = 2 * len(self.scale)
        at = slice(side * width, (side + 1) * width)
        z = (bent(rates, self.scale) - self.mean[at]) / self.spread[at]
        joined = np.concatenate([self.weights[0][:, at], self.weights[2][:, at]], axis=2)
        return np.einsum("nf,efh->neh", z, joined, optimize=True)

    def of_parts(self, parts: np.ndarray) -> np.ndarray:
        """(n,) slowdowns from the sum of both parts."""
        straight = parts[:, :, -TERMS:]
        inner = np.tanh(parts[:, :, :-TERMS]).transpose(1, 0, 2)
        inner = np.tanh(inner @ self.weights[1] + self.biases[1][:, None])
        u = (inner @ self.weights[3]).transpose(1, 0, 2) + straight
        extra = np.exp(np.clip(u, LOWEST, HIGHEST)).sum(axis=2)
        return np.clip(np.exp(np.log1p(extra).mean(axis=1)), *self.limits)

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) of (n, d) rates."""
        ratio = self.of_parts(self.own_part(own) + self.others_part(others))
        return np.where((others > 0).any(axis=1), ratio, 1.0)


def bent(rates: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(n, 2 d) rates in units of their scale, and their logarithms."""
    rates = np.maximum(rates / scale, 0.0)
    return np.concatenate([rates, np.log(rates + SMALLEST)], axis=1)


@dataclass(frozen=True, eq=False)
class PhaseNetwork(Layers):
    """Of the (3 d,) logarithms of the own rates, of the others' and of both together."""

    @staticmethod
    def features(own: np.ndarray, others: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """(n, 3 d) of (n, d) rates, in units of their scale."""
        every = np.concatenate([own / scale, others / scale, (own + others) / scale], axis=1)
        return np.log(np.maximum(every, 0.0) + SMALLEST)

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) of (n, d) rates."""
        z = (self.features(own, others, self.scale) - self.mean) / self.spread
        inner = np.tanh(z @ self.weights[0] + self.biases[0][:, None])
        inner = np.tanh(inner @ self.weights[1] + self.biases[1][:, None])
        u = inner @ self.weights[3] + z @ self.weights[2] + self.biases[2][:, None]
        extra = np.exp(np.clip(u, LOWEST, HIGHEST)).sum(axis=2)
        ratio = np.clip(np.exp(np.log1p(extra).mean(axis=0)), *self.limits)
        return np.where((others > 0).any(axis=1), ratio, 1.0)


@dataclass(frozen=True)
class TrainingOptions:
    """networks: that are averaged. hidden: widths of the two hidden layers. decay: of the weights, in each
    step as a part of it."""

    networks: int = 1
    hidden: tuple[int, int] = (32, 32)
    epochs: int = 60
    decay: float = 1e-1


NetworkT = TypeVar("NetworkT", Network, PhaseNetwork)
INSIDE = TrainingOptions(networks=3, hidden=(16, 16), decay=3e-2)


def train(
    kind: type[NetworkT],
    rates: tuple[np.ndarray, np.ndarray],
    slowdown: np.ndarray,
    scale: np.ndarray,
    limits: tuple[float, float],
    *,
    weight: np.ndarray | None = None,
    options: TrainingOptions | None = None,
    seed: int = 0,
) -> NetworkT:
    """Fit to (n,) measured slowdowns of (n, d) rates, the own and the others', by the squared relative
    error. weight: (n,) of each, around 1."""
    options = options or TrainingOptions()
    z = kind.features(*rates, scale)
    random = np.random.default_rng(seed)
    mean, spread = z.mean(axis=0), z.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    z = ((z - mean) / spread).astype(np.float32)
    y = slowdown.astype(np.float32)
    counts = np.ones_like(y) if weight is None else weight.astype(np.float32)
    w, b = _beginning(random, z.shape[1], slowdown, options)
    _descend(random, (z, y, counts), w, b, options)
    parameters = [p.astype(np.float64) for p in w + b]
    weights: Any = tuple(parameters[:4])
    biases: Any = tuple(parameters[4:])
    return kind(scale, mean, spread, weights, biases, limits)


def _beginning(
    random: np.random.Generator, features: int, slowdown: np.ndarray, options: TrainingOptions
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """(weights, biases) drawn at random, around the mean slowdown."""
    first, second = options.hidden

    def drawn(rows: int, columns: int, size: float = 1.0) -> np.ndarray:
        matrix = random.normal(size=(options.networks, rows, columns)) * size / np.sqrt(rows)
        return matrix.astype(np.float32)

    w = [
        drawn(features, first),
        drawn(first, second),
        drawn(features, TERMS, 0.1),
        drawn(second, TERMS, 0.3),
    ]
    b = [np.zeros((options.networks, size), np.float32) for size in (first, second, TERMS)]
    typical = max(float(np.mean(np.maximum(slowdown - 1, 0.0))), 1e-3)
    b[2][:] = np.log(typical / TERMS)
    b[2][:, 1] -= 1.0
    return w, b


def _descend(
    random: np.random.Generator,
    rows: tuple[np.ndarray, np.ndarray, np.ndarray],
    w: list[np.ndarray],
    b: list[np.ndarray],
    options: TrainingOptions,
) -> None:
    """Change the weights and biases in place, by steps of Adam whose size falls along a cosine. rows:
    features (n, f), slowdowns (n,) and their weights (n,)."""
    n = len(rows[0])
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in w + b]
    steps = max(1, n // BATCH)
    number, total = 0, options.epochs * steps
    for _ in range(options.epochs):
        order = np.stack([random.permutation(n) for _ in range(options.networks)])
        for k in range(steps):
            at = order[:, k * BATCH : (k + 1) * BATCH]
            z, y, weight = (column[at] for column in rows)
            gradients = _gradients(z, y, weight, w, b)
            number += 1
            size = LAST_STEP + 0.5 * (FIRST_STEP - LAST_STEP) * (1 + np.cos(np.pi * number / total))
            rate = size * np.sqrt(1 - 0.999**number) / (1 - 0.9**number)
            for place, (parameter, gradient) in enumerate(zip(w + b, gradients, strict=True)):
                one, two = moments[place]
                one += 0.1 * (gradient - one)
                two += 0.001 * (gradient * gradient - two)
                if place < len(w):
                    parameter *= 1 - size * options.decay
                parameter -= np.float32(rate) * one / (np.sqrt(two) + 1e-8)


def _gradients(
    z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    w: list[np.ndarray],
    b: list[np.ndarray],
) -> list[np.ndarray]:
    """Of the mean over a batch, by the parameters in the order of w + b. z: (E, n, f), y and weight:
    (E, n)."""
    h1 = np.tanh(z @ w[0] + b[0][:, None])
    h2 = np.tanh(h1 @ w[1] + b[1][:, None])
    u = z @ w[2] + h2 @ w[3] + b[2][:, None]
    inside = (u > LOWEST) & (u < HIGHEST)
    parts = np.exp(np.clip(u, LOWEST, HIGHEST))
    ratio = 1 + parts.sum(axis=2)
    # Of (found - y)^2 / found^2 with the weight held fixed: what is learned is the mean, not less.
    slope = np.clip((ratio - y) / ratio**2, -1.0, 1.0) * weight * np.float32(2 / y.shape[1])
    by_u = slope[:, :, None] * parts * inside
    by_h2 = (by_u @ w[3].transpose(0, 2, 1)) * (1 - h2 * h2)
    by_h1 = (by_h2 @ w[1].transpose(0, 2, 1)) * (1 - h1 * h1)
    turned = z.transpose(0, 2, 1)
    return [
        turned @ by_h1,
        h1.transpose(0, 2, 1) @ by_h2,
        turned @ by_u,
        h2.transpose(0, 2, 1) @ by_u,
        by_h1.sum(axis=1),
        by_h2.sum(axis=1),
        by_u.sum(axis=1),
    ]
