"""The three solvers: brute force, limits, invariants, and odd input that must not pass silently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadData, UsageError
from jostle.usage import (
    AbsorbedKernel,
    Cloud,
    Snapshots,
    Stopping,
    edge_eps,
    solve_edge,
    squared_distances,
    thinned,
)


def cloud(n: int, seed: int, at: float = 0.0, d: int = 3) -> Cloud:
    random = np.random.default_rng(seed)
    return Cloud.of(random.normal(at, 1.0, (n, d)), random.uniform(0.5, 1.5, n))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 4, 2), (2, 3, 2, 3)])
@pytest.mark.parametrize("eps", [0.3, 1.0, 10.0])
def test_edges_of_a_path_equal_the_whole_tensor(sizes: tuple[int, ...], eps: float) -> None:
    """The tensor over all snapshots, scaled to every marginal in turn, has the edges' joint laws."""
    path = [cloud(n, 20 + number, d=2) for number, n in enumerate(sizes)]
    tensor, axes = np.ones(sizes), range(len(sizes))
    for k in axes[1:]:
        cost = squared_distances(path[k - 1].atoms, path[k].atoms)
        tensor *= np.exp(-cost / eps).reshape(
            [n if i in (k - 1, k) else 1 for i, n in enumerate(sizes)]
        )
    for _ in range(2000):
        for k in axes:
            found = tensor.sum(axis=tuple(i for i in axes if i != k))
            tensor *= (path[k].weights / found).reshape([-1 if i == k else 1 for i in axes])
    strict = Stopping(hilbert=1e-13, marginal_l1=0.0, sweeps=20_000)
    for k in axes[1:]:
        edge = solve_edge(path[k - 1], path[k], eps, stopping=strict)
        whole = tensor.sum(axis=tuple(i for i in axes if i not in (k - 1, k)))
        np.testing.assert_allclose(edge.matrix, whole, atol=1e-10)


@pytest.mark.parametrize("ratio", [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3])
def test_every_eps_converges_and_is_finite(ratio: float) -> None:
    x, y = cloud(80, 1), cloud(60, 2, at=1.5)
    eps = edge_eps(x, y, ratio, "median")
    found = solve_edge(x, y, eps, stopping=Stopping(hilbert=1e-9, marginal_l1=0.0))
    assert found.convergence.status == "converged"
    assert np.isfinite(found.matrix).all()
    np.testing.assert_allclose(found.matrix.sum(axis=1), x.weights, atol=1e-9)
    np.testing.assert_allclose(found.matrix.sum(axis=0), y.weights, atol=1e-9)
    if ratio >= 1e3:
        np.testing.assert_allclose(found.matrix, np.outer(x.weights, y.weights), rtol=0.02)
        assert found.warning
        assert "independent" in found.warning


def test_small_eps_approaches_exact_transport() -> None:
    ot = pytest.importorskip("ot")
    x, y = cloud(40, 5), cloud(40, 6, at=1.0)
    cost = squared_distances(x.atoms, y.atoms)
    exact = ot.emd2(x.weights, y.weights, cost)
    blurred = [(solve_edge(x, y, eps).matrix * cost).sum() for eps in (3.0, 0.3, 0.03)]
    assert blurred[0] > blurred[1] > blurred[2] >= exact - 1e-9
    assert blurred[2] == pytest.approx(exact, rel=0.01)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 10_000),
    st.sampled_from([1e-3, 0.1, 1.0, 1e3]),
    st.booleans(),
)
def test_outliers_duplicates_and_flat_components(
    n: int, m: int, seed: int, ratio: float, flat: bool
) -> None:
    """An atom a million deviations off, equal atoms, a component that never changes: never NaN, always a
    status, and the marginals of what is handed out are exact."""
    x, y = cloud(n, seed), cloud(m, seed + 1)
    atoms = x.atoms.copy()
    atoms[0] = 1e6
    atoms[-1] = atoms[0] if n > 2 else atoms[-1]
    other = y.atoms.copy()
    if flat:
        atoms[:, 2] = other[:, 2] = 7.0
    a, b = Cloud.of(atoms, x.weights).merged, Cloud.of(other, y.weights)
    found = solve_edge(a, b, edge_eps(a, b, ratio, "median"), stopping=Stopping(sweeps=300))
    assert found.convergence.status in (
        "converged",
        "max_sweeps",
        "stalled",
        "exact_transport",
    )
    assert np.isfinite(found.convergence.marginal_l1)
    assert np.isfinite(found.matrix).all()
    assert found.matrix.min() >= 0
    np.testing.assert_allclose(found.matrix.sum(axis=1), a.weights, atol=1e-12)
    np.testing.assert_allclose(found.matrix.sum(axis=0), b.weights, atol=1e-12)


