"""Which sets of services and batch jobs may share a device: against simulations by hand, and the command."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import write_profiles
from jostle.gpu import (
    Application,
    Device,
    DeviceTenant,
    Latency,
    Objective,
    Task,
    Tenant,
    Wish,
    interval_of,
    poisson_arrivals,
    sets_that_fit,
    simulate,
)
from tests.packages.gpu.made_profiles import profile_of

DEVICE = Device(10, 8)


def wish(name: str, blocks: int, seconds: float, rate: float | None, limit: float | None) -> Wish:
    application = Application.of(name, Task("kernel", seconds, blocks=blocks))
    objective = None if limit is None else Objective(None, limit, "p95")
    return Wish(name, DeviceTenant(application, rate), objective)


WISHES = [
    wish("web", 40, 0.010, 20.0, 0.030),
    wish("api", 80, 0.010, 10.0, 0.060),
    wish("train", 80, 0.100, None, None),
]


def over_limits(members: list[Wish]) -> float:
    """The largest p95 over its limit with kernels side by side, by hand and with arrivals of its own."""
    tenants = []
    for place, one in enumerate(members):
        times = None
        if (rate := one.tenant.rate_per_second) is not None:
            times = poisson_arrivals(rate, round(80 * rate), (5, place))
        elif len(members) == 1:
            return 0.0
        runs = None if times is None else len(times)
        tenants.append(Tenant(one.tenant.application, runs, arrivals=times))
    found = simulate(tenants, DEVICE).latencies
    return max(
        Latency.of(seconds).p95_seconds / one.limit_of(one.tenant.application.solo_seconds)
        for one, seconds in zip(members, found, strict=True)
    )


def test_sets_fit_where_they_do_by_hand() -> None:
    found = sets_that_fit(WISHES, DEVICE, ["concurrent"])
    said = {s.members: s for s in (*found.alone, *found.fitting, *found.others)}
    for size in (1, 2, 3):
        for members in combinations(WISHES, size):
            names = tuple(one.name for one in members)
            by_hand = over_limits(list(members))
            assert abs(by_hand - 1) > 0.1, "too close to be a test"
            fits = names in said and said[names].verdict == "within"
            assert fits == (by_hand <= 1), names
    assert [s.members for s in found.fitting] == [("web", "api")]
    late = {j.name for s in found.others for j in s.times if j.verdict == "over"}
    assert late == {"web", "api"}


def test_another_way_to_share_lets_all_in() -> None:
    asked = [WISHES[0], wish("api", 40, 0.010, 10.0, 0.060), WISHES[2]]
    found = sets_that_fit(asked, DEVICE, ["concurrent", "0.6,0.4"])
    assert found.all_fit
    best = found.fitting[0]
    assert best.arrangement is not None
    assert best.arrangement.mode == "0.6,0.4"
    assert best.arrangement.slices[0] == best.arrangement.slices[1] == "0.6 (1)"
    assert best.shared == "0.4 (2): train; 0.6 (1): web, api"


def test_who_misses_alone_is_left_out_and_memory_counts() -> None:
    hopeless = wish("slow", 80, 0.010, 10.0, 0.005)
    found = sets_that_fit([hopeless, *WISHES[:2]], DEVICE, ["concurrent"])
    assert found.alone[0].verdict == "over"
    assert [s.members for s in found.fitting] == [("web", "api")]
    assert not any("slow" in s.members for s in found.others)
    full = [Wish(w.name, DeviceTenant(w.tenant.application, 1.0, None, 6.0)) for w in WISHES[:2]]
    found = sets_that_fit(full, DEVICE, ["concurrent", "0.5,0.5"], memory_bytes=10.0)
    assert [one.verdict for one in found.alone] == ["within", "within"]
    assert not found.fitting
    assert (found.others[0].verdict, found.others[0].shared) == ("over", "no room in memory")


def test_limits_that_are_too_close_are_not_called_kept() -> None:
    """The time of a query of an M/D/1 queue at load 0.2, to the sixth digit."""
    exact = Wish("web", WISHES[0].tenant, Objective(None, 0.010 * (1 + 0.2 / 1.6)))
    times = sets_that_fit([exact], DEVICE, ["concurrent"]).alone[0].times[0]
    assert times.verdict == "undecided"
    assert times.low_seconds < times.limit_seconds < times.high_seconds
    assert times.runs == 80_000
    assert "do not settle it" in times.remark


@pytest.mark.parametrize("statistic", ["mean", "p95"])
def test_intervals_hold_the_value_about_as_often_as_said(statistic: str) -> None:
    """Waiting times of a queue depend on each other; of M/D/1 at half load the long run is simulated."""
    application = Application.of("s", Task("kernel", 1.0, blocks=80))

    def waits(queries: int, seed: int) -> np.ndarray:
        times = poisson_arrivals(0.5, queries, seed)
        ends = np.empty(queries)
        last = 0.0
        for n, time in enumerate(times.tolist()):
            last = ends[n] = max(last, time) + application.solo_seconds
        return ends - times

    true = Latency.of(waits(200_000, 1)).of_statistic(statistic)
    found = [interval_of(waits(600, seed), statistic) for seed in range(2, 122)]
    covered = np.mean([low <= true <= high for low, high in found])
    assert 0.85 <= covered <= 1


def test_a_set_is_not_called_kept_by_luck() -> None:
    """At 70% load few queries say little of the p99, and what they say of its spread is little, too."""
    application = Application.of("s", Task("kernel", 0.010, blocks=80))
    tenant = DeviceTenant(application, 70.0)
    times = poisson_arrivals(70.0, 400_000, 99)
    ends, last = np.empty(len(times)), 0.0
    for n, time in enumerate(times.tolist()):
        last = ends[n] = max(last, time) + 0.010
    true = Latency.of(ends - times).p99_seconds

    def kept(over: float) -> int:
        asked = [Wish("s", tenant, Objective(None, over * true, "p99"))]
        found = [sets_that_fit(asked, DEVICE, ["concurrent"], seed=seed) for seed in range(20)]
        return sum(one.alone[0].verdict == "within" for one in found)

    assert kept(0.97) <= 2  # six of them by one look
    assert kept(1.3) >= 18


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_profiles(tmp_path, [profile_of(name) for name in ("asr", "md", "hw")])
    table = tmp_path / "tenants.csv"
    table.write_text(
        "name,workload,rate_per_second,statistic,deadline,memory\n"
        "web,asr,2,p95,45ms,4GiB\nbulk,hw,,,1.2x,1GiB\ntrain,md,,,1.2x,8GiB\n"
    )
    asked = ["safe", str(tmp_path), "--tenants", str(table), "--sharing", "concurrent"]
    assert exit_code([*asked, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "safe_sets/v2"
    pairs = [["web", "bulk"], ["web", "train"], ["bulk", "train"]]
    assert [one["members"] for one in found["fitting"]] == pairs
    times = {j["name"]: j for j in found["fitting"][0]["times"]}
    assert times["web"]["low_seconds"] <= times["web"]["seconds"] <= times["web"]["limit_seconds"]
    assert exit_code([*asked, "--sharing", "0.5,0.5", "--memory", "10GiB"]) == 1
    text = capsys.readouterr().out
    assert "no room in memory" in text
    assert "between" in text
    assert exit_code([*asked, "--service", "asr"]) == 2
    assert "--service cannot go with --tenants" in capsys.readouterr().err
    table.write_text("workload,deadline\nnobody,3x\n")
    assert exit_code(asked) != 0
    assert "nobody" in capsys.readouterr().err
    table.write_text("workload,deadline\nasr,-3x\n")
    assert exit_code(asked) != 0
    assert "row" in capsys.readouterr().err
