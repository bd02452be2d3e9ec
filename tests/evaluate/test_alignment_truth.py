"""Repeats make one run time, and how well it is known is reported."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from jostle.alignment import SoloIndex, solo_counters
from jostle.traces import Trace
from studies.alignment.rivals import usual_slowdowns
from studies.alignment.truth import (
    Member,
    measured_sets,
    member_of,
    noise_metrics,
    quiet_runs,
    spread_metrics,
    unsteady_of,
)
from studies.traces import plain_trace


def a_run(workload: str, number: int, slow: list[float], beside: str | None = None) -> Trace:
    """A tenth of a second of equal instructions each, every stretch so many times slower."""
    steps = np.repeat(0.1 * np.array(slow) / 100, 100)
    return plain_trace(
        {"instructions": np.full(len(steps), 7.0)},
        steps,
        run_id=f"{workload}-{beside}-{number}",
        workload=workload,
        corunners=() if beside is None else (beside,),
        window_id=None if beside is None else f"w{number}",
    )


REPEATS = ([2.0, 1.0, 1.0], [1.0, 1.0, 2.0], [1.0, 2.0, 1.0], [1.0, 1.0, 1.5])


def test_repeats_of_a_window_are_one_measurement() -> None:
    windows = {
        f"w{n}": [a_run("a", n, slow, "b"), a_run("b", n, [2 * s for s in slow], "a")]
        for n, slow in enumerate(REPEATS)
    }
    windows["other"] = [a_run("a", 9, [3.0] * 3, "c"), a_run("c", 9, [1.0] * 3, "a")]
    found = measured_sets(windows, 1e-3)
    assert [len(one.windows) for one in found] == [4, 1]
    a, b = found[0].members
    assert (a.workload, b.workload, len(a.runs)) == ("a", "b", 4)
    assert a.seconds == pytest.approx(0.3, rel=0.01)
    assert b.seconds == pytest.approx(0.6, rel=0.01)
    assert found[0].quietest is windows["w3"] or found[0].quietest[0].run_id == "a-b-3"
    assert found[1].members[0].seconds == pytest.approx(0.9)
    assert np.isnan(found[1].members[0].apart_ratio)
    table = quiet_runs(found, [member_of([a_run("a", 0, [1.0] * 3)], 0, 1e-3)])
    np.testing.assert_allclose(table.runtime_seconds, [0.3, 0.6, 0.9, 0.3, 0.3], rtol=0.01)
    assert len(set(table.units("window").tolist())) == 3


def test_the_usual_slowdowns_are_of_what_the_method_learns_from() -> None:
    solos = SoloIndex(tuple(solo_counters(a_run(name, 0, [1.0] * 3)) for name in "abc"))
    one = {"w0": [a_run("a", 0, [2.0] * 3, "b"), a_run("b", 0, [1.0] * 3, "a")]}
    two = {"w1": [a_run("a", 1, [1.5] * 3, "c"), a_run("c", 1, [9.0] * 3, "a")]}
    sets = measured_sets(one | two, 1e-3)
    fitted = SimpleNamespace(solos=solos)

    def usual(*leave_out: str) -> tuple[float, float]:
        return usual_slowdowns(sets, fitted, leave_out)  # type: ignore[arg-type]

    assert usual() == pytest.approx(((2 + 1 + 1.5 + 9) / 4, (1.5 + 2) / 2))
    assert usual("c") == pytest.approx((1.5, 1.5))
    assert usual("a", "b", "c") == (1.0, 1.0)


def test_how_well_it_is_known() -> None:
    quiet = member_of([a_run("a", n, [1.0] * 3) for n in range(4)], 0, 1e-3)
    loud = member_of([a_run("b", n, [1.0 + n] * 3) for n in range(5)], 0, 1e-3)
    metrics = noise_metrics([quiet], "solo_")
    assert metrics["solo_noise_floor_mean_ratio"] == pytest.approx(0)
    assert metrics["solo_single_run_difference_mean_ratio"] == pytest.approx(0)
    # Halves: repeats 0, 2, 4 and 1, 3, whose quickest take 1 and 2 times as long.
    assert noise_metrics([loud])["noise_floor_max_ratio"] == pytest.approx(
        0.1 * 3 / loud.seconds / 2, rel=0.1
    )
    assert unsteady_of([quiet, loud]) == ("b",)
    once = member_of([a_run("a", 0, [1.0])], 0, 1e-3)
    assert noise_metrics([once]) == {}
    assert unsteady_of([once]) == ()
    assert isinstance(once, Member)


def test_what_can_be_told_apart_is_what_repeats_do_not_explain() -> None:
    random = np.random.default_rng(0)

    def sets_of(differ: float) -> list:
        slow = {b: float(np.exp(differ * random.normal())) for b in "bcdefghi"}
        windows = {}
        for number in range(40):
            b = "bcdefghi"[number // 5]
            off = np.exp(0.05 * random.normal(size=2))
            windows[f"w{number}"] = [
                a_run("a", number, [slow[b] * off[0]], b),
                a_run(b, number, [off[1]], "a"),
            ]
        return measured_sets(windows, 1e-3)

    alike, apart = spread_metrics(sets_of(0.0)), spread_metrics(sets_of(0.3))
    assert alike["repeat_spread_ratio"] == pytest.approx(0.05, rel=0.3)
    assert alike["interference_spread_ratio"] < 0.03
    assert apart["interference_spread_ratio"] == pytest.approx(0.3, rel=0.6)
    assert spread_metrics(sets_of(0.0)[:1]) == {}
