"""Schedules worked by hand, for every figure of the paper, exact in both simulators.

8 warps per PE, 10 PEs, K(seconds, warps, need per PE) submitted at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from jostle.gpu import Application, Device, Schedule, Task, Tenant, simulate
from tests.packages.gpu.reference import simulate_plainly

ENGINES = (simulate_plainly, simulate)
Engine = Callable[..., Schedule]


def exactly(expected: list) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def kernel(seconds: float, warps: int, need: float = 0, at: float = 0) -> Task:
    needs = {"memory": float(need)} if need else {}
    return Task("kernel", seconds, at, blocks=warps, needs=needs)


def shared(seconds: float, at: float = 0, kind: str = "htod", link: float = 1.0) -> Task:
    return Task(kind, seconds, at, link_ratio=link)


def exclusive(seconds: float, at: float = 0) -> Task:
    return Task("htod", seconds, at, exclusive=True)


def device(memory: float | None = None, **settings) -> Device:
    return Device(10, 8, {"memory": memory} if memory else {}, **settings)


def ends(
    *tasks: Task | list[Task], on: Device, engine: Engine, sharing: str = "concurrent"
) -> list:
    """The end of every task; each task or list of tasks is an application of its own."""
    tenants = [
        Tenant(Application.of(f"a{number}", *(task if isinstance(task, list) else [task])))
        for number, task in enumerate(tasks)
    ]
    found = engine(tenants, on, sharing)
    return [end for part in found.task_ends for end in part.tolist()]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


def test_figure_7_sequential_and_concurrent(engine: Engine) -> None:
    a, b = kernel(20, 120), kernel(6, 64, at=1)
    assert ends(a, b, on=device(), engine=engine) == exactly([20, 22])
    assert ends(a, b, on=device(), engine=engine, sharing="sequential") == exactly([20, 26])


def test_figure_8_a_third_kernel_runs_on_what_the_first_two_leave(engine: Engine) -> None:
    asked = kernel(10, 64), kernel(4, 80, at=1), kernel(1, 8, at=2)
    assert ends(*asked, on=device(), engine=engine) == exactly([10, 14, 11])


def test_memory_stretches_what_overlaps(engine: Engine) -> None:
    a = kernel(10, 40, 16)
    for b, expected in [
        (kernel(6, 40, 8, at=2), [11.2, 9.2]),
        (kernel(20, 40, 8, at=2), [11.6, 23.6]),
    ]:
        assert ends(a, b, on=device(100), engine=engine) == exactly(expected)


def test_alone_is_solo_however_saturated(engine: Engine) -> None:
    for task in (kernel(16, 80, 16), kernel(10, 40, 16), kernel(26, 120, 16)):
        assert ends(task, on=device(100), engine=engine) == exactly([task.seconds])
    both = kernel(26, 120, 16), kernel(5, 40, 12, at=1)
    assert ends(*both, on=device(100), engine=engine) == exactly([28, 23])


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([shared(10), shared(4, at=4)], [14, 12]),
        ([shared(6), shared(6), shared(4, at=6)], [15, 15, 16]),
        ([shared(10, link=0.6), shared(10, link=0.6)], [12, 12]),
        ([shared(10, link=0.3), shared(10, link=0.9)], [10, 12 + 2 / 9]),
    ],
)
def test_figures_9a_and_10_sharing_the_link(tasks: list, expected: list, engine: Engine) -> None:
    assert ends(*tasks, on=device(), engine=engine) == exactly(expected)


def test_figure_9b_behind_exclusive_transfers(engine: Engine) -> None:
    tasks = exclusive(8), shared(3, at=2), exclusive(4, at=3)
    assert ends(*tasks, on=device(), engine=engine) == exactly([8, 15, 12])


def test_figure_9c_exclusive_transfers_go_first(engine: Engine) -> None:
    tasks = [shared(10), shared(6, at=2), exclusive(5, at=4)]
    assert ends(*tasks, on=device(), engine=engine) == exactly([21, 19, 9])
    tasks += [exclusive(2, at=5), shared(1, at=6)]
    expected = [24, 22, 9, 11, 14]
    assert ends(*tasks, on=device(), engine=engine) == exactly(expected)


def test_directions_are_links_of_their_own_or_one(engine: Engine) -> None:
    tasks = shared(10), shared(10, kind="dtoh")
    assert ends(*tasks, on=device(), engine=engine) == exactly([10, 10])
    assert ends(*tasks, on=device(bus="shared"), engine=engine) == exactly([20, 20])


def test_transfers_and_kernels_together(engine: Engine) -> None:
    p = [shared(4), kernel(10, 40, 16, at=1), shared(3, kind="dtoh")]
    q = [shared(4, at=2), kernel(6, 80, 4)]
    expected = [6, 17, 20, 8, 20]
    assert ends(p, q, on=device(100), engine=engine) == exactly(expected)


def test_time_slices(engine: Engine) -> None:
    on = device(time_slice_seconds=2.0)
    tasks = kernel(5, 8), kernel(3, 8, at=1)
    found = ends(*tasks, on=on, engine=engine, sharing="time-sliced")
    assert found == exactly([7, 8])


def test_spread_blocks_take_part_of_every_pe(engine: Engine) -> None:
    # 10 blocks of 4 warps stand one on each of 10 PEs, so need 10 PEs' bandwidth; packed they need 5.
    task = Task("kernel", 10, blocks=10, warps_per_block=4, needs={"memory": 10.0})
    two = Task("kernel", 10, blocks=10, warps_per_block=4, needs={"memory": 10.0})
    packed = ends(task, two, on=device(100), engine=engine)
    assert packed == exactly([10, 10])
    spread = ends(task, two, on=device(100, placement="spread"), engine=engine)
    assert spread == exactly([20, 20])
    third = ends(task, two, kernel(1, 1), on=device(placement="spread"), engine=engine)
    assert third == exactly([10, 10, 11])


def test_looping_tenants_rest_when_the_others_are_done(engine: Engine) -> None:
    query = Application.of("query", kernel(2, 80))
    batch = Application.of("batch", kernel(3, 80))
    found = engine([Tenant(query, 3), Tenant(batch, None)], device())
    # query 2, batch 5, query 7, batch 10, query 12
    np.testing.assert_allclose(found.run_ends[0], [2, 7, 12])
    np.testing.assert_allclose(found.latencies[0], [2, 5, 5])
    np.testing.assert_allclose(found.run_ends[1], [5, 10])


def test_queries_wait_for_those_before_them(engine: Engine) -> None:
    query = Application.of("query", kernel(2, 80))
    arrivals = np.array([1.0, 2.0, 9.0])
    found = engine([Tenant(query, 3, arrivals=arrivals)], device())
    np.testing.assert_allclose(found.run_ends[0], [3, 5, 11])
    np.testing.assert_allclose(found.latencies[0], [2, 3, 2])
