"""Bounds over another mix of names than was measured: against the formulas, and against draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.conformal import (
    Calibration,
    LeftOutRuns,
    NameMix,
    category_of,
    name_codes,
)
from jostle.data import Colocations, Runs
from jostle.errors import UnknownName, UsageError
from tests.limits import mean_limits

PLATFORMS = ("calm", "rough", "wild")
SPREAD = {"calm": 0.02, "rough": 0.2, "wild": 0.6}


class OneSecond:
    """Predicts one second for everything."""

    workload_names, platform_names, notes = ("w", "v"), PLATFORMS, ()

    def predict(self, asked: Colocations) -> np.ndarray:
        return np.ones(len(asked))


def drawn(
    random: np.random.Generator, platform: np.ndarray, window: np.ndarray | None = None
) -> Runs:
    """Runs alone whose errors are as wide as their platform has it."""
    names = [PLATFORMS[p] for p in platform]
    spread = np.array([SPREAD[name] for name in names])
    return Runs.from_columns(
        workload=["w"] * len(names),
        platform=names,
        runtime_seconds=np.exp(random.normal(0.0, spread)),
        window_id=[f"{w}" for w in (np.arange(len(names)) if window is None else window)],
    )


def calibration_of(runs: Runs, by: str = "window") -> Calibration:
    return Calibration.fit(OneSecond(), runs.take([]), runs, unit=by)


def bound_on(found: Calibration, platform: str, confidence: float) -> float:
    asked = Colocations.from_columns(workload=["w"], platform=[platform])
    return float(np.log(found.bound(OneSecond(), asked, confidence).seconds[0]))


def threshold(runs: Runs, mix: NameMix, confidence: float) -> float:
    """The least score that the formula allows, tried one after the other; one run a unit."""
    score = np.log(runs.runtime_seconds)
    of = np.array([runs.colocations.platform_names[p] for p in runs.colocations.platform])
    ratio = {g: float(q / mix.measured[g]) for g, q in mix.shares.items()} if mix.measured else {}
    for t in [*np.sort(score), math.inf]:
        late = {g: int((score[of == g] > t).sum()) for g in mix.shares}
        n = {g: int((of == g).sum()) for g in mix.shares}
        if mix.measured is None:
            over = sum(float(q) * (late[g] + 1) / (n[g] + 1) for g, q in mix.shares.items())
        else:
            heaviest = max(ratio.values())
            over = sum(ratio[g] * late[g] for g in ratio) + heaviest
            over /= sum(ratio[g] * n[g] for g in ratio) + heaviest
        if t < math.inf and t not in score[np.isin(of, list(mix.shares))]:
            continue
        if over <= 1 - confidence + 1e-12:
            return float(t)
    return math.inf


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0, 3.0]), min_size=3, max_size=3).filter(any),
    st.booleans(),
)
def test_the_threshold_is_the_formula_s(seed: int, shares: list[float], is_known: bool) -> None:
    random = np.random.default_rng(seed)
    runs = drawn(random, random.integers(0, 3, int(random.integers(5, 120))))
    measured = {"calm": 0.5, "rough": 0.3, "wild": 0.2} if is_known else None
    mix = NameMix.of("platform", dict(zip(PLATFORMS, shares, strict=True)), PLATFORMS, measured)
    found = calibration_of(runs).over(mix)
    asked = next(iter(mix.shares))
    last = -math.inf
    for confidence in (0.5, 0.77, 0.83, 0.9, 0.95, 0.99):
        bound = bound_on(found, asked, confidence)
        expected = threshold(runs, mix, confidence)
        # A bound is never under the prediction, nor lower than at a lower confidence.
        assert bound == pytest.approx(max(expected, 0.0, last), abs=1e-7)
        last = bound


@pytest.mark.parametrize("is_known", [False, True])
def test_it_holds_over_the_mix_where_the_plain_bound_does_not(is_known: bool) -> None:
    random = np.random.default_rng(5)
    shares, measured = np.array([0.1, 0.2, 0.7]), np.array([0.6, 0.3, 0.1])
    covered = {"plain": [], "over the mix": []}
    known = {p: float(m) for p, m in zip(PLATFORMS, measured, strict=True)} if is_known else None
    for _ in range(300):
        place = random.choice(3, 90, p=measured) if is_known else np.repeat([0, 1, 2], [54, 27, 9])
        plain = calibration_of(drawn(random, place))
        mix = NameMix.of("platform", dict(zip(PLATFORMS, shares, strict=True)), PLATFORMS, known)
        for name, found in (("plain", plain), ("over the mix", plain.over(mix))):
            bound = bound_on(found, "wild", 0.8)
            within = [math.erf(bound / SPREAD[p] / math.sqrt(2)) / 2 + 0.5 for p in PLATFORMS]
            covered[name].append(float(shares @ within))
    assert mean_limits(covered["plain"])[1] < 0.8 <= mean_limits(covered["over the mix"])[1]


def test_units_of_several_strata_are_stood_for_by_one_run_each() -> None:
    """What is measured together shares its luck, so that counting each run would count windows twice."""
    random, spread = np.random.default_rng(3), np.array([0.2, 0.6])
    mix, covered = NameMix.of("workload", {"w": 0.5, "v": 0.5}, ("w", "v")), []
    for _ in range(300):
        luck = random.standard_normal((40, 1))
        runs = Runs.from_columns(
            workload=["w", "v"] * 40,
            platform=["calm"] * 80,
            runtime_seconds=np.exp(luck * spread).ravel(),
            window_id=[f"{w}" for w in range(40) for _ in range(2)],
        )
        found = calibration_of(runs).over(mix)
        asked = Colocations.from_columns(workload=["w"], platform=["calm"])
        assert found.bound(OneSecond(), asked, 0.9).n[0] == 40
        bound = bound_on(found, "calm", 0.9)
        covered.append(np.mean([math.erf(bound / s / math.sqrt(2)) / 2 + 0.5 for s in spread]))
    assert mean_limits(covered)[1] >= 0.9


def test_a_mix_of_one_platform_is_that_platform_s_own_bound() -> None:
    runs = drawn(np.random.default_rng(1), np.repeat([0, 1, 2], 30))
    own = calibration_of(runs.take(np.arange(30, 60)))
    found = calibration_of(runs).over(NameMix.of("platform", {"rough": 2}, PLATFORMS))
    for confidence in (0.5, 0.9, 0.95):
        assert bound_on(found, "rough", confidence) == bound_on(own, "rough", confidence)


def test_what_was_measured_is_what_is_asked_about() -> None:
    """With the same shares on both sides nothing is weighted."""
    runs = drawn(np.random.default_rng(2), np.repeat([0, 1, 2], 40))
    shares = {"calm": 1, "rough": 2, "wild": 5}
    plain, found = calibration_of(runs), calibration_of(runs)
    found = found.over(NameMix.of("platform", shares, PLATFORMS, shares))
    for confidence in (0.5, 0.9, 0.99, 0.995):
        assert bound_on(found, "calm", confidence) == bound_on(plain, "calm", confidence)


def test_what_has_no_share_has_no_bound_and_says_why() -> None:
    runs = drawn(np.random.default_rng(4), np.repeat([0, 1, 2], 40))
    found = calibration_of(runs).over(NameMix.of("platform", {"calm": 1, "wild": 0}, PLATFORMS))
    asked = Colocations.from_columns(workload=["w"] * 2, platform=["wild", "calm"])
    bounds = found.bound(OneSecond(), asked, 0.9)
    assert bounds.outcome.tolist() == ["outside_mix", "guaranteed"]
    assert np.isfinite(bounds.seconds).tolist() == [False, True]
    # No run of a name that has a share: as much of the promise is lost as its share.
    few = calibration_of(runs.take(np.arange(40))).over(
        NameMix.of("platform", {"calm": 0.8, "wild": 0.2}, PLATFORMS)
    )
    bounds = few.bound(OneSecond(), asked, 0.9)
    assert bounds.outcome.tolist() == ["too_few_runs"] * 2
    assert few.bound(OneSecond(), asked, 0.7).is_guaranteed.all()
    with pytest.raises(UsageError, match="mix that was measured"):
        few.bound(OneSecond(), asked, 0.9, tail=True)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"calm": -1.0}, "share of 'calm' is -1.0"),
        ({"calm": math.nan}, "share of 'calm' is nan"),
        ({"calm": math.inf}, "share of 'calm' is inf"),
        ({"calm": "2"}, "share of 'calm' is '2'"),
        ({"calm": 0}, "no platform has a share"),
        ({}, "no platform has a share"),
        ({"cal": 1}, "unknown platform 'cal'"),
    ],
)
def test_shares_that_make_no_sense(shares: dict[str, float], said: str) -> None:
    with pytest.raises((UsageError, UnknownName), match=said):
        NameMix.of("platform", shares, PLATFORMS)
    with pytest.raises(UsageError, match="mix of 'corunner'"):
        NameMix.of("corunner", {"calm": 1}, PLATFORMS)
    with pytest.raises(UsageError, match="none of what was measured"):
        NameMix.of("platform", {"calm": 1, "wild": 1}, PLATFORMS, {"calm": 1})


def test_the_mix_of_a_list_is_taken_for_each_number_of_corunners() -> None:
    asked = Colocations.from_columns(
        workload=["w"] * 4,
        platform=["calm", "calm", "wild", "rough"],
        corunners=[[], ["v"], [], ["v"]],
    )
    mix = NameMix.like("platform", asked, category_of(OneSecond(), asked))
    assert mix.at(0).shares == {"calm": 0.5, "wild": 0.5}
    assert mix.at(1).shares == {"calm": 0.5, "rough": 0.5}
    assert mix.at(2).shares == {}
    runs = drawn(np.random.default_rng(4), np.repeat([0, 1, 2], 40))
    found = calibration_of(runs).over(mix)
    given = calibration_of(runs).over(NameMix.of("platform", {"calm": 1, "wild": 1}, PLATFORMS))
    assert bound_on(found, "calm", 0.9) == bound_on(given, "calm", 0.9)
    alone = Colocations.from_columns(workload=["w"], platform=["rough"])
    assert found.bound(OneSecond(), alone, 0.9).outcome.tolist() == ["outside_mix"]


def test_saved_calibration_keeps_its_names() -> None:
    runs = drawn(np.random.default_rng(6), np.repeat([0, 1, 2], 40))
    found, mix = calibration_of(runs), NameMix.of("platform", {"calm": 1, "wild": 1}, PLATFORMS)
    arrays, document = found.to_arrays()
    read = Calibration.from_arrays(arrays, document)
    assert bound_on(read.over(mix), "calm", 0.9) == bound_on(found.over(mix), "calm", 0.9)
    for name in ("runs.workload", "runs.score"):
        rest = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(ValueError, match=name):
            Calibration.from_arrays(rest, document)


def test_codes_are_of_the_name_alone() -> None:
    assert name_codes(("a", "b")).tolist() == name_codes(("b", "a")).tolist()[::-1]
    assert len(name_codes(())) == 0
    runs = drawn(np.random.default_rng(0), np.array([0, 1]))
    left_out = LeftOutRuns.of(OneSecond(), runs, np.arange(2))
    assert left_out.runs.platform.tolist() == name_codes(("calm", "rough")).tolist()
