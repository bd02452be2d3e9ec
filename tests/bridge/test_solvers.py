"""The three solvers: brute force, limits, invariants, and odd input that must not pass silently."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.bridge import (
    AbsorbedKernel,
    Cloud,
    Stopping,
    edge_eps,
    solve_edge,
    squared_distances,
    thinned,
)
from jostle.errors import BadData, UsageError
from studies.bridge.graphs.barycentric import solve_barycentric
from studies.bridge.graphs.logs import LogKernel, log_matmul
from studies.bridge.graphs.series_parallel import solve_series_parallel
from studies.bridge.oracle import TIGHT, brute_force_errors, pair, random_cloud, tensor_sinkhorn
from studies.bridge.speed import solve_path, solve_path_jointly


def cloud(n: int, seed: int, at: float = 0.0, d: int = 3) -> Cloud:
    random = np.random.default_rng(seed)
    return Cloud.of(random.normal(at, 1.0, (n, d)), random.uniform(0.5, 1.5, n))


def test_all_solvers_equal_the_whole_tensor() -> None:
    """27 problems: three to five snapshots, unequal clouds, three eps, all joint laws."""
    errors = brute_force_errors(seed=0)
    assert len(errors) == 27
    assert max(errors.values()) < 1e-10, errors


def test_the_brute_force_itself_on_a_closed_form() -> None:
    """Two atoms against two of equal weights: P_11 = 1/2 sigmoid of half the log odds of the kernel."""
    log_kernel = np.array([[0.3, -0.9], [-1.1, 0.4]])
    half = np.full(2, 0.5)
    found = pair(tensor_sinkhorn([2, 2], [(0, 1, log_kernel)], {0: half, 1: half}), 0, 1)
    odds = log_kernel[0, 0] + log_kernel[1, 1] - log_kernel[0, 1] - log_kernel[1, 0]
    assert found[0, 0] == pytest.approx(0.5 / (1 + np.exp(-odds / 2)), abs=1e-14)


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


def test_acceleration_changes_nothing_but_the_time() -> None:
    x, y = cloud(50, 3), cloud(40, 4, at=0.5)
    strict = Stopping(hilbert=1e-12, marginal_l1=0.0, sweeps=20_000)
    fast = solve_edge(x, y, 0.15, stopping=strict)
    (plain,), ended = solve_path_jointly([x, y], [0.15], stopping=strict)
    np.testing.assert_allclose(fast.log_coupling, plain, atol=1e-8)
    assert fast.convergence.sweeps < ended.sweeps


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


def test_threads_give_the_same() -> None:
    clouds = [cloud(30, seed, at=0.3 * seed) for seed in range(5)]
    one = solve_path(clouds, [0.5] * 4)
    two = solve_path(clouds, [0.5] * 4, threads=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.log_coupling, b.log_coupling)


def test_absorbed_kernel_is_the_log_kernel() -> None:
    random = np.random.default_rng(0)
    log_kernel = random.normal(size=(30, 20)) * 400
    exact, fast = LogKernel(log_kernel), AbsorbedKernel(log_kernel)
    for scale in (1e-3, 1.0, 50.0, 1000.0, 0.1):
        x, y = random.normal(size=30) * scale, random.normal(size=20) * scale
        np.testing.assert_allclose(fast.forward(x), exact.forward(x), rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(fast.backward(y), exact.backward(y), rtol=1e-12, atol=1e-10)


def test_log_matmul_where_products_underflow() -> None:
    random = np.random.default_rng(1)
    a, b = random.normal(size=(9, 7)) * 900, random.normal(size=(7, 8)) * 900
    truth = np.logaddexp.reduce(a[:, :, None] + b[None], axis=1)
    np.testing.assert_allclose(log_matmul(a, b), truth, rtol=1e-12)


def test_barycentric_prescribed_is_a_composition_of_edges() -> None:
    random = np.random.default_rng(2)
    cores = [[random_cloud(random, 6) for _ in range(2)] for _ in range(2)]
    support = [random.normal(size=(5, 2)) * 0.5 for _ in range(2)]
    nu = [random.dirichlet(np.full(5, 4.0)) for _ in range(2)]
    solved = solve_barycentric(
        cores, support, 0.3, eps_unit="absolute", prescribed=nu, stopping=TIGHT
    )
    bary = [Cloud.of(atoms, weights) for atoms, weights in zip(support, nu, strict=True)]
    left = solve_edge(cores[0][0], bary[0], 0.3, stopping=TIGHT).matrix
    middle = solve_edge(bary[0], bary[1], 0.3, stopping=TIGHT).matrix
    right = solve_edge(bary[1], cores[0][1], 0.3, stopping=TIGHT).matrix
    composed = left @ np.diag(1 / nu[0]) @ middle @ np.diag(1 / nu[1]) @ right
    np.testing.assert_allclose(np.exp(solved.core_coupling(0, 0)), composed, atol=1e-10)


def test_core_couplings_have_mass_one_and_exact_marginals() -> None:
    random = np.random.default_rng(3)
    cores = [[random_cloud(random, 20) for _ in range(3)] for _ in range(3)]
    support = [random.normal(size=(25, 2)) * 0.5 for _ in range(3)]
    solved = solve_barycentric(cores, support, stopping=Stopping(hilbert=1e-11, marginal_l1=0.0))
    for core in range(3):
        for k in range(2):
            joint = np.exp(solved.core_coupling(core, k))
            assert joint.sum() == pytest.approx(1, abs=1e-8)
            assert np.abs(joint.sum(axis=1) - cores[core][k].weights).sum() < 1e-8
            assert np.abs(joint.sum(axis=0) - cores[core][k + 1].weights).sum() < 1e-8


def test_series_parallel_with_a_single_atom_terminal_is_a_path_per_core() -> None:
    random = np.random.default_rng(4)
    source, sink = Cloud.of(np.zeros((1, 2))), random_cloud(random, 5)
    chains = [[random_cloud(random, 6) for _ in range(2)] for _ in range(2)]
    solved = solve_series_parallel(chains, source, sink, 0.3, eps_unit="absolute", stopping=TIGHT)
    for j in range(2):
        nodes = [source, *chains[j], sink]
        for k, edge in enumerate(solve_path(nodes, [0.3] * 3, stopping=TIGHT)):
            np.testing.assert_allclose(np.exp(solved.couplings[j][k]), edge.matrix, atol=1e-10)


def test_series_parallel_converges_with_its_own_eps() -> None:
    random = np.random.default_rng(5)
    ends = Cloud.of(random.normal(8, 1, (40, 2))), Cloud.of(random.normal(-8, 1, (40, 2)))
    chains = [[random_cloud(random, 30) for _ in range(3)] for _ in range(3)]
    for atoms in (None, 10):
        solved = solve_series_parallel(chains, *ends, terminal_atoms=atoms)
        assert solved.convergence.converged
        assert solved.convergence.marginal_l1 < 1e-5


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
    with pytest.raises(BadData):
        solve_path([x], [])
    with pytest.raises(UsageError):
        solve_path([x, x], [])
    with pytest.raises(BadData):
        solve_path([x, cloud(4, 0, d=2)], [0.1])
    with pytest.raises(BadData):
        solve_series_parallel([[]], x, x)
    with pytest.raises(BadData):
        solve_barycentric([], [x.atoms, x.atoms])
