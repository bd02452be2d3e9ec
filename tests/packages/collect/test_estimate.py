"""The estimator on made-up beats: quiet, preempted, slowed by a neighbour, too long, too few."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from jostle.collect.window._assess import MemberResult, Window, worst_status
from jostle.collect.window._beat_estimate import beats_done, estimate
from jostle.collect.window._core_placement import balanced_groups, phases
from jostle.collect.window._lost import Cleaned, Others, cleaned_executions

MILLISECOND = 1_000_000
BEGIN, END = 50 * MILLISECOND, 300 * MILLISECOND


def beats(lengths_ms: np.ndarray | list[float], start_ns: int = 0) -> np.ndarray:
    ends = np.cumsum(np.asarray(lengths_ms) * MILLISECOND)
    return start_ns + np.concatenate([[0], ends]).astype(np.int64)


def answer(
    lengths_ms: np.ndarray, cpu_seconds: float = 0.25, shares: bool = False, lost: float = 0.0
):
    return estimate(beats(lengths_ms), BEGIN, END, cpu_seconds, shares, lost)


def test_progress_is_interpolated() -> None:
    times = beats([2, 4])
    at = [0, 1, 2, 4, 6]
    assert [beats_done(times, ms * MILLISECOND) for ms in at] == [0, 0.5, 1, 1.5, 2]


LONG = np.full(20, 40.0)


@pytest.mark.parametrize(
    ("lengths", "given", "method", "seconds"),
    [
        (np.full(400, 1.0), {}, "quiet", 1e-3),
        # Every fifth beat waited for another process.
        (np.tile([5.0, 1.0, 1.0, 1.0, 1.0], 80), {"cpu_seconds": 0.15}, "quiet", 1e-3),
        # A neighbour was there for most of the window.
        (np.repeat([1.7, 1.0, 1.7], [100, 60, 240]), {}, "quiet", 1e-3),
        # Two members take turns on one core: each has half of it, so takes twice as long.
        (np.tile([1.0, 1.0, 4.0], 70), {"cpu_seconds": 0.125, "shares": True}, "quiet", 2e-3),
        # Nobody disturbs, other processes held the core, and waiting for other members is included.
        (LONG, {"cpu_seconds": 0.248}, "wall", 40e-3),
        (LONG, {"cpu_seconds": 0.20}, "cpu", 32e-3),
        (LONG, {"cpu_seconds": 0.1, "shares": True}, "wall", 40e-3),
    ],
)
def test_what_beats_tell(
    lengths: np.ndarray, given: dict[str, Any], method: str, seconds: float
) -> None:
    found = answer(lengths, **given)
    assert found is not None
    assert (found.method, found.beat.seconds) == (method, pytest.approx(seconds))
    assert len(lengths) < 400 or lengths.max() > 1 or found.beats == pytest.approx(250)


def test_what_others_had_of_shared_cores_is_taken_off() -> None:
    """Two members take turns, and others have six tenths of the core: a fifth is left for each."""
    lengths = np.tile([1.0, 1.0, 8.0], 70)
    found = answer(lengths, cpu_seconds=0.05, shares=True, lost=0.6)
    assert found is not None
    assert (found.method, found.beat.seconds) == ("quiet", pytest.approx(2e-3))
    assert found.beat.raw_seconds == pytest.approx(10e-3 / 3)
    assert found.beat.disturbance_ratio == 0.6


def test_a_member_that_started_after_the_window_has_no_answer() -> None:
    late = beats([1.0], start_ns=END)
    assert estimate(late, BEGIN, END, 0.0, False) is None


def window(most: float = 1.0) -> Window:
    return Window((), "speed", (), (0,), 0.25, 1.0, most)


def member(**changed: Any) -> MemberResult:
    usual: dict[str, Any] = {"runtime_seconds": 1.0, "disturbance_ratio": 0.5}
    return MemberResult("ok", **{**usual, "lateness_seconds": 0.001, **changed})


def test_what_rejects_a_window_and_all_its_members() -> None:
    def reason(*members: MemberResult, most: float = 1.0, fewest: float = 9.0) -> str | None:
        found = window(most).results(members, fewest)
        assert len({(one.status, one.reason) for one in found}) == 1
        assert all((one.runtime_seconds is None) == (one.reason is not None) for one in found)
        return found[0].reason

    assert reason(member(), member(disturbance_ratio=0.99)) is None
    assert "lost 60%" in (reason(member(), member(disturbance_ratio=0.6), most=0.55) or "")
    assert reason(member(), most=0.5) is None
    assert "1.50 repetitions" in (reason(member(), fewest=1.5) or "")
    assert "half of the window" in (reason(member(), member(lateness_seconds=0.2)) or "")
    assert "did nothing" in (reason(member(runtime_seconds=None)) or "")


def others(**changed: float) -> Others:
    nobody = {"seconds": 1.0, "taken": 0.0, "stolen": 0.0, "throttled": 0.0}
    return Others(**{**nobody, "own": 0.2, **changed})


def cleaned(
    wall: list[float],
    waited: list[float],
    unseen: list[float] | None = None,
    **changed: float,
) -> Cleaned:
    never = np.array(unseen or [0.0] * len(wall))
    used = np.zeros(len(wall))
    return cleaned_executions(np.array(wall), np.array(waited), never, used, 1, others(**changed))


@pytest.mark.parametrize(
    ("wall", "waited", "unseen", "given", "seconds"),
    [
        ([0.5, 0.5], [0.4, 0.4], None, {"taken": 0.8}, 0.1),
        ([0.1] * 5, [0.0] * 5, None, {}, 0.1),
        # Threads of one program wait for each other, too: nobody loses more than others had, and two ticks of
        # the kernel's clock.
        ([1.0], [2.5], None, {"taken": 0.3}, 1 - 0.3 - 0.02),
        ([1.0], [0.9], None, {"foreign_share": 0.0}, 1.0),
        # Waiting for other members is interference.
        ([1.0], [0.8], None, {"taken": 0.2, "foreign_share": 0.25}, 1 - 0.8 / 4),
        # What a hypervisor and limits took is lost.
        ([1.0], [0.0], None, {"stolen": 0.25, "own": 0.75}, 0.75),
        ([1.0], [0.5], None, {"throttled": 0.5}, 0.5),
        # Processes that nobody looked at waited as others took the core.
        ([1.0], [0.0], [0.25], {"taken": 0.75, "own": 0.25, "waited_per_unseen": 3.0}, 0.25),
    ],
)
def test_what_others_took_is_taken_off(
    wall: list[float],
    waited: list[float],
    unseen: list[float] | None,
    given: dict[str, float],
    seconds: float,
) -> None:
    assert cleaned(wall, waited, unseen, **given).seconds == pytest.approx(seconds)


def test_how_sure_it_is_of_what_was_taken_off() -> None:
    found, quiet = cleaned([0.5, 0.5], [0.4, 0.4], taken=0.8), cleaned([0.1] * 5, [0.0] * 5)
    assert (found.raw_seconds, found.disturbance_ratio) == (0.5, pytest.approx(0.8))
    assert 0 < found.error_ratio < 0.1
    assert (quiet.disturbance_ratio, quiet.error_ratio) == (0.0, 0.0)
    seen = cleaned([1.0], [0.75], taken=0.75, own=0.25)
    unseen = cleaned([1.0], [0.0], [0.25], taken=0.75, own=0.25, waited_per_unseen=3.0)
    assert unseen.error_ratio > seen.error_ratio


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


def test_members_that_share_cores_are_as_uncertain_as_the_window_is_short() -> None:
    def told(seconds: float, shares: bool) -> float:
        beats = np.arange(0, seconds * 1e9 + 1, 1e6).astype(np.int64)
        found = estimate(beats, 0, int(seconds * 1e9), 0.5 * seconds, shares, 0.1)
        assert found is not None
        return found.beat.error_ratio

    assert told(0.02, True) > 3 * told(0.25, True) > 3 * told(0.25, False) * 0.99
    assert told(4.0, True) == pytest.approx(0.0158, rel=0.1)
