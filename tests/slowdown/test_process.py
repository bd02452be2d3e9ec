"""The Gaussian process beside the slowdown form, against scikit-learn's and by what it must keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import jostle
from jostle.errors import UsageError
from jostle.methods import learn
from jostle.runs import Colocations, Runs, split_rows
from jostle.slowdown import FittedSlowdown, Slowdown
from jostle.slowdown._equation import SlowdownRows
from jostle.slowdown._process import MOST_ROWS, _learned, fit_process

QUICK: dict[str, Any] = {"rank": 1, "members": 2, "steps": 60}


def rows_of(seed: int, n: int, cells: int = 6) -> SlowdownRows:
    random = np.random.default_rng(seed)
    target, corunner = random.integers(0, cells, (2, n))
    bent = np.sin(target) * np.cos(2 * corunner)  # nothing that the form could say
    return SlowdownRows(target, corunner, np.arange(n), 1 + 0.3 * bent, np.ones(n))


def test_it_answers_as_scikit_learn_does() -> None:
    random = np.random.default_rng(0)
    design = random.normal(size=(6, 3))
    rows = rows_of(1, 40)
    own, beside, width, other, noise = 0.5, 0.3, 1.3, 0.7, 0.02
    settings = np.log([own, beside, 1e-12, width, other, noise])
    mine = _learned(design, settings, rows)
    # The sum of a process of the target and one of the co-runner: with scikit-learn, on a product of
    # kernels that each see one half of the columns, one at a time.
    x = np.concatenate([design[rows.target], design[rows.corunner]], axis=1)
    widths: list[Any] = [[width] * 3 + [1e6] * 3, [1e6] * 3 + [other] * 3]
    first, second = ConstantKernel(own) * RBF(widths[0]), ConstantKernel(beside) * RBF(widths[1])
    unchanged: Any = None
    learner = GaussianProcessRegressor(first + second, alpha=noise, optimizer=unchanged)
    mean = rows.log_slowdown.mean()
    learner.fit(x, rows.log_slowdown - mean)
    target, corunner = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    asked = np.concatenate([design[target], design[corunner]], axis=1)
    expected = mean + learner.predict(asked)
    assert mine.predict(target, corunner, np.arange(36)) == pytest.approx(expected, abs=1e-6)
    assert np.isnan(mine.predict(target[:1], corunner[:2], np.zeros(2, np.int64))).all()


def test_several_corunners_are_their_mean_in_any_order_and_chunks_do_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(2)
    design = random.normal(size=(6, 3))
    row = np.repeat(np.arange(30), 2)
    rows = SlowdownRows(
        random.integers(0, 6, 30),
        random.integers(0, 6, 60),
        row,
        random.normal(size=30),
        np.ones(30),
    )
    settings = np.log([0.5, 0.3, 0.2, 1.0, 1.0, 0.1])
    process = _learned(design, settings, rows)
    target, corunner = random.integers(0, 6, 9), random.integers(0, 6, (9, 2))
    place = np.repeat(np.arange(9), 2)
    predicted = process.predict(target, corunner.ravel(), place)
    assert process.predict(target, corunner[:, ::-1].ravel(), place) == pytest.approx(predicted)
    monkeypatch.setattr("jostle.slowdown._process.CHUNK", 1)
    assert process.predict(target, corunner.ravel(), place) == pytest.approx(predicted)


def test_the_share_follows_what_helps() -> None:
    rows = rows_of(3, 60)
    design = np.eye(6)
    fold = np.arange(60) % 3
    poor = fit_process(rows, design, fold, np.full(60, 1.0), seed=0)
    assert poor is not None
    assert poor.share >= 0.8  # the form knows nothing, the process nearly everything
    assert fit_process(rows, design, fold, rows.log_slowdown, seed=0) is None
    many = rows_of(0, MOST_ROWS + 1)
    assert fit_process(many, design, np.arange(len(many)) % 3, np.ones(len(many)), 0) is None


@pytest.fixture(scope="module")
def bent() -> Runs:
    """Pairs of fourteen workloads whose slowdowns are products, which no one sum inside a logarithm is."""
    names = [f"w{i}" for i in range(14)]
    random = np.random.default_rng(0)
    hit, press = random.permutation(14) / 14, random.permutation(14) / 14
    pairs = [(i, j) for i in range(14) for j in range(14)]
    swing = [np.exp(0.05 + hit[i] + press[j]) for i, j in pairs]
    return Runs.from_columns(
        workload=[*names, *(names[i] for i, _ in pairs)],
        platform=["p"] * (14 + len(pairs)),
        corunners=[*([] for _ in names), *([names[j]] for _, j in pairs)],
        runtime_seconds=[*np.ones(14), *swing],
    )


def test_it_is_closer_where_the_form_is_wrong(bent: Runs) -> None:
    alone = np.flatnonzero(bent.colocations.number_of_corunners == 0)
    beside = np.flatnonzero(bent.colocations.number_of_corunners > 0)
    first, second = split_rows(bent.take(beside), [0.5, 0.5], 0, by="together")
    train, test = bent.take(np.concatenate([alone, beside[first]])), bent.take(beside[second])

    def error(method: Slowdown) -> float:
        fitted = learn(method, train, seed=0)
        return float(np.abs(fitted.predict(test.colocations) / test.runtime_seconds - 1).mean())

    with_process, form = error(Slowdown(process=True, **QUICK)), error(Slowdown(**QUICK))
    assert with_process < 0.7 * form, (with_process, form)


def test_saved_alone_and_with_unseen_numbers_of_corunners(bent: Runs, tmp_path: Path) -> None:
    model = jostle.fit(bent, Slowdown(process=True, **QUICK), seed=0, calibrate_by="together")
    predictor = model.predictor
    assert isinstance(predictor, FittedSlowdown)
    assert predictor.process is not None
    model.save(tmp_path)
    again = jostle.load(tmp_path)
    assert np.array_equal(again.predict(bent.colocations), model.predict(bent.colocations))
    alone = bent.take(bent.colocations.number_of_corunners == 0)
    assert np.allclose(model.predict(alone.colocations), alone.runtime_seconds)
    three = Colocations.from_columns(workload=["w1"], platform=["p"], corunners=[["w2", "w3"]])
    form = FittedSlowdown(
        predictor.workload_names, predictor.platform_names, predictor.parts, predictor.counts
    )
    assert predictor.predict(three) == form.predict(three)
    assert (predictor.slowdown(bent.colocations) >= 1).all()


def test_it_is_for_slowdowns() -> None:
    with pytest.raises(UsageError, match="target slowdown"):
        Slowdown(target="extra", process=True)
