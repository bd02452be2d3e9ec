"""The protocols of the accelerator: parts that can be checked without the published measurements."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from studies.accelerator import cluster
from studies.accelerator.decisions import Decision, tabulated
from studies.accelerator.errors import Pairs, baselines
from studies.accelerator.prophets import made_up
from studies.worlds.made_devices import MADE, MadeDevice

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("JOSTLE_DATA", ROOT.parent / "shared" / "data"))


def test_rules_on_what_they_are_right_about() -> None:
    random = np.random.default_rng(0)
    n = 8
    solo, effects = random.uniform(0.5, 3, n), random.uniform(0, 0.5, (2, n))
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    together = solo[i] + effects[0][i] + effects[1][j]
    test = np.isin(np.minimum(i, j) * n + np.maximum(i, j), [1, 13, 30])
    names = tuple(f"p{k}" for k in range(n))
    known, left = (
        Pairs(names, i[rows], j[rows], solo[i[rows]], together[rows]) for rows in (~test, test)
    )
    found = baselines(known, left)
    off = {name: float(np.abs(s / left.corun - 1).mean()) for name, s in found.items()}
    assert off["additive"] < 0.01 < off["constant"] < off["solo"]


def test_safe_numbers_stop_at_the_first_unsafe_one() -> None:
    slow = np.array([[[1.0, 1.1, 1.6, 1.2], [1.0, 1.0, 1.0, 1.0]]])
    assert cluster.safe_instances(slow, 0.8).tolist() == [[1, 3]]


def test_placing_keeps_to_gpus_and_instances() -> None:
    fits = np.array([[15, 2, 0], [15, 0, 1]])
    gpus = cluster.place(fits)
    assert (gpus.sum(axis=1) <= cluster.GPUS_PER_SERVICE).all()
    assert ((gpus * fits).sum(axis=0) <= cluster.INSTANCES_PER_BATCH).all()
    # 66 GPUs take all 990 of the first that fit; the first service's others take the second, the other's
    # the third: best is to give the scarce first to the service that has least else.
    assert (gpus * fits).sum() == 990 + max(2 * 100 + 34, 2 * 34 + 100, 2 * 67 + 67)


def test_assessing_counts_gpus() -> None:
    gpus, fits = np.array([[3, 1]]), np.array([[2, 5]])
    truth = {(0, 0, 2): np.array([1.0, 1.0]), (0, 1, 5): np.array([1.0, 1.3])}
    found = cluster.assess("x", 0.8, gpus, fits, truth)
    assert found.utilisation_ratio == pytest.approx(11 / 1500)
    assert found.violations_ratio == pytest.approx(0.5 / 4)
    assert found.worst_ratio == pytest.approx(1 - 1 / (1.3 * 0.8))


def test_the_study_of_pairs_against_what_happens() -> None:
    class World:
        services = batches = (made_up("dig"), made_up("pos"))

        def slowdowns(self, s: int, b: int, k: int) -> np.ndarray:
            return np.array([1 + 0.2 * k, 1 + 0.2 * k])

    predicted = np.ones((2, 2, 16)) + 0.14 * np.arange(16)
    study = cluster.study_pairs(predicted, World())  # pyright: ignore[reportArgumentType]
    assert study.oracle.tolist() == [[5, 5], [5, 5]]
    assert study.fits.tolist() == [[7, 7], [7, 7]]
    np.testing.assert_allclose(study.reached, 2.4 / 2)


def test_wrong_is_of_what_is_called_safe_and_recall_of_what_is() -> None:
    calls = [(True, True), (True, False), (True, True), (False, True), (False, False)]
    decisions = [
        Decision("here", 1.2, {"learned": says, "simulator": True}, true) for says, true in calls
    ]
    found = tabulated(decisions).metrics
    assert found["learned_here_1.2_wrong_ratio"] == pytest.approx(1 / 3)
    assert found["learned_here_1.2_recall_ratio"] == pytest.approx(2 / 3)
    assert found["simulator_here_1.2_wrong_ratio"] == pytest.approx(2 / 5)


def test_made_devices_do_what_their_laws_say() -> None:
    """Alone a run takes its trace and its work on the host; a law adds to what the trace alone explains."""
    made = MADE[3]
    solo = made.applications["w0"].solo_seconds
    np.testing.assert_allclose(made.latency(["w0"]), solo)
    hosted = MadeDevice("hosted", "concurrent", "per_direction", 0.5, "none", made.seed)
    assert hosted.latency(["w0"])[0] == pytest.approx(1.5 * solo)
    one = MadeDevice("more", "concurrent", "per_direction", 0.0, "number", 7)
    longer = one.really("w0", ["w1", "w2"]).solo_seconds / one.really("w0", []).solo_seconds
    assert 1 < longer <= 1 + 0.05 * 2**1.5


@pytest.mark.data
@pytest.mark.skipif(
    not (DATA / "v100_interference").is_dir(), reason=f"no public measurements in {DATA}"
)
def test_v100_rows() -> None:
    from studies.accelerator.v100 import evaluate_accelerator_v100

    metrics = evaluate_accelerator_v100(DATA / "v100_interference").metrics
    assert metrics["rows"] == 23
    assert metrics["flagged_rows"] == 8
    assert metrics["within_5_percent_rows"] == 15
