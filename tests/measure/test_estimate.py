"""The estimator on made-up beats: quiet, preempted, slowed by a neighbour, too long, too few."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from jostle.measure import Tolerance
from jostle.measure.window._assess import worst_status
from jostle.measure.window._estimate import beats_done, contamination, estimate
from jostle.measure.window._placement import balanced_groups, phases

MILLISECOND = 1_000_000
BEGIN, END = 50 * MILLISECOND, 300 * MILLISECOND


def beats(lengths_ms: np.ndarray | list[float], start_ns: int = 0) -> np.ndarray:
    ends = np.cumsum(np.asarray(lengths_ms) * MILLISECOND)
    return start_ns + np.concatenate([[0], ends]).astype(np.int64)


def answer(lengths_ms: np.ndarray, cpu_seconds: float = 0.25, shares: bool = False):
    return estimate(beats(lengths_ms), BEGIN, END, cpu_seconds, shares, Tolerance())


def test_progress_is_interpolated() -> None:
    times = beats([2, 4])
    at = [0, 1, 2, 4, 6]
    assert [beats_done(times, ms * MILLISECOND) for ms in at] == [0, 0.5, 1, 1.5, 2]


def test_even_beats_are_their_own_answer() -> None:
    found = answer(np.full(400, 1.0))
    assert found is not None
    assert found.method == "quiet"
    assert found.beat_seconds == pytest.approx(1e-3)
    assert found.beats == pytest.approx(250)


def test_preempted_beats_do_not_count_on_a_core_of_its_own() -> None:
    lengths = np.full(400, 1.0)
    lengths[::5] = 5.0  # every fifth beat waited for another process
    found = answer(lengths, cpu_seconds=0.15)
    assert found is not None
    assert found.beat_seconds == pytest.approx(1e-3)


def test_a_hidden_neighbour_for_most_of_the_window_does_not_count() -> None:
    lengths = np.full(400, 1.7)
    lengths[100:160] = 1.0
    found = answer(lengths)
    assert found is not None
    assert found.beat_seconds == pytest.approx(1e-3)


def test_waiting_for_the_set_itself_counts() -> None:
    """Two members take turns on one core: each has half of it, so takes twice as long."""
    lengths = np.tile([1.0, 1.0, 4.0], 70)
    found = answer(lengths, cpu_seconds=0.125, shares=True)
    assert found is not None
    assert found.method == "quiet"
    assert found.beat_seconds == pytest.approx(2e-3)


def test_long_beats_are_answered_by_wall_time_while_nobody_disturbs() -> None:
    found = answer(np.full(20, 40.0), cpu_seconds=0.248)
    assert found is not None
    assert (found.method, found.beat_seconds) == ("wall", pytest.approx(40e-3))


def test_long_beats_are_answered_by_cpu_time_when_other_processes_held_the_core() -> None:
    found = answer(np.full(20, 40.0), cpu_seconds=0.20)
    assert found is not None
    assert (found.method, found.beat_seconds) == ("cpu", pytest.approx(32e-3))


def test_long_beats_on_shared_cores_are_wall_time_waiting_included() -> None:
    found = answer(np.full(20, 40.0), cpu_seconds=0.1, shares=True)
    assert found is not None
    assert (found.method, found.beat_seconds) == ("wall", pytest.approx(40e-3))


def test_a_member_that_started_after_the_window_has_no_answer() -> None:
    late = beats([1.0], start_ns=END)
    assert estimate(late, BEGIN, END, 0.0, False, Tolerance()) is None


def reason(**changed: Any) -> str | None:
    clean: dict[str, Any] = {
        "slowdown_ratio": 1.0,
        "foreign": None,
        "lateness_seconds": 0.001,
        "warmup_seconds": 0.025,
        "fewest_repetitions": 10.0,
        "tolerance": Tolerance(),
    }
    return contamination(**{**clean, **changed})


def test_what_contaminates_a_window() -> None:
    assert reason() is None
    assert reason(foreign="others were there") == "others were there"
    assert "late" in (reason(lateness_seconds=0.021) or "")
    assert "late" in (reason(lateness_seconds=0.015, warmup_seconds=0.01) or "")
    assert "1.50 repetitions" in (reason(fewest_repetitions=1.5) or "")
    assert "slower than usual" in (reason(slowdown_ratio=1.4) or "")
    assert reason(slowdown_ratio=None) is None


def test_anything_can_be_tolerated() -> None:
    worst: dict[str, Any] = {"lateness_seconds": 9.0, "fewest_repetitions": 0.1}
    assert reason(**worst, slowdown_ratio=9.0, tolerance=Tolerance.anything()) is None


def test_the_worst_member_names_the_window() -> None:
    assert worst_status(["ok", "failed", "timeout"]) == "timeout"
    assert worst_status(["ok", "contaminated"]) == "contaminated"
    assert worst_status(["ok"]) == "ok"


@pytest.mark.parametrize(("members", "cores", "ways"), [(3, 2, 3), (4, 2, 3), (4, 3, 6), (5, 1, 1)])
def test_every_way_to_share_cores_is_taken_once(members: int, cores: int, ways: int) -> None:
    found = balanced_groups(members, cores)
    assert len(found) == len(set(found)) == ways
    together = [
        sum(way[a] == way[b] for way in found) for a, b in itertools.combinations(range(members), 2)
    ]
    assert len(set(together)) == 1  # so no pair shares more than another: order cannot matter


def test_members_have_cores_of_their_own_while_there_are_enough() -> None:
    (only,) = phases(2, (4, 7), "key")
    assert sorted(only) == [4, 7]
    firsts = {phases(2, (4, 7), f"key{number}")[0][0] for number in range(20)}
    assert firsts == {4, 7}
    assert phases(2, (4, 7), "key") == (only,)


@pytest.mark.parametrize("members", [3, 4, 6, 8, 11])
def test_shared_cores_are_all_used_in_every_phase(members: int) -> None:
    found = phases(members, (0, 1), "key")
    assert 3 <= len(found) <= 12
    assert all(set(phase) == {0, 1} for phase in found)
