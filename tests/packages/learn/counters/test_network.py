"""The network: its gradients, what it can learn, and its use for whole runs."""

from __future__ import annotations

import numpy as np

from jostle.learn.learners.counters.learning import _network
from jostle.learn.learners.counters.learning._network import PhaseNetwork, TrainingOptions, train


def drawn(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates and the slowdown of a memory that queues."""
    random = np.random.default_rng(seed)
    own, others = np.exp(random.uniform(-3, 0, (2, n, d)))
    used = np.minimum(own[:, 1] + others[:, 1], 1.5)
    return own, others, 1 + 0.6 * own[:, 2] * (others[:, 1] + used**2)


def test_gradients_are_those_of_the_loss() -> None:
    random = np.random.default_rng(1)
    z, y = random.normal(size=(2, 7, 5)), 1 + random.uniform(0, 1, (2, 7))
    shapes = ((5, 4), (4, 3), (5, 2), (3, 2))
    w = [0.5 * random.normal(size=(2, *shape)) for shape in shapes]
    b = [0.1 * random.normal(size=(2, size)) for size in (4, 3, 2)]

    def found() -> np.ndarray:
        h1 = np.tanh(z @ w[0] + b[0][:, None])
        h2 = np.tanh(h1 @ w[1] + b[1][:, None])
        return 1 + np.exp(z @ w[2] + h2 @ w[3] + b[2][:, None]).sum(axis=2)

    weight = random.uniform(0.5, 1.5, (2, 7)) / found() ** 2  # held fixed
    counts = weight * found() ** 2

    def loss() -> float:
        return float((weight * (found() - y) ** 2 / y.shape[1]).sum())

    unclipped = np.abs((found() - y) / found() ** 2) < 1
    assert unclipped.all()
    gradients = _network._gradients(z, y, counts, w, b)
    for parameter, gradient in zip(w + b, gradients, strict=True):
        at = tuple(random.integers(0, size) for size in parameter.shape)
        before = parameter[at]
        parameter[at] = before + 1e-6
        high = loss()
        parameter[at] = before - 1e-6
        low = loss()
        parameter[at] = before
        np.testing.assert_allclose(gradient[at], (high - low) / 2e-6, rtol=1e-4, atol=1e-8)


def fitted(limits: tuple[float, float] = (0.9, 9.0)) -> PhaseNetwork:
    own, others, slow = drawn(4000)
    options = TrainingOptions(epochs=12, networks=2, hidden=(32, 32))
    return train((own, others), slow, limits, options=options)


def test_learns_a_memory_that_queues_and_stays_within_what_was_seen() -> None:
    network = fitted()
    own, others, slow = drawn(500, seed=5)
    error = np.abs(network.slowdown(own, others) / slow - 1)
    assert error.mean() < 0.02
    assert (np.abs(slow - 1).mean()) > 5 * error.mean()
    np.testing.assert_array_equal(network.slowdown(own, 0 * others), 1.0)
    tight = fitted((0.9, 1.2))
    assert tight.slowdown(1e6 * own, 1e6 * others).max() <= 1.2
    again = fitted()
    np.testing.assert_array_equal(again.slowdown(own, others), network.slowdown(own, others))