def test_an_unfinished_solver_says_so() -> None:
    x, y = cloud(60, 7), cloud(60, 8, at=3.0)
    few = Stopping(hilbert=1e-12, marginal_l1=0.0, sweeps=3)
    found = solve_edge(x, y, 1e-2, stopping=few, fallback=False)
    assert found.convergence.status == "max_sweeps"
    assert not found.convergence.converged
    assert found.convergence.marginal_l1 > 1e-4
    assert found.warning
    assert "not converged" in found.warning


@pytest.mark.parametrize("ratio", [1e-3, 1e-7])
def test_an_eps_that_is_too_small_is_exact_transport(ratio: float) -> None:
    """Rounding what an unfinished solver leaves may cost more than no coupling at all."""
    ot = pytest.importorskip("ot")
    x, y = cloud(60, 7), cloud(50, 8, at=3.0)
    eps = edge_eps(x, y, ratio, "median")
    found = solve_edge(x, y, eps, stopping=Stopping(hilbert=1e-12, marginal_l1=0.0, sweeps=3))
    assert found.convergence.status == "exact_transport"
    assert found.warning is None
    cost = squared_distances(x.atoms, y.atoms)
    assert (found.matrix * cost).sum() == pytest.approx(ot.emd2(x.weights, y.weights, cost))
    np.testing.assert_allclose(found.matrix.sum(axis=1), x.weights, atol=1e-12)
    np.testing.assert_allclose(found.matrix.sum(axis=0), y.weights, atol=1e-12)


def test_absorbed_kernel_is_the_log_kernel() -> None:
    random = np.random.default_rng(0)
    log_kernel = random.normal(size=(30, 20)) * 400
    fast = AbsorbedKernel(log_kernel)
    for scale in (1e-3, 1.0, 50.0, 1000.0, 0.1):
        x, y = random.normal(size=30) * scale, random.normal(size=20) * scale
        forward = np.logaddexp.reduce(log_kernel + x[:, None], axis=0)
        backward = np.logaddexp.reduce(log_kernel + y, axis=1)
        np.testing.assert_allclose(fast.forward(x), forward, rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(fast.backward(y), backward, rtol=1e-12, atol=1e-10)


def test_thinning_keeps_the_mean() -> None:
    big = cloud(300, 9)
    small = thinned(big, 20)
    assert len(small) <= 20
    np.testing.assert_allclose(small.mean, big.mean, atol=1e-12)


@pytest.mark.parametrize(
    ("atoms", "weights"),
    [
        (np.zeros((0, 3)), None),
        (np.zeros((2, 0)), None),
        ([[1.0, np.nan]], None),
        ([[1.0, np.inf]], None),
        ([[1.0], [2.0]], [1.0]),
        ([[1.0], [2.0]], [-1.0, 2.0]),
        ([[1.0], [2.0]], [0.0, 0.0]),
        ([[1.0], [2.0]], [np.nan, 1.0]),
    ],
)
def test_bad_clouds_are_refused(atoms: object, weights: object) -> None:
    with pytest.raises(BadData):
        Cloud.of(np.array(atoms, float), None if weights is None else np.array(weights, float))


def test_atoms_of_weight_zero_are_dropped() -> None:
    assert len(Cloud.of(np.arange(3.0), np.array([1.0, 0.0, 1.0]))) == 2


def test_bad_arguments_are_refused() -> None:
    x = cloud(4, 0)
    for eps in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(UsageError):
            solve_edge(x, x, eps)
    with pytest.raises(UsageError):
        Stopping(sweeps=0)
    with pytest.raises(UsageError):
        edge_eps(x, x, 0.1, "nonsense")
    good = np.ones((3, 2))
    for times, clouds in (([0.0], [good, good]), ([0.0, 1.0], [good, good[:, :1]]), ([0.0], {})):
        with pytest.raises(BadData):
            Snapshots.from_arrays(times, clouds, ["a", "b"])
    with pytest.raises(UsageError):
        Snapshots.from_arrays([1.0, 0.0], [good, good], ["a", "b"])
