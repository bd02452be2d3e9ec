"""Accelerators as nodes: services with rates and tails, memory, and how a device is shared as a decision."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.data import write_profiles
from jostle.errors import UsageError
from jostle.gpu import (
    Application,
    Arrangement,
    Device,
    DeviceTenant,
    SimulatedLoad,
    Task,
    arranged,
    ways_to_arrange,
)
from jostle.placement import DevicePlacement, Fleet, Node, Request, Standard
from jostle.placement.devices._device_sets import Hardware
from tests.packages.gpu.made_profiles import profile_of

DEVICE = Device(10, 8)
# A service that fills half of the device, one that fills all of it, and batch work of short and long kernels.
KNOWN = {
    "half": Application.of("half", Task("kernel", 0.010, blocks=40)),
    "whole": Application.of("whole", Task("kernel", 0.010, blocks=80)),
    "short": Application.of("short", Task("kernel", 0.001, blocks=80)),
    "long": Application.of("long", Task("kernel", 0.200, blocks=80)),
}


def arrangements(
    tenants: list[DeviceTenant],
    device: Device,
    mode: str,
    *,
    memory_bytes: float | None = None,
    queries: int = 50,
) -> list[Arrangement]:
    """Simulate each way to share the device in a mode."""
    ways = ways_to_arrange(tenants, device, mode, memory_bytes)
    return [arranged(tenants, device, mode, way, SimulatedLoad(queries)) for way in ways]


def placed(fleet: Any, *modes: str, promise: Any = "predicted") -> DevicePlacement:
    hardware = Hardware(KNOWN, DEVICE, modes or ("concurrent",))
    return DevicePlacement(Fleet.of(fleet), hardware, Standard(promise=promise))


def test_several_services_with_their_own_rates_and_tails() -> None:
    tenants = [DeviceTenant(KNOWN["half"], 20.0), DeviceTenant(KNOWN["whole"], 5.0)]
    (way,) = arrangements(tenants, DEVICE, "concurrent", queries=30)
    fast, slow = way.latencies
    assert fast.queries == pytest.approx(4 * slow.queries, rel=0.1)
    assert fast.p99_seconds >= fast.mean_seconds >= 0.010
    (alone,) = arrangements(tenants[:1], DEVICE, "concurrent", queries=30)
    assert alone.latencies[0].mean_seconds < 1.3 * fast.mean_seconds
    busier = [DeviceTenant(KNOWN["half"], 60.0), tenants[1]]
    (way,) = arrangements(busier, DEVICE, "concurrent", queries=30)
    assert way.latencies[0].p99_seconds > fast.p99_seconds


def test_batch_work_beside_each_other_slows_down_alike() -> None:
    both = [DeviceTenant(KNOWN["whole"]), DeviceTenant(KNOWN["whole"])]
    (way,) = arrangements(both, DEVICE, "concurrent", queries=5)
    assert [latency.mean_seconds for latency in way.latencies] == pytest.approx(
        [0.02, 0.02], rel=0.15
    )
    (way,) = arrangements(both, DEVICE, "shares", queries=5)
    assert [latency.mean_seconds for latency in way.latencies] == pytest.approx(
        [0.02, 0.02], rel=0.15
    )
    long = [DeviceTenant(KNOWN["half"], 50.0), DeviceTenant(KNOWN["long"])]
    (way,) = arrangements(long, DEVICE, "concurrent", queries=4)
    assert 0.2 <= way.latencies[1].mean_seconds < 1.0  # though no run of it ends in that time


def test_slices_keep_tenants_apart_and_have_their_share_of_memory() -> None:
    both = [DeviceTenant(KNOWN["half"], memory_bytes=6.0), DeviceTenant(KNOWN["long"])]
    ways = arrangements(both, DEVICE, "0.5,0.5", queries=5)
    assert [way.slices[0] == way.slices[1] for way in ways] == [True, False]
    apart = ways[1]
    assert apart.latencies[0].mean_seconds == pytest.approx(0.010, rel=0.01)
    assert apart.text(["a", "b"]) == "0.5 (1): a; 0.5 (2): b"
    assert not (arrangements(both, DEVICE, "0.5,0.5", memory_bytes=10.0))
    assert not (arrangements(both, DEVICE, "concurrent", memory_bytes=5.0))
    assert arrangements(both, DEVICE, "concurrent", memory_bytes=6.0, queries=3)
    with pytest.raises(UsageError, match="slice"):
        (arrangements(both, DEVICE, "halves"))


def test_a_simulation_is_no_bound() -> None:
    ask = Request("half", slowdown=3.0)
    answer = placed(Node("gpu", "gpu"), promise="each").safe(ask).answers[0]
    assert (answer.is_safe, answer.reason) == (False, "no_ground")
    assert any("accept predictions" in text for text in answer.helps)
    found = placed(Node("gpu", "gpu")).safe(ask)
    assert found.is_safe
    assert "nothing is promised" in found.promise


def test_how_a_device_is_shared_is_decided() -> None:
    node = Node("gpu", "gpu", tenants=(Request("long", "train"),))
    ask = Request("half", "web", rate_per_second=10.0, statistic="p95", deadline_seconds=0.05)
    one = placed(node).safe(ask).answers[0]
    assert one.reason == "newcomer_late"
    assert one.hurt[0].name == "web"
    assert any("without train" in text for text in one.helps)
    best = placed(node, "concurrent", "0.5,0.5").safe(ask).answers[0]
    assert best.is_safe
    assert best.arrangement in ("0.5 (1): train; 0.5 (2): web", "0.5 (1): web; 0.5 (2): train")
    own = replace(node, sharing=("0.5,0.5",))
    assert placed(own).safe(ask).is_safe
    ranked = placed([node, Node("free", "free")], "concurrent").rank(ask)[0]
    assert [row.node for row in ranked.rows()] == ["free"]
    assert ranked.ruled_out == {"newcomer_late": 1}


def test_memory_names_and_rules_count() -> None:
    fleet = [
        Node("small", "small", memory_bytes=4.0),
        Node(
            "large", "A100", memory_bytes=9.0, tenants=(Request("long", "train", memory_bytes=2.0),)
        ),
        Node("odd", "H9000"),
    ]
    ask = Request("half", memory_bytes=8.0)
    found = {a.node: a.reason for a in placed(fleet).safe(ask).answers}
    assert found == {"small": "no_memory", "large": "no_memory", "odd": "unknown_platform"}
    rule = Request("half", apart=("long",), memory_bytes=1.0)
    assert placed(fleet).safe(rule, on="large").answers[0].reason == "apart"
    only = Request("half", allowed=("A100",))
    assert placed(fleet).safe(only, on="small").answers[0].reason == "not_allowed"
    assert placed(fleet).safe(Request("nobody")).answers[0].reason == "unknown_workload"
    (typo,) = placed(fleet).safe(Request("hal", rate_per_second=2.0)).unknown_names
    assert typo == "unknown workload 'hal'. Did you mean half?"


def test_memory_counts_where_only_the_profile_and_the_device_know_it() -> None:
    known = {name: replace(one, memory_bytes=25e9) for name, one in KNOWN.items()}
    hardware = Hardware(known, replace(DEVICE, memory_bytes=30e9))
    fleet = [
        Node("own", "own", tenants=(Request("long", "train"),)),
        Node("large", "H200", tenants=(Request("long", "train2"),)),
        Node("small", "T4"),
        Node("told", "T4", memory_bytes=32e9),
    ]
    place = DevicePlacement(Fleet.of(fleet), hardware, Standard(promise="predicted"))
    found = {a.node: a.reason for a in place.safe(Request("half")).answers}
    assert (found["own"], found["small"]) == ("no_memory", "no_memory")
    assert "no_memory" not in (found["large"], found["told"])
    assert {row.node for row in place.rank(Request("half"))[0].rows()} == {"large", "told"}
    four = place.assign([Request("half", f"h{n}", worth=1.0) for n in range(8)])
    seats = Counter(one.node for one in four.placed)
    assert not seats.keys() - {"large", "told"}
    assert seats["large"] <= 4  # 141 GB, of which 25 are taken
    assert seats["told"] <= 1


def test_many_at_once_and_what_changes() -> None:
    asked = [
        *(Request("half", f"h{n}", rate_per_second=10.0, slowdown=2.5) for n in range(4)),
        Request("whole", "w", slowdown=1.2),
    ]
    fleet = [Node(f"gpu{n}", f"gpu{n}", slots=2) for n in range(3)]
    found = placed(fleet).assign(asked, "most_accepted")
    assert found.is_complete
    for node, there in found.by_node.items():
        here = [one for one in asked if one.name in {p.request for p in there}]
        assert placed(fleet).safe(here, node, together=True).is_safe


def test_bounds_of_measured_runs_count_where_they_are_valid(tmp_path: Path) -> None:
    names = ("asr", "md", "hw")
    write_profiles(tmp_path, [profile_of(name) for name in names])
    rows = [
        (w, beside) for w in names for beside in [[]] * 20 + [[o] for o in names if o != w] * 20
    ]
    runs = jostle.Runs.from_columns(
        workload=[w for w, _ in rows],
        platform=["v100"] * len(rows),
        corunners=[beside for _, beside in rows],
        runtime_seconds=[
            (0.5 + 0.2 * len(b)) * (1 + 0.01 * (n % 7)) for n, (_, b) in enumerate(rows)
        ],
    )
    model = jostle.fit(runs, jostle.Slowdown(), calibrate_by="window")
    node = Node("gpu", "gpu", tenants=(Request("md", deadline_seconds=1.0),))
    with_bounds = jostle.place_devices(tmp_path, node, model=model)
    answer = with_bounds.safe(Request("asr", deadline_seconds=1.0)).answers[0]
    assert answer.is_safe
    assert not answer.used_predictions
    assert 0.7 < (answer.members[0].bound_seconds or 0) < 1.0
    rated = Request("asr", deadline_seconds=1.0, rate_per_second=0.1)
    assert with_bounds.safe(rated).answers[0].reason == "no_ground"


@pytest.mark.parametrize("modes", [("concurrent",), ("concurrent", "shares", "0.5,0.5")])
def test_one_more_tenant_never_turns_a_no_into_a_yes(modes: tuple[str, ...]) -> None:
    asks = [
        Request("half", "new", rate_per_second=rate, statistic="p95", slowdown=limit)
        for rate in (5.0, 40.0)
        for limit in (1.2, 2.0)
    ]
    before: tuple[Request, ...] = ()
    answers: list[list[bool]] = []
    for name in ("half", "short", "whole"):
        node = Node("gpu", "gpu", tenants=before)
        answers.append([a.is_safe for a in placed(node, *modes).safe(asks, explain=False).answers])
        before = (*before, Request(name, f"t{name}"))
    assert any(answers[0])
    for fewer, more in pairwise(answers):
        assert not any(new and not old for old, new in zip(fewer, more, strict=True))
