"""The simulator against a plain one, and what must hold of any schedule."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostle.errors import BadData, UsageError
from jostle.gpu import Application, Device, Partition, Task, Tenant, simulate
from tests.packages.gpu.reference import simulate_plainly

quick = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
STARVED = 3000.0  # s: exclusive transfers of one that repeats can keep the others from ever ending

tasks = st.one_of(
    st.builds(
        Task,
        kind=st.just("kernel"),
        seconds=st.integers(0, 12).map(float),
        gap_seconds=st.integers(0, 4).map(float),
        blocks=st.integers(1, 150),
        warps_per_block=st.sampled_from([1, 2, 4]),
        occupancy_ratio=st.sampled_from([0.5, 1.0]),
        needs=st.sampled_from([{}, {"memory": 4.0}, {"memory": 16.0}]),
    ),
    st.builds(
        Task,
        kind=st.sampled_from(["htod", "dtoh"]),
        seconds=st.integers(1, 9).map(float),
        gap_seconds=st.integers(0, 4).map(float),
        exclusive=st.booleans(),
        link_ratio=st.sampled_from([1.0, 0.6, 0.25]),
    ),
)
kernels = tasks.filter(lambda task: task.kind == "kernel")
lists = st.lists(tasks, min_size=1, max_size=5).filter(
    lambda found: sum(t.seconds + t.gap_seconds for t in found) > 0
)
devices = st.builds(
    Device,
    pes=st.sampled_from([1, 3, 10]),
    warps_per_pe=st.just(8),
    resources=st.sampled_from([{}, {"memory": 40.0}]),
    bus=st.sampled_from(["per_direction", "shared"]),
    placement=st.sampled_from(["pack", "spread"]),
    time_slice_seconds=st.sampled_from([0.5, 2.0]),
)
models = st.sampled_from(["concurrent", "sequential", "time-sliced"])


def apps(found: list[list[Task]]) -> list[Application]:
    return [Application.of(f"a{number}", *part) for number, part in enumerate(found)]


def task_ends(
    tenants: list[Tenant], device: Device, sharing: str = "concurrent", engine: Any = simulate
) -> np.ndarray:
    return np.concatenate(engine(tenants, device, sharing).task_ends)


@st.composite
def in_lanes(draw) -> list[Task]:
    """Tasks in up to three lanes, some of which wait for an earlier one."""
    found = draw(lists)
    lanes = [draw(st.integers(0, 2)) for _ in found]
    return [
        replace(
            task,
            lane=lanes[at],
            after=draw(st.sampled_from([None, *range(at)])) if at else None,
        )
        for at, task in enumerate(found)
    ]


@quick
@given(
    found=st.lists(st.one_of(lists, in_lanes()), min_size=1, max_size=4),
    device=devices,
    model=models,
    most=st.sampled_from([None, 2]),
    loops=st.booleans(),
)
def test_both_simulators_agree(found, device, model, most, loops) -> None:
    tenants = [
        Tenant(app, None if loops and number else 2, start_seconds=0.25 * number, most_pes=most)
        for number, app in enumerate(apps(found))
    ]
    plain, fast = (
        engine(tenants, device, model, until_seconds=STARVED)
        for engine in (simulate_plainly, simulate)
    )
    assert fast.tasks == plain.tasks
    for ours, theirs in zip(
        (*fast.task_ends, *fast.latencies), (*plain.task_ends, *plain.latencies), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def busy(seed: int, tenants: int, length: int = 25) -> list[Application]:
    """Kernels of all sizes and transfers of both kinds at times that never coincide."""
    random = np.random.default_rng(seed)
    found: list[list[Task]] = []
    for _ in range(tenants):
        part = []
        for _ in range(length):
            gap, seconds = random.exponential((0.2, 1.0)).tolist()
            if random.random() < 0.2:
                kind = ("htod", "dtoh")[random.integers(2)]
                pinned, link = bool(random.random() < 0.3), float(random.uniform(0.2, 1))
                part.append(Task(kind, seconds, gap, exclusive=pinned, link_ratio=link))
                continue
            needs = {
                name: float(random.uniform(0, 9))
                for name in ("memory", "l2")
                if random.random() < 0.6
            }
            blocks = int(2 ** random.uniform(0, 8))
            part.append(Task("kernel", seconds, gap, blocks, 2, 0.5, needs))
        found.append(part)
    return apps(found)


@pytest.mark.parametrize("seed", range(6))
def test_both_simulators_agree_on_crowded_devices(seed: int) -> None:
    many = (2, 4, 8, 16)[seed % 4]
    device = Device(
        *(10, 8, {"memory": 40.0, "l2": 30.0}),
        placement=("pack", "spread")[seed % 2],
        partitions=(Partition(6, 0.7), Partition(4, 0.3)) if seed >= 4 else (),
    )
    tenants = [
        Tenant(
            app,
            2 if number == 0 else None,
            start_seconds=0.3 * number,
            partition=number % len(device.pools),
            most_pes=2 if number % 3 == 2 else None,
        )
        for number, app in enumerate(busy(seed, many, 160 // (many + 4)))
    ]
    plain, fast = (engine(tenants, device) for engine in (simulate_plainly, simulate))
    assert fast.tasks == plain.tasks
    for ours, theirs in zip(fast.run_ends, plain.run_ends, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@quick
@given(found=lists, device=devices, model=models)
def test_alone_is_solo(found, device, model) -> None:
    app = apps([found])[0]
    ends = task_ends([Tenant(app)], device, sharing=model)
    np.testing.assert_allclose(ends[-1], app.solo_seconds, rtol=1e-9)


@quick
@given(first=kernels, second=kernels, device=devices, model=models, later=st.integers(0, 5))
def test_a_corunner_never_helps(first, second, device, model, later) -> None:
    app, other = (Application.of("a", replace(t, seconds=t.seconds + 1)) for t in (first, second))
    both = [Tenant(app), Tenant(other, start_seconds=float(later))]
    together = simulate(both, device, model)
    for tenant, ends in zip(both, together.run_ends, strict=True):
        assert ends[0] >= tenant.start_seconds + tenant.application.solo_seconds - 1e-9


@quick
@given(found=st.lists(lists, min_size=2, max_size=3), device=devices)
def test_work_is_conserved(found, device) -> None:
    """One kernel at a time: the device is never idle while one waits, and does no work twice."""
    only = [
        [replace(t, kind="kernel", gap_seconds=0.0, seconds=t.seconds + 1) for t in part]
        for part in found
    ]
    tenants = [Tenant(app) for app in apps(only)]
    total = sum(tenant.application.solo_seconds for tenant in tenants)
    for model in ("sequential", "time-sliced"):
        ends = task_ends(tenants, device, sharing=model)
        np.testing.assert_allclose(np.max(ends), total, rtol=1e-9)


@pytest.mark.parametrize("engine", [simulate_plainly, simulate])
def test_partitions_do_not_touch_each_other(engine: Any) -> None:
    app = Application.of("a", Task("kernel", 10.0, blocks=80, needs={"memory": 10.0}))
    device = Device(10, 8, {"memory": 100.0}, partitions=(Partition(5, 0.5), Partition(5, 0.5)))
    apart = [Tenant(app, partition=0), Tenant(app, partition=1)]
    # Each has half the PEs and half the bandwidth: two batches of 10 s.
    assert task_ends(apart, device, engine=engine).tolist() == [20, 20]
    limited = [Tenant(app, most_pes=5), Tenant(app, most_pes=5)]
    shared = replace(device, partitions=())
    assert task_ends(limited, shared, engine=engine).tolist() == [20, 20]


def test_nonsense_is_refused() -> None:
    app = Application.of("a", Task("kernel", 1.0, blocks=1))
    with pytest.raises(UsageError, match="never end"):
        simulate([Tenant(app, None)], Device(1))
    with pytest.raises(UsageError, match="partition 1"):
        simulate([Tenant(app, partition=1)], Device(1))
    with pytest.raises(UsageError, match="out of order"):
        Tenant(app, 2, arrivals=np.array([2.0, 1.0]))
    for bad in (
        Task("kernel", float("nan")),
        Task("kernel", -1.0),
        Task("copy", 1.0),
        Task("kernel", 1.0, blocks=0),
        Task("htod", 1.0, link_ratio=0.0),
        Task("kernel", 1.0, needs={"memory": -1.0}),
    ):
        with pytest.raises(BadData, match="task 0"):
            Application.of("bad", bad)
    with pytest.raises(BadData, match="no time"):
        Application.of("idle", Task("kernel", 0.0))
    with pytest.raises(UsageError, match="placement"):
        Device(1, placement="anywhere")


def test_without_numba_the_same_loop_runs_in_plain_python() -> None:
    code = """
import sys
sys.modules["numba"] = None
from jostle.gpu import Application, Device, Task, Tenant, simulate

one = Application.of("a", Task("htod", 1.0), Task("kernel", 4.0, blocks=80))
other = Application.of("b", Task("kernel", 3.0, blocks=40))
for sharing in ("concurrent", "sequential", "time-sliced"):
    found = simulate([Tenant(one, 2), Tenant(other, None)], Device(10, 8), sharing)
    print(*found.run_ends[0].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    one = Application.of("a", Task("htod", 1.0), Task("kernel", 4.0, blocks=80))
    tenants = [Tenant(one, 2), Tenant(Application.of("b", Task("kernel", 3.0, blocks=40)), None)]
    for line, sharing in zip(
        done.stdout.splitlines(), ("concurrent", "sequential", "time-sliced"), strict=True
    ):
        expected = simulate(tenants, Device(10, 8), sharing).run_ends[0]
        assert [float(text) for text in line.split()] == pytest.approx(expected.tolist())
