"""A small network for how much longer a workload takes beside others, trained and answered by NumPy.

    slowdown = 1 + exp(u_1) + exp(u_2),    (u_1, u_2) = S z + W3 tanh(W2 tanh(W1 z))

z are the logarithms of the workload's rates, of the others', and of what both do together (what is shared is
pressed by the total). Time that is lost is a product of powers of rates where memory is slow to answer
(misses times what a miss costs times how full the bus is), so its logarithm is nearly a sum; two such terms
and a bend are what a cache and a bus need. Without anyone beside it a workload is exactly as fast as alone.

It learns from periods inside phases: a law is seen there as it is, and where a period holds the end of one
only on the mean of two. Several networks that begin differently are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.learn.learners.counters.learning._answer_ranges import scale_of

TERMS = 2  # products of own and other rates
LOWEST, HIGHEST = -12.0, 4.0  # logarithms of rates, past which they are cut
SMALLEST = 1e-4  # of a rate's scale: what is less is as good as none
BATCH = 256  # rows of a step
FIRST_STEP, LAST_STEP = 5e-3, 2e-5  # sizes of the steps, that fall along a cosine


@dataclass(frozen=True, eq=False)
class PhaseNetwork:
    """E networks for d rates. scale: (d,) of the rates. mean, spread: (3 d,) of the features. weights,
    biases: of the two hidden layers, the straight part (no biases) and the output, each with E in front.
    limits: the least and the largest slowdown that is answered."""

    scale: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    weights: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    biases: tuple[np.ndarray, np.ndarray, np.ndarray]
    limits: tuple[float, float]

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Predict (n,) slowdowns from (n, d) rates."""
        z = (features_of(own, others, self.scale) - self.mean) / self.spread
        *_, u = _layers(z, self.weights, self.biases)
        extra = np.exp(np.clip(u, LOWEST, HIGHEST)).sum(axis=2)
        ratio = np.clip(np.exp(np.log1p(extra).mean(axis=0)), *self.limits)
        return np.where((others > 0).any(axis=1), ratio, 1.0)


def features_of(own: np.ndarray, others: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Make (n, 3 d) features of (n, d) rates, in units of their scale."""
    every = np.concatenate([own / scale, others / scale, (own + others) / scale], axis=1)
    return np.log(np.maximum(every, 0.0) + SMALLEST)


def _layers(z: np.ndarray, w: Any, b: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute both hidden layers and the terms (E, n, TERMS). z: (n, f), or (E, n, f)."""
    h1 = np.tanh(z @ w[0] + b[0][:, None])
    h2 = np.tanh(h1 @ w[1] + b[1][:, None])
    return h1, h2, z @ w[2] + h2 @ w[3] + b[2][:, None]


@dataclass(frozen=True)
class TrainingOptions:
    """networks: that are averaged. hidden: widths of the two hidden layers. decay: of the weights, in each
    step as a part of it."""

    networks: int = 3
    hidden: tuple[int, int] = (16, 16)
    epochs: int = 60
    decay: float = 3e-2


def train(
    rates: tuple[np.ndarray, np.ndarray],
    slowdown: np.ndarray,
    limits: tuple[float, float],
    *,
    weight: np.ndarray | None = None,
    options: TrainingOptions | None = None,
    seed: int = 0,
) -> PhaseNetwork:
    """Fit to (n,) measured slowdowns of (n, d) rates, the own and the others', by the squared relative
    error. weight: (n,) of each, around 1."""
    options, scale = options or TrainingOptions(), scale_of(rates[0])
    z = features_of(*rates, scale)
    random = np.random.default_rng(seed)
    mean, spread = z.mean(axis=0), z.std(axis=0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    z = ((z - mean) / spread).astype(np.float32)
    y = slowdown.astype(np.float32)
    counts = np.ones_like(y) if weight is None else weight.astype(np.float32)
    w, b = _beginning(random, z.shape[1], slowdown, options)
    _descend(random, (z, y, counts), w, b, options)
    parameters: Any = [p.astype(np.float64) for p in w + b]
    return PhaseNetwork(scale, mean, spread, tuple(parameters[:4]), tuple(parameters[4:]), limits)


def _beginning(
    random: np.random.Generator, features: int, slowdown: np.ndarray, options: TrainingOptions
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Draw (weights, biases) at random, around the mean slowdown."""
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
    """Compute the gradients of a batch's mean, by the parameters in the order of w + b. z: (E, n, f), y and
    weight: (E, n)."""
    h1, h2, u = _layers(z, w, b)
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
