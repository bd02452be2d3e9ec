"""Answers moved by what drifted: of every name by its own, bounds at every confidence by theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.conformal import Bounds
from jostle.data import Colocations
from jostle.models._drift_adjusted import DriftCorrection
from jostle.models._residual_baseline import FLEET, LEVELS, KindNames

PLATFORMS, WORKLOADS = ("x:a", "y:a", "x:b", "y:c"), ("u", "v", "w")
KINDS = KindNames(
    {"device": ("a", "b", "c"), "platform": PLATFORMS, "workload": WORKLOADS},
    np.array([0, 0, 1, 2]),
)
CONFIDENCES = np.array([0.5, 0.9, 0.99])
# Of each kind {code: (shift, how much further bounds are moved)}.
OFF = {
    FLEET: {},
    "device": {1: (0.1, (0.0, 1.0, 3.0)), 2: (-0.3, (0.0, 0.0, 0.0))},
    "platform": {0: (0.2, (0.0, 2.0, 1.5))},
    "workload": {1: (0.4, (0.25, 0.5, 5.0))},
}
SPREAD = np.linspace(0.02, 0.2, len(PLATFORMS) * len(WORKLOADS))
ASKED = Colocations.from_columns(
    workload=np.tile(WORKLOADS, len(PLATFORMS)), platform=np.repeat(PLATFORMS, len(WORKLOADS))
)


@pytest.fixture(scope="module")
def moved() -> DriftCorrection:
    off = {
        KINDS.first[LEVELS.index(kind)] + code: moved
        for kind, codes in OFF.items()
        for code, moved in codes.items()
    }
    levels = sorted(off)
    shifts, extra = (np.array([off[level][k] for level in levels]) for k in (0, 1))
    usual: Any = None  # what spreads are is told by each test
    return DriftCorrection(KINDS, np.array(levels), shifts, extra, CONFIDENCES, usual)


def names_off(place: int) -> list[tuple[float, tuple[float, ...]]]:
    """What has moved of the names of a row of ASKED."""
    platform, workload = divmod(place, len(WORKLOADS))
    device = int(KINDS.device_of_platform[platform])
    found = (
        OFF["device"].get(device),
        OFF["platform"].get(platform),
        OFF["workload"].get(workload),
    )
    return [one for one in found if one is not None]


def test_answers_move_by_the_sum_of_what_their_names_did(moved: DriftCorrection) -> None:
    log_ratio, is_off = moved.log_ratio(ASKED)
    expected = [sum(shift for shift, _ in names_off(place)) for place in range(len(ASKED))]
    assert log_ratio == pytest.approx(np.array(expected))
    assert is_off.tolist() == [bool(names_off(place)) for place in range(len(ASKED))]


@pytest.mark.parametrize("confidence", [0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_bounds_move_by_the_most_of_their_names_at_that_confidence(
    moved: DriftCorrection, confidence: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Straight lines in the log of what is missed, and never less at a higher confidence."""
    n = len(ASKED)
    seconds = np.arange(1.0, n + 1)
    seconds[4] = np.inf
    words, none = np.full(n, "guaranteed"), np.zeros(n, np.int64)
    bounds = Bounds(seconds, words, words, none, none, confidence, words)

    def spread(model: Any, usual: Any, asked: Colocations) -> np.ndarray:
        workload, platform, _ = asked.recode(WORKLOADS, PLATFORMS)
        return SPREAD[platform * len(WORKLOADS) + workload]

    monkeypatch.setattr("jostle.models._drift_adjusted.usual_spread", spread)
    found = moved.bounded(None, ASKED, bounds)
    for place in range(n):
        off = names_off(place)
        if place == 4 or not off:
            assert found.seconds[place] == seconds[place]
            assert found.outcome[place] == "guaranteed"
            continue
        extra = np.maximum.accumulate(np.max([one[1] for one in off], axis=0))
        at = -np.log(1 - confidence)
        known = -np.log(1 - CONFIDENCES)
        after = min(max(int(np.searchsorted(known, at)), 1), 2)
        share = min(max((at - known[after - 1]) / (known[after] - known[after - 1]), 0.0), 1.0)
        more = (1 - share) * extra[after - 1] + share * extra[after]
        shift = sum(one[0] for one in off)
        assert found.seconds[place] == pytest.approx(
            seconds[place] * np.exp(shift + more * SPREAD[place])
        )
        assert found.outcome[place] == "adapting"
