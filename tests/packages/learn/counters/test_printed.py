"""The printed algorithm, beside the paper's lines copied out in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.data import Traces
from jostle.errors import UsageError
from jostle.learn import Data, learn
from jostle.learn.learners.counters import aligned_rows, traced_windows
from studies.alignment.paper.method import RidgeAlignment, laid
from studies.alignment.paper.printed import roll_printed
from studies.alignment.paper.ridge import fit_ridge
from tests.packages.learn.counters.conftest import a_solo

TAU = 2.0


def samp_align(i_buf: list[float], f_buf: list[np.ndarray], count: float) -> tuple:
    """Algorithm 2, lines 2 to 10; samples are numbered from 1 on."""
    beta = max([b for b in range(1, len(i_buf) + 1) if sum(i_buf[:b]) <= count], default=0)
    beta = min(beta, len(i_buf) - 1)  # there is no sample after the last
    gamma = (i_buf[beta] - count) / i_buf[beta]
    first = max(beta, 1) - 1
    if gamma == 1:
        return i_buf[first], f_buf[first]
    return tuple(each[first] * (1 - gamma) + each[beta] * gamma for each in (i_buf, f_buf))


def algorithm_1(i_buf: list, f_buf: list, model: list) -> tuple[list[float], list[list[float]]]:
    """Lines 27 to 44 of two applications."""
    total = [sum(each) for each in i_buf]
    a, s, pred, done = [0.0, 0.0], 1, [0.0, 0.0], [[0.0, 0.0]]
    while a[0] < total[0] and a[1] < total[1]:
        if s == 1:
            rows = [(i_buf[n][0], f_buf[n][0]) for n in range(2)]
        else:
            rows = [samp_align(i_buf[n], f_buf[n], pred[n]) for n in range(2)]
        pred = [model[n](*rows[n], *rows[1 - n]) for n in range(2)]
        a = [a[n] + pred[n] for n in range(2)]
        done.append(a)
        s += 1
    beta = [
        max([b for b in range(len(each) + 1) if sum(each[:b]) <= a[n]], default=0)
        for n, each in enumerate(i_buf)
    ]
    return [s * TAU + (len(i_buf[n]) - beta[n]) * TAU for n in range(2)], done


@pytest.mark.parametrize("seed", range(4))
def test_as_the_lines_of_the_paper(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = random.integers(5, 40, 2)
    counts = [
        np.stack([random.integers(1, 50, n), random.uniform(0, 1, n)], axis=1).astype(float)
        for n in lengths
    ]
    solos = [a_solo(one, TAU, name=f"w{n}") for n, one in enumerate(counts)]
    weight = random.uniform(0.1, 0.9, 2)

    def slowdown(n: int, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        return 1 + weight[n] * own[:, 1] * others[:, 1] * TAU**2

    models = [lambda i, f, j, g, n=n: i / (1 + weight[n] * f * g) for n in range(2)]
    expected, done = algorithm_1(
        [one[:, 0].tolist() for one in counts], [list(one[:, 1]) for one in counts], models
    )
    found = roll_printed(solos, slowdown)
    np.testing.assert_allclose(found.seconds, expected)
    np.testing.assert_allclose(found.executed, done)
    rolled = found.as_roll(solos)
    assert (np.diff(rolled.edges) > 0).all()
    np.testing.assert_allclose(rolled.place[-1], [one.duration_seconds for one in solos])


def test_what_predicts_nothing_ends(traces: Traces) -> None:
    solos = [a_solo(np.ones((8, 2)), TAU, name=name) for name in "ab"]
    found = roll_printed(solos, lambda n, own, others: np.full(len(own), 1e9))
    assert np.isfinite(found.seconds).all()
    assert found.seconds.max() > 100 * 8
    fitted = learn(RidgeAlignment.paper(counters=("cache_misses",)), Data(traces=traces), seed=0)
    names = fitted.workload_names
    ends = fitted.window(names[:2], "simulated").end_seconds
    assert np.isfinite(ends).all()
    with pytest.raises(UsageError, match="run once"):
        fitted.window(names[:2], "simulated", loop=[False, True])


def test_its_learner_is_plain_ridge(traces: Traces) -> None:
    """On the paper's features and target, every row alike (Sec. IV-B)."""
    from sklearn.linear_model import Ridge

    fitted = learn(RidgeAlignment.paper(counters=("cache_misses",)), Data(traces=traces), seed=0)
    rows = aligned_rows(traced_windows(traces), fitted.solos, **laid("printed"))
    learned = fit_ridge(rows, "linear", 1e-2)
    x = np.concatenate([rows.own, rows.others], axis=1)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = rows.count / rows.period_seconds
    size = y.std()
    plain = Ridge(1e-2 * len(x)).fit(x, (y - y.mean()) / size)
    expected = plain.predict(x) * size + y.mean()
    found = rows.own[:, 0] / learned.slowdown(rows.own, rows.others)
    inside = (found > 0.55 * rows.own[:, 0]) & (found < 0.98 * rows.own[:, 0])
    assert inside.mean() > 0.2
    np.testing.assert_allclose(found[inside], expected[inside], rtol=1e-6)
