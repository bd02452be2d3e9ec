"""The baseline against exact least squares, components against SciPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components as scipy_components

from jostle.learn import connected_components, fit_baseline

EDGES = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 5)), max_size=40)


@settings(max_examples=60, deadline=None)
@given(EDGES)
def test_components_match_scipy(edges: list[tuple[int, int]]) -> None:
    w, p = (np.array([edge[side] for edge in edges], int) for side in (0, 1))
    ours_w, ours_p = connected_components(w, p, 8, 6)
    graph = coo_array((np.ones(len(edges)), (w, p + 8)), shape=(14, 14))
    _, theirs = scipy_components(graph, directed=False)
    ours = np.concatenate([ours_w, ours_p])
    seen = np.isin(np.arange(14), np.concatenate([w, p + 8]))
    assert ((ours >= 0) == seen).all()
    same = ours[seen][:, None] == ours[seen][None]
    assert (same == (theirs[seen][:, None] == theirs[seen][None])).all()


def test_matches_least_squares_without_shrinkage() -> None:
    random = np.random.default_rng(0)
    w, p = random.integers(0, 9, 300), random.integers(0, 7, 300)
    y = random.normal(size=300)
    design = np.zeros((300, 16))
    design[np.arange(300), w] = 1
    design[np.arange(300), 9 + p] = 1
    exact = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    ours = fit_baseline(w, p, y, 9, 7, shrinkage=0.0)
    assert np.allclose(ours.workload[w] + ours.platform[p], exact, atol=1e-7)
    assert ours.number_of_components == 1


def test_a_name_without_runs_has_the_mean_effect() -> None:
    y = np.array([1.0, 2.0])
    ours = fit_baseline(np.array([0, 0]), np.array([0, 1]), y, 2, 3)
    assert ours.workload[1] == 1.5
    assert ours.platform[2] == 0.0
    assert ours.workload_component[1] == -1
    assert fit_baseline(np.zeros(0, int), np.zeros(0, int), np.zeros(0), 1, 1).workload[0] == 0.0


def test_names_that_lie_far_apart_are_hardly_shrunken() -> None:
    random = np.random.default_rng(3)
    level, place = random.uniform(-14, 14, 30), random.normal(0, 0.5, 8)
    w, p = (code.reshape(-1) for code in np.meshgrid(np.arange(30), np.arange(8)))
    y = level[w] + place[p] + random.normal(0, 0.1, len(w))
    known = random.random(len(w)) < 0.35
    known[np.unique(w, return_index=True)[1]] = True
    ours = fit_baseline(w[known], p[known], y[known], 30, 8)
    error = (ours.workload[w] + ours.platform[p] - y)[~known]
    assert np.abs(np.expm1(error)).mean() < 0.15


def test_one_measurement_among_many_alike_is_not_taken_at_face_value() -> None:
    random = np.random.default_rng(4)
    w, p = (code.reshape(-1) for code in np.meshgrid(np.arange(20), np.arange(6)))
    y = random.normal(0, 0.5, len(w))
    y[:1] = 2.0
    ours, plain = (fit_baseline(w, p, y, 20, 6, shrinkage=s) for s in (None, 0.0))
    assert np.abs(ours.workload).max() < np.abs(plain.workload).max()
