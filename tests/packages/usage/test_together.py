"""Several workloads together: starts, slowdowns, dependence; checked against drawing them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Traces, write_traces
from jostle.errors import BadData, NotEnoughRuns, UsageError
from jostle.usage import Forecast, Joining, Snapshots, Together
from tests.packages.usage.conftest import a_trace

WINDOWS = 200


def pair(strength: float, seed: int = 0) -> Traces:
    """Windows of a and b, log-normal rates with this correlation of their logarithms; 4 samples of 0.1 s."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(WINDOWS):
        first = random.standard_normal()
        second = strength * first + np.sqrt(1 - strength**2) * random.standard_normal()
        for name, score in (("a", first), ("b", second)):
            counts = [float(np.exp(0.5 * score))] * 4
            one = a_trace(number, {"x": counts})
            made.append(
                replace(one, run_id=f"{name}{number}", workload=name, window_id=f"w{number}")
            )
    return Traces.from_traces(made)


def each(traces: Traces) -> list[Forecast]:
    ids = traces.run_ids
    return [jostle.forecast(traces.select([i for i in ids if i.startswith(name)])) for name in "ab"]


def true_ratio(strength: float, capacity: float) -> float:
    random = np.random.default_rng(99)
    first = random.standard_normal(400_000)
    second = strength * first + np.sqrt(1 - strength**2) * random.standard_normal(400_000)
    return float(np.mean(10 * np.exp(0.5 * first) + 10 * np.exp(0.5 * second) > capacity))


@pytest.mark.parametrize("strength", [-0.8, 0.0, 0.9])
def test_dependence_as_drawn(strength: float) -> None:
    members = each(pair(strength))
    together = Together(members, dependence="measured")
    for capacity in (25.0, 40.0):
        found = together.at(0.25).exceedance_ratio({"x": capacity})
        truth = true_ratio(strength, capacity)
        # 200 windows: a share is known to a few hundredths.
        assert found == pytest.approx(truth, abs=3 * np.sqrt(truth * (1 - truth) / WINDOWS) + 0.01)
    law = together.at(0.25)
    np.testing.assert_allclose(law.mean, sum(one.at(0.25).mean for one in members), rtol=1e-3)
    assert law.atoms.mean() == pytest.approx(law.mean[0], rel=0.02)


def test_few_runs_leave_open_what_they_did_not_show() -> None:
    """Three workloads of five runs, normal and known: new sums stay below the 95% quantile that is claimed,
    on the mean over draws of the runs, as often or a little more. And two of one workload are alike."""
    random, kept = np.random.default_rng(3), []

    def constant(row: np.ndarray) -> Forecast:
        return jostle.forecast(Snapshots.from_arrays([0.0, 1.0], [row[:, None]] * 2, ["x"]))

    for number in range(300):
        rows = 10 + random.standard_normal((3, 5))
        told = Together([constant(row) for row in rows], size=1000, seed=number).at(0.0)
        assert told.mean[0] == pytest.approx(rows.mean(axis=1).sum())
        kept.append(NormalDist(30, 3**0.5).cdf(float(told.quantile(0.95)[0])))
    assert 0.945 < np.mean(kept) < 0.985
    one, same = constant(np.arange(1.0, 6)), constant(np.arange(1.0, 6))
    alike, apart = (Together([one, two]).at(0.0).atoms.std() for two in (one, same))
    assert alike > 1.04 * apart


def ramp(rates: list[float], runs: int = 12) -> Forecast:
    """Runs that all do the same: rates in samples of 1 s."""
    return jostle.forecast(
        Traces.from_traces([a_trace(n, {"x": rates}, seconds=1.0) for n in range(runs)])
    )


def test_starts_and_ends() -> None:
    long, short = ramp([1.0] * 10), ramp([10.0] * 2)
    together = Together([long, Joining(short, start_seconds=4.0)])
    for moment, expected in ((3.5, 1), (5.5, 11), (6.5, 1), (9.5, 1), (30.0, 0), (-1.0, 0)):
        assert together.at(moment).mean[0] == pytest.approx(expected)


