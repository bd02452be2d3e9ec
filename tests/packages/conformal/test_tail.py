"""The tail against closed forms and laws whose quantiles are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from jostle.conformal import Calibration
from jostle.conformal._constants import FEWEST_FOR_TAIL as FEWEST
from jostle.conformal._extreme_value import tail_offset
from jostle.data import Colocations, Runs

LAWS = {
    "t": stats.t(3),
    "normal": stats.norm(),
    "exponential": stats.expon(),
    "pareto": stats.genpareto(0.35),
}


@pytest.mark.parametrize("name", LAWS)
def test_one_in_ten_thousand_comes_true_no_more_often(name: str) -> None:
    law = LAWS[name]
    rates = [
        law.sf(tail_offset(np.sort(law.rvs(size=FEWEST, random_state=seed)), 1e-4)) / 1e-4
        for seed in range(4)
    ]
    assert np.mean(rates) <= 1.5
    if name in ("t", "pareto"):  # the others have tails far lighter than the prior, and wide bounds
        assert min(rates) > 0.001


def test_it_never_falls_and_lies_over_all_scores() -> None:
    scores = np.sort(np.random.default_rng(1).standard_t(4, 6000))
    found = [tail_offset(scores, p) for p in (1e-4, 3e-5, 1e-5, 1e-6)]
    assert found == sorted(found)
    assert found[0] >= scores[-1]
    assert tail_offset(np.zeros(6000), 1e-5) == 0.0


class Same:
    """Predicts one second for everything."""

    workload_names, platform_names, notes = ("w",), ("p",), ()

    def predict(self, asked: Colocations) -> np.ndarray:
        return np.ones(len(asked))


def calibrated(n: int) -> Calibration:
    scores = np.random.default_rng(2).standard_t(4, n) * 0.05
    runs = Runs.from_columns(workload=["w"] * n, platform=["p"] * n, runtime_seconds=np.exp(scores))
    return Calibration.fit(Same(), runs.take([]), runs)


def test_the_tail_lies_over_what_was_borrowed_at_a_lower_confidence() -> None:
    """Runs beside another have a heavier tail than runs beside two, which borrow it before their own ends."""
    random = np.random.default_rng(3)
    scores = np.append(0.05 * random.normal(size=FEWEST), 0.05 * random.standard_t(2, 3 * FEWEST))
    beside = [["w", "w"]] * FEWEST + [["w"]] * 3 * FEWEST
    about = {"workload": ["w"] * len(scores), "platform": ["p"] * len(scores)}
    runs = Runs.from_columns(**about, corunners=beside, runtime_seconds=np.exp(scores))
    found = Calibration.fit(Same(), runs.take([]), runs)
    asked = Colocations.from_columns(workload=["w"], platform=["p"], corunners=[["w", "w"]])
    at = (0.999, 0.9997, 0.99985, 0.9999, 0.99999)
    bounds = [found.bound(Same(), asked, one, tail=True) for one in at]
    assert [one.outcome[0] for one in bounds[2:4]] == ["guaranteed_pooled", "model_based"]
    seconds = [one.seconds[0] for one in bounds]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(("n", "outcome"), [(FEWEST, "model_based"), (FEWEST - 1, "too_few_runs")])
def test_only_on_request_from_runs_enough_and_never_as_guaranteed(n: int, outcome: str) -> None:
    calibration, asked = calibrated(n), Colocations.from_columns(workload=["w"], platform=["p"])
    plain = calibration.bound(Same(), asked, 0.99999)
    assert plain.outcome[0] == "too_few_runs"
    assert np.isinf(plain.seconds[0])
    found = calibration.bound(Same(), asked, 0.99999, tail=True)
    assert found.outcome[0] == outcome
    assert not found.is_guaranteed[0]
    assert np.isfinite(found.seconds[0]) == (outcome == "model_based")
    if outcome == "model_based":
        lower = [
            calibration.bound(Same(), asked, c, tail=True) for c in (0.9, 0.999, 0.9998, 0.9999)
        ]
        seconds = [bound.seconds[0] for bound in lower] + [found.seconds[0]]
        assert seconds == sorted(seconds)
        assert lower[1].outcome[0] == "guaranteed"
