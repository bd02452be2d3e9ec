"""What is called safe and is not: counted right, on devices whose law is what it says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from studies.accelerator.decisions import MADE, Decision, MadeDevice, tabulated


def test_wrong_is_of_what_is_called_safe_and_recall_of_what_is() -> None:
    calls = [(True, True), (True, False), (True, True), (False, True), (False, False)]
    decisions = [
        Decision("here", 1.2, {"learned": says, "simulator": True}, true) for says, true in calls
    ]
    found = tabulated(decisions).metrics
    assert found["learned_here_1.2_wrong_ratio"] == pytest.approx(1 / 3)
    assert found["learned_here_1.2_recall_ratio"] == pytest.approx(2 / 3)
    assert found["simulator_here_1.2_wrong_ratio"] == pytest.approx(2 / 5)
    assert found["simulator_here_1.2_recall_ratio"] == 1


def test_made_devices_do_what_their_laws_say() -> None:
    """Alone a run takes its trace and its work on the host; one by one no kernel is stretched, so that two
    together take at most the sum; a law adds to what the trace alone explains."""
    made = MADE[3]
    alone = [made.latency([name], None, "mean")[0] for name in ("w0", "w1")]
    solo = [made.applications[name].solo_seconds for name in ("w0", "w1")]
    np.testing.assert_allclose(alone, solo)
    hosted = MadeDevice("hosted", "concurrent", "per_direction", 0.5, "none", made.seed)
    assert hosted.latency(["w0"], None, "mean")[0] == pytest.approx(1.5 * solo[0])
    for law, number in product(("sum", "number"), (1, 2)):
        one = MadeDevice("more", "concurrent", "per_direction", 0.0, law, 7)
        beside = [f"w{n}" for n in range(1, number + 1)]
        assert one.really("w0", beside).solo_seconds > one.really("w0", []).solo_seconds
    busy = hosted.latency(["w0", "w1"], 0.5, "p95")
    assert len(busy) == 1
    assert busy[0] >= hosted.latency(["w0", "w1"], 0.5, "mean")[0] > solo[0]