def test_slowdowns_stretch_time_and_lower_rates() -> None:
    one, other = ramp([4.0] * 4 + [8.0] * 4), ramp([2.0] * 4)
    together = Together(
        [one, other], slowdowns=lambda going: [1.0 if len(going) == 1 else 2.0] * len(going)
    )
    # Until 8 s both run at half speed; then the first is at 4 s of its own time, alone.
    for moment, expected in ((2.0, 3.0), (7.5, 3.0), (9.5, 8.0), (11.5, 8.0), (12.5, 0.0)):
        assert together.at(moment).mean[0] == pytest.approx(expected), moment
    fixed = Together([one, other], slowdowns=[4.0, 1.0])
    assert fixed.at(3.0).mean[0] == pytest.approx(1.0 + 2.0)
    # All work is done, whatever the slowdown: the mean rate over time adds up to it.
    times = np.arange(0.25, 40, 0.5)
    done = sum(together.at(t).mean[0] for t in times) * 0.5
    assert done == pytest.approx(4 * 4 + 4 * 8 + 4 * 2, rel=0.06)


def slowed(going: Sequence[int]) -> list[float]:
    """As a model answers: the second suffers more beside the first, and nobody alone."""
    return [1.0] if len(going) == 1 else [1.25, 2.0]


@pytest.mark.parametrize("strength", [-0.7, 0.8])
def test_slowdowns_and_dependence_as_simulated(strength: float) -> None:
    """Every pair of runs, moved on in small steps at its own slowdown: P(over) of the sum and its mean."""
    random = np.random.default_rng(5)
    count, length, start = 200, 8, 2.0
    scores = random.multivariate_normal([0, 0], [[1, strength], [strength, 1]], count)
    # Rates by whole seconds of a run's own time: a level that steps, and each run's factor.
    steps = np.array([[4.0, 4, 8, 8, 2, 2, 6, 6], [1.0, 1, 3, 3, 5, 5, 9, 9]])
    rates = steps[:, None, :] * np.exp(0.4 * scores.T)[:, :, None]
    members = []
    for number, each in enumerate(rates):
        runs = [
            replace(a_trace(n, {"x": row.tolist()}, seconds=1.0), window_id=f"w{n}")
            for n, row in enumerate(each)
        ]
        made = jostle.forecast(Traces.from_traces(runs), jostle.Bridge("ot"))
        members.append(Joining(made, number * start))
    together = Together(members, dependence="measured", slowdowns=slowed)
    done, step = np.zeros(2), 1e-3
    asked = {1.45, 4.0, 5.9, 8.9, 11.0, 13.2}  # where both are on a level
    for tick in range(1, 14_000):
        now = tick * step
        going = [i for i in range(2) if i * start < now and done[i] < length - 1e-9]
        ratios = np.full(2, np.inf)
        ratios[going] = slowed(going) if going else []
        if round(now, 3) in asked:
            place = np.minimum(done.astype(int), length - 1)
            total = rates[0, :, place[0]] / ratios[0] + rates[1, :, place[1]] / ratios[1]
            found = together.at(now)
            assert found.mean[0] == pytest.approx(total.mean(), rel=0.02), now
            for capacity in np.quantile(total, [0.5, 0.9, 0.98]) * (1 + 1e-9):
                share = float((total > capacity).mean())
                over = found.exceedance_ratio({"x": capacity})
                assert over == pytest.approx(share, abs=0.03), (now, capacity)
        done += step / ratios


