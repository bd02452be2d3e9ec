"""Limits on the peaks of runs: ranks against brute force, shares against their law, and odd runs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import Traces, write_traces
from jostle.errors import JostleError, NotEnoughRuns, UnknownName, UsageError
from jostle.operations.forecasts.limit import limit
from jostle.usage import Peaks, Residents
from jostle.usage.limits._likeness import unlikeness
from jostle.usage.limits._rank_limits import (
    limit_of,
    limit_of_rest,
    over_limits,
    over_of_rest,
    runs_needed,
)
from tests.limits import share_limits
from tests.packages.usage.conftest import a_trace, nobody, together

MEMORY = "resident_bytes"


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("open_runs", [0, 1, 3])
def test_how_many_runs_are_needed(confidence: float, open_runs: int) -> None:
    n = runs_needed(confidence, open_runs)
    for count in range(max(open_runs, 1), n + 20):
        is_open = np.arange(count) < open_runs
        outcome = limit_of(np.full(count, 5.0) - is_open, is_open, confidence).outcome
        assert (outcome == "guaranteed") == (count >= n), count


def test_a_limit_is_the_rank_of_all_orders() -> None:
    """Of n + 1 peaks in any order the last stays below the limit of the others as often as the rank says."""
    random = np.random.default_rng(0)
    for n, confidence in ((4, 0.8), (9, 0.9), (12, 0.5)):
        peaks = random.permutation(n + 1).astype(float)
        inside = [
            peaks[i] <= limit_of(np.delete(peaks, i), nobody(n), confidence).value
            for i in range(n + 1)
        ]
        rank = -(-(n + 1) * round(100 * confidence) // 100)
        assert sum(inside) == rank
        ranked = limit_of(peaks, nobody(n + 1), confidence)
        assert limit_of(peaks, nobody(n + 1), ranked.confidence_now).outcome == "guaranteed"
        higher = ranked.confidence_now + 1e-4
        assert limit_of(peaks, nobody(n + 1), higher).outcome == "too_few_runs"


def test_open_runs_are_never_small() -> None:
    peaks, is_open = np.arange(1.0, 21.0), np.arange(20) == 2
    assert limit_of(peaks, nobody(20), 0.9).value == 19
    # One of twenty may have been anything: it counts as the highest.
    assert limit_of(peaks, is_open, 0.9).value == 20
    is_open[[7, 9]] = True
    told = limit_of(peaks, is_open, 0.9)
    assert told.outcome == "censored"
    assert told.value == 20
    is_open[-3:] = True
    assert limit_of(peaks, is_open, 0.9).outcome == "too_few_runs"


def test_what_open_runs_weigh_goes_to_higher_ones() -> None:
    """At least what Kaplan and Meier's estimate with one more run at infinity says, and near it."""
    higher = []
    random = np.random.default_rng(1)
    for _ in range(50):
        n = int(random.integers(5, 30))
        peaks, is_open = random.permutation(100)[:n].astype(float), random.random(n) < 0.4
        told = limit_of(peaks, is_open, 0.7)
        if told.outcome == "guaranteed":
            continue
        survival, expected = 1.0, np.inf
        for place, row in enumerate(np.argsort(peaks)):
            if not is_open[row]:
                survival *= 1 - 1 / (n + 1 - place)
                if 1 - survival >= 0.7 - 1e-12:
                    expected = peaks[row]
                    break
        assert told.value >= expected
        higher.append((peaks <= told.value).mean() - (peaks <= expected).mean())
    assert 0 < np.mean(higher) < 0.1


@pytest.mark.parametrize("n", [20, 60, 200])
def test_limits_from_runs_that_were_cut_short_hold_where_there_are_any(n: int) -> None:
    random, over, without = np.random.default_rng(n), [], 0
    for _ in range(400):
        whole, end = random.gamma(4, size=n), random.uniform(4, 16, n)
        value = limit_of(np.minimum(whole, end), whole > end, 0.9).value
        if np.isfinite(value):
            # Of a gamma law of shape 4.
            over.append(np.exp(-value) * (1 + value + value**2 / 2 + value**3 / 6))
        else:
            without += 1
    assert np.mean(over) - 5 * np.std(over) / np.sqrt(len(over)) < 0.1
    assert without <= (400, 100, 4)[(20, 60, 200).index(n)]


