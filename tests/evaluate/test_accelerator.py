"""The protocols of the accelerator: parts that can be checked without the published measurements."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from jostle.evaluate._mixes import (
    GPUS_PER_SERVICE,
    INSTANCES_PER_BATCH,
    judge,
    made_up,
    place,
    safe_instances,
)
from jostle.evaluate._processes import Pairs, baselines, fit_processes

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data"))


def world(seed: int = 0) -> tuple[Pairs, np.ndarray]:
    """Pairs that follow the model of processes, with 0.5% noise."""
    random = np.random.default_rng(seed)
    n = 8
    starts, solo = random.uniform(-0.15, 0.15, n), random.uniform(0.5, 3, n)
    delays = random.uniform(0, 0.3, (n, n))
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    corun = solo[i] + 0.05 + np.maximum(0, 0.4 - np.abs(starts[i] - starts[j])) + delays[i, j]
    corun = corun * np.exp(random.normal(0, 0.005, len(corun)))
    return Pairs(tuple(f"p{k}" for k in range(n)), i, j, solo[i], corun), delays


def test_processes_recover_what_made_them() -> None:
    pairs, delays = world()
    test = np.isin(pairs.pair, np.unique(pairs.pair)[::5])
    model = fit_processes(pairs.take(~test), delays)
    held = pairs.take(test)

    def error(seconds: np.ndarray) -> float:
        return float(np.abs(seconds / held.corun - 1).mean())

    others = baselines(pairs.take(~test), held)
    assert error(model.predict(held)) < 0.02
    assert error(model.predict(held)) < 0.5 * error(others["constant"])
    again = fit_processes(pairs.take(~test), delays)
    np.testing.assert_array_equal(model.predict(held), again.predict(held))


def test_a_process_never_seen_gets_the_median_start() -> None:
    pairs, delays = world()
    test = (pairs.target == 0) | (pairs.other == 0)
    model = fit_processes(pairs.take(~test), delays)
    assert model.starts[0] == np.median(model.starts[1:])


def test_safe_numbers_stop_at_the_first_unsafe_one() -> None:
    slow = np.array([[[1.0, 1.1, 1.6, 1.2], [1.0, 1.0, 1.0, 1.0]]])
    assert safe_instances(slow, 0.8).tolist() == [[1, 3]]


def test_placing_keeps_to_gpus_and_instances() -> None:
    pytest.importorskip("scipy")
    fits = np.array([[15, 2, 0], [15, 0, 1]])
    gpus = place(fits)
    assert (gpus.sum(axis=1) <= GPUS_PER_SERVICE).all()
    assert ((gpus * fits).sum(axis=0) <= INSTANCES_PER_BATCH).all()
    # 66 GPUs take all 990 of the first that fit; the first service's others take the second, the other's
    # the third: best is to give the scarce first to the service that has least else.
    assert (gpus * fits).sum() == 990 + max(2 * 100 + 34, 2 * 34 + 100, 2 * 67 + 67)


def test_judging_counts_gpus() -> None:
    gpus, fits = np.array([[3, 1]]), np.array([[2, 5]])
    truth = {(0, 0, 2): np.array([1.0, 1.0]), (0, 1, 5): np.array([1.0, 1.3])}
    found = judge("x", 0.8, gpus, fits, truth)
    assert found.utilisation_ratio == pytest.approx(11 / 1500)
    assert found.violations_ratio == pytest.approx(0.5 / 4)
    assert found.worst_ratio == pytest.approx(1 - 1 / (1.3 * 0.8))


def test_made_up_applications_last_as_long_as_said() -> None:
    for name, seconds in (("asr", 0.042), ("pf-ex", 0.02)):
        assert made_up(name).solo_seconds == pytest.approx(seconds, rel=0.05)


@pytest.mark.data
@pytest.mark.skipif(
    not (DATA / "v100_interference").is_dir(), reason=f"no public measurements in {DATA}"
)
def test_v100_rows() -> None:
    from jostle.evaluate import evaluate_accelerator_v100

    metrics = evaluate_accelerator_v100(DATA / "v100_interference").metrics
    assert metrics["rows"] == 23
    assert metrics["flagged_rows"] == 8
    assert metrics["within_5_percent_rows"] == 15
    assert metrics["three_resources_within_5_percent_rows"] == 9


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs the extra simulate")
def test_the_same_seed_gives_the_same_application() -> None:
    assert made_up("kms", 3).tasks == made_up("kms", 3).tasks
