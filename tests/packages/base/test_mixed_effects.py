"""Random effects against closed forms: ridge regression, one-way analysis of variance, fixed effects."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle._base import mixed_effects as solver
from jostle._base.mixed_effects import Block, MixedEffects, fit_mixed_effects


def crossed(seed: int, n: int = 400, noise: float = 0.3) -> tuple[dict[str, Block], np.ndarray]:
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 30, n), random.integers(0, 8, n)
    y = 2 + random.normal(size=30)[a] + 0.5 * random.normal(size=8)[b]
    design = {
        "level": Block.of(np.zeros(n, int), 1),
        "a": Block.of(a, 30),
        "b": Block.of(b, 8),
    }
    return design, y + noise * random.normal(size=n)


def test_known_variances_give_the_ridge_regression() -> None:
    design, y = crossed(0)
    variances = {"level": 1e4, "a": 0.7, "b": 0.2}
    like = MixedEffects({}, {}, variances, np.array([0.25]))
    found = fit_mixed_effects(design, y, like=like)
    # With noise this small no row is an outlier of the true law: Huber's weights are 1 for most of them.
    x = np.hstack([block.matrix(len(y)).toarray() for block in design.values()])
    prior = np.diag(1 / np.repeat(list(variances.values()), [1, 30, 8]))
    plain = np.linalg.solve(x.T @ x / 0.25 + prior, x.T @ y / 0.25)
    mine = np.concatenate([found.effect[name] for name in design])
    np.testing.assert_allclose(mine, plain, atol=0.02)


def test_variances_are_those_of_the_law() -> None:
    found = [fit_mixed_effects(*crossed(seed, 2000), fixed=("level",)) for seed in range(8)]
    of_a = np.mean([one.block_variance["a"] for one in found])
    of_noise = np.mean([one.noise_variance[0] for one in found])
    assert of_a == pytest.approx(1.0, rel=0.25)
    assert of_noise == pytest.approx(0.09, rel=0.1)


def test_one_way_effects_are_shrunken_means() -> None:
    random = np.random.default_rng(3)
    group = np.repeat(np.arange(5), [1, 2, 5, 20, 50])
    y = random.normal(size=5)[group] + 0.1 * random.normal(size=len(group))
    like = MixedEffects({}, {}, {"group": 0.5}, np.array([4.0]))
    found = fit_mixed_effects({"group": Block.of(group, 5)}, y, like=like).effect["group"]
    n = np.bincount(group)
    np.testing.assert_allclose(found, np.bincount(group, y) / (n + 4.0 / 0.5), atol=1e-9)


def test_an_unknown_level_adds_nothing_and_columns_have_slopes() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 2))
    y = x @ [2.0, -1.0] + 0.01 * random.normal(size=300)
    found = fit_mixed_effects({"slope": Block.columns(x)}, y)
    np.testing.assert_allclose(found.effect["slope"], [2.0, -1.0], atol=0.01)
    asked = {"slope": Block.of(np.array([-1, 0, 1]), 2)}
    np.testing.assert_allclose(found.predict(asked, 3), [0.0, 2.0, -1.0], atol=0.01)


def test_an_outlier_moves_little() -> None:
    design, y = crossed(1)
    wild = y.copy()
    wild[0] += 1000.0
    plain, found = (fit_mixed_effects(design, one, fixed=("level",)) for one in (y, wild))
    assert np.abs(found.effect["a"] - plain.effect["a"]).max() < 0.2


@pytest.mark.parametrize(("dense", "direct"), [(0, 10_000), (0, 0)])
def test_large_systems_give_the_same(
    dense: int, direct: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    design, y = crossed(2, 3000)
    exact = fit_mixed_effects(design, y, fixed=("level",))
    monkeypatch.setattr(solver, "DENSE", dense)
    monkeypatch.setattr(solver, "DIRECT", direct)
    found = fit_mixed_effects(design, y, fixed=("level",))
    np.testing.assert_allclose(found.effect["a"], exact.effect["a"], atol=0.05)
    same = fit_mixed_effects(design, y, fixed=("level",), like=exact)
    np.testing.assert_allclose(same.effect["a"], exact.effect["a"], atol=0.01)


def test_nothing_and_rows_that_are_taken() -> None:
    none = fit_mixed_effects({"a": Block.of(np.zeros(0, int), 3)}, np.zeros(0))
    assert none.effect["a"].tolist() == [0.0] * 3
    block = Block(np.array([0, 0, 2]), np.array([1, 2, 0]), np.ones(3), 3)
    part = block.take(np.array([0, 2]), 3)
    assert part.sums(np.array([1.0, 10.0, 100.0]), 2).tolist() == [110.0, 1.0]


def test_a_heavy_block_keeps_a_level_that_is_far_off_for_itself() -> None:
    """Sets of repeated runs, one of which lies far off: names keep their effects, as without that set."""
    random, names = np.random.default_rng(5), 8
    first, second = (each.ravel() for each in np.triu_indices(names, 1))
    of_name = random.normal(size=names)
    mean = of_name[first] + of_name[second] + 0.1 * random.normal(size=len(first))
    of_set = np.repeat(np.arange(len(first)), 4)

    def effects(far: float, heavy: bool, without: int = -1) -> np.ndarray:
        y = (mean + far * (np.arange(len(first)) == 0))[of_set]
        keep = of_set != without
        y = (y + 0.01 * np.random.default_rng(6).normal(size=len(y)))[keep]
        design = {
            "names": Block.of(
                np.r_[first[of_set[keep]], second[of_set[keep]]],
                names,
                row=np.tile(np.arange(len(y)), 2),
            ),
            "set": replace(Block.of(of_set[keep], len(first)), heavy=heavy),
        }
        return fit_mixed_effects(design, y).effect["names"]

    usual = effects(0.0, True)
    np.testing.assert_allclose(usual, effects(0.0, False), atol=0.02)
    without = effects(0.0, False, without=0)
    away = {heavy: np.abs(effects(2.0, heavy) - without).max() for heavy in (False, True)}
    assert away[True] < 0.1 < away[False]