def by_trying(left: np.ndarray, level: np.ndarray, peak: np.ndarray, rank: int) -> float:
    """The highest of very many values that the score that is narrowest with it among all does not reject."""
    one = 1 + 0 * peak
    values = np.linspace(left.min() / 2, 3 * left.max(), 40_001)
    every = np.column_stack([np.tile(left, (len(values), 1)), values])
    widths, good = [], []
    for shift, unit in ((0 * peak, one), (peak, one), (level, one), (0 * peak, peak)):
        scores = (every - shift) / unit
        quantile = np.sort(scores, axis=1)[:, rank - 1]
        widths.append((shift + unit * quantile[:, None]).mean(1))
        good.append(scores[:, -1] <= quantile + 1e-9)
    is_narrowest = widths <= np.min(widths, axis=0) + 1e-9
    return float(values[(is_narrowest & good).any(0)].max())


@pytest.mark.parametrize("seed", range(12))
def test_what_is_left_is_limited_as_if_every_value_were_tried(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(5, 15))
    size = np.exp(0.5 * random.standard_normal(n + 1))
    peak = size * random.uniform(0.5, 1, n + 1) + random.uniform(0, seed / 6)
    level = peak * random.uniform(0.6, 1, n + 1)
    left = (size * random.gamma(20, 1 / 20, n + 1))[:-1] + (seed % 3) * level[:-1]
    told = limit_of_rest(left, nobody(n), level, peak, 0.8)
    rank = -(-(n + 1) * 8 // 10)
    step = 3 * left.max() / 40_000
    assert told.value == pytest.approx(by_trying(left, level, peak, rank), abs=2 * step)
    low, high = over_of_rest(left, nobody(n), level, peak, 0.8, told.value * 1.001)
    assert high <= 1 - rank / (n + 1) + 1 / (n + 1) + 1e-12
    assert high - low == pytest.approx(1 / (n + 1))


def test_the_probability_to_go_over_is_enclosed() -> None:
    peaks = np.arange(1.0, 10.0)
    assert over_limits(peaks, nobody(9), 7.5) == (0.2, pytest.approx(0.3))
    assert over_limits(peaks, nobody(9), 100.0) == (0.0, pytest.approx(0.1))
    assert over_limits(peaks, peaks == 1, 7.5) == (0.2, pytest.approx(0.4))
    assert over_limits(peaks, peaks == 7, 7.0) == (0.2, pytest.approx(0.4))
    assert over_limits(np.zeros(0), nobody(0), 1.0) == (0.0, 1.0)


def test_how_a_trace_is_read() -> None:
    made = [a_trace(n, {MEMORY: [1.0, 5.0 + n, 2.0], "calls": [1.0, 2.0, 3.0]}) for n in range(9)]
    made.append(
        a_trace(20, {MEMORY: [9.0]}, runtime_seconds=float("nan"))
    )  # not watched to its end
    made.append(a_trace(21, {MEMORY: [9.0]}, runtime_seconds=5.0))
    made.append(a_trace(22, {"calls": [9.0]}))
    made.append(a_trace(23, {MEMORY: [float("nan"), 4.0]}))
    made.append(a_trace(24, {MEMORY: [1.0, 2.0]}, runtime_seconds=0.29))  # its end is in no sample
    peaks = Peaks.of(Traces.from_traces(made), at_limit=["r1"], had=13.0)
    assert peaks.component == MEMORY
    assert [one.values.max() for one in peaks.runs] == [*range(5, 14), 9, 9, 4, 2]
    assert [n for n, one in enumerate(peaks.runs) if one.is_open] == [1, 8, 9, 10, 11]
    assert peaks.notes == ("1 runs have no sample of resident_bytes",)
    calls = Peaks.of(Traces.from_traces(made), "calls")
    assert calls.runs[0].values.max() == pytest.approx(30)  # a second
    with pytest.raises(UnknownName, match="r99"):
        Peaks.of(Traces.from_traces(made), at_limit=["r99"])
    with pytest.raises(UnknownName, match="counter"):
        Peaks.of(Traces.from_traces(made), "nothing")
    with pytest.raises(NotEnoughRuns, match="core 4"):
        Peaks.of(Traces.from_traces(made), core=4)
    two = Traces.from_traces([a_trace(0, {"calls": [1.0], "loads": [1.0]})])
    with pytest.raises(UsageError, match="several counters"):
        Peaks.of(two)


def test_runs_that_ended_before_are_no_guide_to_what_is_left() -> None:
    short = [{"values": [1.0] * 3} for _ in range(50)]
    long = [{"values": [1.0] * 3 + [7.0 + n]} for n in (4, 0, 7, 2, 8, 1, 5, 3, 6)]
    peaks = Peaks.from_items([*short, *long, {"values": [1.0] * 3, "end": "now"}])
    told = peaks.ranked(0.9)
    assert (told.runs, told.value) == (9, 15.0)
    later = Peaks.from_items([*short, *long, {"values": [1.0] * 9, "end": "now"}])
    assert (later.ranked(0.9).outcome, later.ranked(0.9).runs) == ("too_few_runs", 0)
    assert later.over(5.0, 0.9) == (0.0, 1.0)
    with pytest.raises(UsageError, match="item 1"):
        Peaks.from_items([{"values": [1.0], "end": "now"}] * 2)


def test_a_run_unlike_the_others_is_said_to_be() -> None:
    random = np.random.default_rng(3)
    times = np.arange(12)
    runs = [{"values": (100 + times + random.normal(0, 1, 12)).tolist()} for _ in range(19)]
    other = {"values": [3.0, 900.0, 4.0, 800.0], "end": "now"}
    answer = limit.of(Peaks.from_items([*runs, other]))
    assert answer.unlike_ratio == pytest.approx(1 / 20)
    assert "unlike the 19 recorded runs" in answer.unlike
    assert any("unlike" in text for text in answer.report().notes)
    few = limit.of(Peaks.from_items([*runs[:5], other]))
    assert few.unlike is not None
    like = {"values": (100 + times[:4] + random.normal(0, 1, 4)).tolist(), "end": "now"}
    assert limit.of(Peaks.from_items([*runs[:5], like])).unlike is None
    assert limit.of(Peaks.from_items(runs)).unlike_ratio is None
    # Of several residents the one farthest from its own runs is told of.
    farther = {"values": [3.0, 9e5, 4.0, 8e5], "end": "now"}
    made = [Peaks.from_items([*runs, one]) for one in (other, farther, like)]
    told = Residents([*made, Peaks.from_items(runs)]).unlikeness()
    assert told == made[1].unlikeness()
    assert Residents([Peaks.from_items(runs)]).unlikeness() is None


def test_like_runs_are_called_unlike_as_seldom_as_asked() -> None:
    random = np.random.default_rng(4)
    draws = 400
    walks = random.standard_normal((draws, 20, 15, 2)).cumsum(axis=2)
    told = [unlikeness(one[:-1], one[-1]).p_ratio for one in walks]
    low, high = share_limits(draws, 0.05)
    assert low <= np.mean(np.array(told) <= 0.05) <= high


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [a_trace(n, {MEMORY: [1e9, 2e9 + n, 1e9]}) for n in range(5)]
    write_traces(tmp_path / "past", Traces.from_traces(made))
    words = ["limit", str(tmp_path / "past")]
    assert exit_code([*words, "-c", "0.95"]) == 3
    printed = capsys.readouterr().out
    assert "0.95 takes 19 runs" in printed
    assert printed.startswith(
        "resident_bytes at most 2e+09: a run stays at or below it 0.8333 of the time"
    )
    assert exit_code([*words, "-c", "0.8", "-l", "3e9", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["limit"], told["outcome"]) == (2e9 + 4, "guaranteed")
    assert told["over_high_ratio"] == pytest.approx(1 / 6)
    assert exit_code([*words, "-c", "1.5"]) == 2
    assert exit_code([*words, "--given", str(tmp_path / "no")]) == 4
    write_traces(tmp_path / "two", Traces.from_traces([made[0], a_trace(9, {MEMORY: [1.0]})]))
    assert exit_code([*words, "--given", str(tmp_path / "two")]) == 2
    assert "not one" in capsys.readouterr().err


def test_a_program_that_runs_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    made = [
        a_trace(n, {MEMORY: random.uniform(1e3, 2e3, 60).tolist()}, seconds=0.05) for n in range(19)
    ]
    write_traces(tmp_path / "past", Traces.from_traces(made))
    burn = shlex.join([sys.executable, "-S", "-c", "while True: pass"])
    words = ["limit", str(tmp_path / "past"), "--follow", burn, "--steps", "2", "--json"]
    assert exit_code(words) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["schema"] for line in lines] == ["limit/v1"] * 2
    assert lines[0]["now_seconds"] < lines[1]["now_seconds"]
    # The interpreter takes megabytes where the recorded runs took two thousand bytes.
    assert all(line["unlike"] and line["highest_so_far"] > 1e5 for line in lines)
    assert exit_code([*words[:2], "--follow", burn, "--given", "x"]) == 2


def test_errors_are_sentences() -> None:
    empty: list[Any] = []
    told = Peaks.from_items(empty).ranked(0.9)
    assert (told.outcome, told.needed, told.confidence_now) == ("too_few_runs", 9, 0)
    with pytest.raises(JostleError, match="no resident_bytes yet"):
        Peaks.from_items(empty, MEMORY).seen(np.array([1.0]), np.array([np.nan]))


def test_many_runs_leave_nothing_open() -> None:
    """Of many runs the sum's law is that of adding any of them, and one resident has its own."""
    random = np.random.default_rng(7)
    runs = [random.gamma(3, 1, 6) for _ in range(800)]
    one = Peaks.from_items([{"values": run.tolist()} for run in runs])
    low, high = share_limits(len(runs), 0.9)
    peaks = np.array([run.max() for run in runs])
    assert low <= (peaks <= Residents([one]).ranked(0.9).value).mean() <= high
    drawn = [together([runs[i], runs[j]]) for i, j in random.integers(800, size=(10_000, 2))]
    two = Residents([one, one])
    assert low <= np.mean(np.array(drawn) <= two.ranked(0.9).value) <= high
    assert low <= 1 - two.over(float(np.quantile(drawn, 0.9)), 0.9)[0] <= high


def windows(strength: float, runs: int = 60) -> list[Peaks]:
    """Two workloads recorded side by side, whose levels go together so much."""
    random = np.random.default_rng(8)
    made: list[list[Any]] = [[], []]
    for number in range(runs):
        first, other = random.standard_normal(2)
        for k, score in enumerate((first, strength * first + np.sqrt(1 - strength**2) * other)):
            values = [float(100 * np.exp(0.5 * score))] * 4
            made[k].append(
                a_trace(number, {MEMORY: values}, run_id=f"{k}-{number}", window_id=f"w{number}")
            )
    return [Peaks.of(Traces.from_traces(each)) for each in made]


def test_dependence_is_measured_where_windows_are_shared() -> None:
    random = np.random.default_rng(9)
    for strength in (-0.9, 0.0, 0.9):
        scores = random.multivariate_normal([0, 0], [[1, strength], [strength, 1]], 100_000)
        sums = 100 * np.exp(0.5 * scores).sum(axis=1)
        node = Residents(windows(strength))
        assert "side by side" in node.residents_text
        low, high = share_limits(60, 0.9)
        assert low <= (sums <= node.ranked(0.9).value).mean() <= high
    apart, alike = (Residents(windows(one)).ranked(0.95).value for one in (-0.9, 0.9))
    assert apart < alike
    assert "assumed to be independent" in Residents([windows(0.9)[0]] * 2).residents_text


def test_residents_at_their_places_on_the_clock() -> None:
    """All runs alike: the sum is known to the sample."""
    ramp = Peaks.from_items([{"values": [1.0, 2.0, 3.0, 4.0]}] * 8)
    flat = Peaks.from_items([{"values": [10.0, 10.0]}] * 8)
    assert Residents([ramp, flat]).ranked(0.5).value == pytest.approx(12)
    # A ramp that has come to its second half: 3 + 10, then 4 + 10.
    later = ramp.seen(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    assert Residents([later, flat]).ranked(0.5).value == pytest.approx(14)
    # Twice as slow, the flat one is still there when the ramp is at its end.
    assert Residents([ramp, flat], slowdowns=[1.0, 2.0]).ranked(0.5).value == pytest.approx(14)
    wide = Residents([ramp, flat], slowdowns=[1.0, 1.0], error=0.5).ranked(0.9).value
    assert 12 < wide <= 14 + 1e-9
    # Three more of 10 each come to 42 and no more; a spike of a sample counts whatever the clock's steps.
    assert Residents([ramp, flat], more=flat).fits(42.0, 0.9) == 3
    quick = {"times_seconds": [0.25, 0.5, 0.75, 1.0]}
    spike, base = (
        [{"values": v, **quick}] * 8 for v in ([1.0, 9.0, 1.0, 1.0], [9.0, 1.0, 1.0, 1.0])
    )
    both = Residents([Peaks.from_items(spike), Peaks.from_items(base)])
    assert both.ranked(0.5).value == pytest.approx(10)
    assert Residents([ramp, flat], more=flat).fits(5.0, 0.9) == 0
    with pytest.raises(NotEnoughRuns, match="1 run"):
        Residents([ramp, Peaks.from_items([{"values": [1.0]}])])
    every: tuple[dict[str, Any], ...] = (
        *({"slowdowns": [1.0]}, {"slowdowns": [0.0, 1.0]}, {"error": -1.0}),
    )
    for wrong in every:
        with pytest.raises(UsageError):
            Residents([ramp, flat], **wrong)
    with pytest.raises(UsageError, match="no residents"):
        Residents([])
    with pytest.raises(JostleError, match="cannot be added"):
        Residents([ramp, Peaks.from_items([{"values": [1.0]}] * 3, "other")])


def test_several_workloads_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(10)
    made = [
        a_trace(n, {MEMORY: random.gamma(50, 1e8 / 50, 5).tolist()}, run_id=f"{k}{n}", workload=k)
        for n in range(20)
        for k in "ab"
    ]
    write_traces(tmp_path / "past", Traces.from_traces(made))
    words = ["limit", str(tmp_path / "past"), "-w", "a", "-w", "b", "-w", "b"]
    assert exit_code([*words, "-l", "1e9", "--fits", "a", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["outcome"] == "estimated"
    assert told["residents"] == "3 residents assumed to be independent"
    # Twenty runs of each say at most 20 / 21 of one, and so 6 / 7 of three that fail apart.
    assert told["any_confidence"] == pytest.approx(1 - 3 * (1 - 0.9523))
    assert told["any_limit"] > told["limit"]
    assert 3e8 < told["limit"] < 6e8
    assert 2 <= told["fits"] <= 6
    assert told["over_ratio"] == 0
    assert exit_code([*words, "-l", "1e9", "--fits", "a"]) == 0
    assert "more fit below" in capsys.readouterr().out
    assert exit_code([*words, "--fits", "a"]) == 2
    assert exit_code([*words[:2], "--fits", "a"]) == 2
    assert exit_code([*words, "--given", str(tmp_path)]) == 2
    assert exit_code([*words, "-w", "nobody"]) == 4
    assert exit_code([*words[:4], "--model", str(tmp_path)]) == 2
    assert exit_code([*words, "--at-limit", "zz"]) == 4


def test_a_sum_is_bounded_however_residents_go_together() -> None:
    """What loads all of them at once is nowhere recorded: two residents of the same size each time."""
    random, kept, assumed, draws = np.random.default_rng(11), 0, 0, 150
    for _ in range(draws):
        made = [Peaks.from_items([{"values": [v]} for v in random.gamma(2, 1, 39)]) for _ in "ab"]
        node, together = Residents(made), 2 * random.gamma(2, 1)
        bound, confidence = node.without_assumptions(0.9)
        # Some orders look like trends, or like steps.
        is_plain = all(one.ranked(0.95).outcome == "guaranteed" for one in made)
        assert confidence == 0.9 if is_plain else confidence <= 0.9
        kept += together <= bound
        assumed += together <= node.ranked(0.9).value
    assert kept / draws >= share_limits(draws, 0.9)[0]
    assert assumed < kept
    few = Residents([Peaks.from_items([{"values": [1.0]}] * 2)] * 3)
    assert few.without_assumptions(0.9) == (np.inf, 0.0)