def test_slowdowns_of_a_model_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model answers for those that run, beside each other over alone, is what each is slowed by; in a
    campaign, what the model says of that one."""
    asked: list[tuple[str, ...]] = []
    slower = {"usual": (1.5, 2.0), "march": (2.5, 3.0)}

    class Known:
        predictor, campaign = SimpleNamespace(platform_names=("p",)), "usual"

        def for_campaign(self, name: str) -> Known:
            about = Known()
            about.campaign = name
            return about

        def predict(self, both: jostle.Colocations) -> np.ndarray:
            names = [both.workload_names[i] for i in both.workload]
            asked.append(tuple(names))
            beside = both.number_of_corunners > 0
            alone = np.array([{"a": 3.0, "b": 5.0}[name] for name in names])
            ratios = dict(zip("ab", slower[self.campaign], strict=True))
            return np.where(beside, alone * [ratios[n] for n in names], alone)

    monkeypatch.setattr(jostle, "load", lambda path: Known())
    write_traces(tmp_path / "fleet", pair(0.5))
    words = ["forecast", str(tmp_path / "fleet"), "-w", "a", "-w", "b", "--capacity", "x=15"]
    by_model, in_march, found = ["--model", str(tmp_path)], ["--campaign", "march"], []
    by_hand = [["--slowdown", str(a), "--slowdown", str(b)] for a, b in slower.values()]
    for more in (by_model, by_hand[0], [*by_model, *in_march], by_hand[1]):
        assert exit_code([*words, "--at", "0.25", *more, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["total"])
    assert found[0] == found[1] != found[2] == found[3]
    assert asked
    sums = []
    for more in ([], by_model, [*by_model, *in_march]):
        assert (
            exit_code(["limit", *words[1:6], "--component", "x", "-c", "0.5", *more, "--json"]) == 0
        )
        sums.append(json.loads(capsys.readouterr().out)["limit"])
    assert sums[0] > sums[1] > sums[2]  # of counts per second there are fewer
    for verb in ([*words, "--at", "0.25"], ["limit", *words[1:6]]):
        assert exit_code([*verb, *in_march]) == 2
        assert "a campaign is one of a model's runs" in capsys.readouterr().err
    unknown = ["--model", str(tmp_path), "--slowdown", "1", "--slowdown", "2"]
    assert exit_code([*words, "--at", "0.25", *unknown, "--json"]) == 2


def test_a_member_may_have_been_recorded_on_another_core(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [replace(t, core=int(t.workload == "b")) for t in pair(0.9)]
    moved, plain = each(Traces.from_traces(traces)), each(pair(0.9))
    found = [Together(one, dependence="measured").at(0.2) for one in (moved, plain)]
    np.testing.assert_array_equal(found[0].mean, found[1].mean)
    write_traces(tmp_path, Traces.from_traces(traces))
    words = [str(tmp_path), "-w", "a", "-w", "b"]
    assert exit_code(["forecast", *words, "--at", "0.25", "--capacity", "x=40", "--json"]) == 0
    assert exit_code(["limit", *words[:1], "-w", "b", "--component", "x", "--json"]) == 0
    capsys.readouterr()
    with pytest.raises(BadData, match="core 1 has no snapshots; known: 0"):
        Together([Joining(plain[0], core=1)])


def test_odd_members_are_refused(tmp_path: Path) -> None:
    members = each(pair(0.5))
    with pytest.raises(UsageError, match="is not known"):
        Together(members, dependence="related")
    with pytest.raises(UsageError, match="no members"):
        Together([])
    with pytest.raises(UsageError, match="2 members"):
        Together(members, slowdowns=[1.0])
    for slow in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="above 0"):
            Together(members, slowdowns=[slow, 1.0]).at(0.2)
    with pytest.raises(UsageError, match="not a time"):
        Together(members).at(float("nan"))
    other = jostle.forecast(Traces.from_traces([a_trace(n, {"y": [1.0] * 4}) for n in range(4)]))
    with pytest.raises(BadData, match="cannot be added"):
        Together([members[0], other])
    alone = [replace(t, window_id=None) for t in pair(0.5) if t.workload == "a"]
    with pytest.raises(NotEnoughRuns, match="do not share 8 windows"):
        Together([members[1], jostle.forecast(Traces.from_traces(alone))], dependence="measured")
    members[0].save(tmp_path / "kept", atoms=5)
    with pytest.raises(NotEnoughRuns, match="forecast from traces"):
        Together([Forecast.load(tmp_path / "kept"), members[1]], dependence="measured")
    endless = [replace(t, runtime_seconds=float("nan")) for t in pair(0.5) if t.workload == "a"]
    with pytest.raises(UsageError, match="reaches to"):
        Together([jostle.forecast(Traces.from_traces(endless))]).at(9.0)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(tmp_path / "fleet", pair(0.9))
    words = ["forecast", str(tmp_path / "fleet"), "-w", "a", "-w", "b", "--capacity", "x=40"]
    found = {}
    for how in ("independent", "measured"):
        assert exit_code([*words, "--at", "0.25", "--dependence", how, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        found[how] = document["total"][0]["exceedance_ratio"]["x"]
    assert found["independent"] < found["measured"]
    more = ["--start", "0", "--start", "0.2", "--slowdown", "1", "--slowdown", "2"]
    assert exit_code([*words, "--at", "0.25", "--json"]) == 0  # they share windows
    document = json.loads(capsys.readouterr().out)
    assert document["total"][0]["exceedance_ratio"]["x"] == found["measured"]
    assert exit_code([*words, "--at", "0.3", *more, "--dependence", "independent"]) == 0
    assert "all 2 together, as independent ones" in capsys.readouterr().out
    assert exit_code([*words, "--at", "0.3", *more[:2], "--json"]) == 2
    assert exit_code([*words, "--at", "0.3", "--dependence", "none", "--json"]) == 2
