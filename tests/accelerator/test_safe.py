"""How many instances fit, latency of queries, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.accelerator import (
    Application,
    Device,
    Fit,
    Latency,
    Objective,
    Partition,
    Service,
    Task,
    applications_of,
    causes,
    how_many_fit,
    poisson_arrivals,
    service_latency,
)
from jostle.errors import UsageError
from jostle.traces import GPUS, tasks_from_rows

DEVICE = Device(10, 8)
SERVICE = Application.of("asr", Task("kernel", 1.0, blocks=40))  # 5 of 10 PEs
SMALL = Application.of("md", Task("kernel", 0.73, blocks=8))  # 1 PE, never in step with the service
COPIES = Application.of("pf", Task("htod", 1.0))


def test_as_many_fit_as_there_are_free_pes() -> None:
    service = Service(SERVICE, Objective(1.0), queries=20)
    fit = how_many_fit(service, SMALL, DEVICE, most=8)
    assert fit.instances == 5
    assert "6 of md" in fit.reason
    assert "slowdown" in fit.reason
    assert [mix.safe for mix in fit.mixes] == [True] * 6 + [False]
    every = how_many_fit(service, SMALL, DEVICE, most=8, every=True)
    assert len(every.mixes) == 9
    assert every.instances == 5


def test_other_resources_do_not_count() -> None:
    fit = how_many_fit(Service(SERVICE, Objective(1.0), queries=4), COPIES, DEVICE)
    assert fit.instances == 15
    assert "all 15" in fit.reason


def test_a_latency_limit_may_be_missed_alone() -> None:
    fit = how_many_fit(Service(SERVICE, Objective(2.0, 0.5)), SMALL, DEVICE)
    assert fit.instances == -1
    assert fit.limit == "latency"
    assert "alone" in fit.reason


def test_what_costs_is_named() -> None:
    mixed = Application.of("bp", Task("htod", 1.3), Task("kernel", 0.8, blocks=80))
    service = Application.of("imc", Task("htod", 1.0), Task("kernel", 1.0, blocks=80))
    found = causes(Service(service, queries=20), [mixed], DEVICE)
    assert found.kernels_seconds > 0
    assert found.transfers_seconds > 0
    assert causes(Service(SERVICE), [COPIES], DEVICE).kernels_seconds == pytest.approx(0, abs=1e-12)


def test_open_loop_matches_the_queue_that_theory_knows() -> None:
    """M/D/1 at half load: mean latency = service + load * service / (2 * (1 - load))."""
    arrivals = poisson_arrivals(0.5, 20_000, seed=1)
    latency = service_latency(Service(SERVICE, arrivals=arrivals), [], DEVICE)
    assert latency.mean_seconds == pytest.approx(1 + 0.5 / (2 * 0.5), rel=0.05)
    assert latency.p99_seconds > latency.p95_seconds > latency.mean_seconds


def test_long_queries_beside_short_work_are_fewer() -> None:
    service = Service(SERVICE, queries=None)
    assert service_latency(service, [SMALL], DEVICE).queries == 50
    tiny = Application.of("tiny", Task("kernel", 1e-5, blocks=8))
    assert service_latency(service, [tiny], DEVICE).queries == 9
    assert service_latency(service, [tiny] * 4, DEVICE).queries == 3


def test_order_statistics_are_exact() -> None:
    latency = Latency.of(np.arange(1, 101, dtype=float))
    assert (latency.p95_seconds, latency.p99_seconds) == (95, 99)
    assert Latency.of(np.array([3.0])).p99_seconds == 3
    with pytest.raises(UsageError):
        Latency.of(np.zeros(0))


def test_nonsense_is_refused() -> None:
    nonsense: list[dict[str, Any]] = [
        {"slowdown_ratio": 0.5},
        {"slowdown_ratio": None},
        {"statistic": "p42"},
    ]
    for bad in nonsense:
        with pytest.raises(UsageError):
            Objective(**bad)
    with pytest.raises(UsageError):
        poisson_arrivals(0.0, 10, 0)


def test_a_percentile_takes_enough_queries() -> None:
    for statistic, least in (("p95", 21), ("p99", 101)):
        objective = Objective(2.0, statistic=statistic)
        with pytest.raises(UsageError, match="longest of them"):
            how_many_fit(Service(SERVICE, objective, queries=least - 1), SMALL, DEVICE)
        enough = how_many_fit(Service(SERVICE, objective, queries=least), SMALL, DEVICE, most=1)
        assert enough.mixes[0].latency.queries == least
        by_itself = how_many_fit(Service(SERVICE, objective, queries=None), SMALL, DEVICE, most=1)
        assert by_itself.mixes[0].latency.queries >= least


@pytest.mark.parametrize("statistic", ["p95", "p99"])
def test_at_a_rate_no_limit_is_kept_by_luck(statistic: str) -> None:
    """Of an M/D/1 queue at 70% load, whose tail in the long run is simulated; 101 queries call a limit of 0.9
    of the p99 kept in four of five draws."""
    arrivals = poisson_arrivals(0.7, 300_000, 99)
    ends, last = np.empty(len(arrivals)), 0.0
    for n, time in enumerate(arrivals.tolist()):
        last = ends[n] = max(last, time) + SERVICE.solo_seconds
    true = Latency.of(ends - arrivals).of_statistic(statistic)

    def kept(over: float) -> int:
        objective = Objective(None, over * true, statistic)
        found = [Service.at_rate(SERVICE, objective, 0.7, seed=seed) for seed in range(20)]
        return sum(how_many_fit(one, SMALL, DEVICE, most=0).instances == 0 for one in found)

    assert kept(0.9) <= 1
    assert kept(1.4) >= 18
    few = how_many_fit(
        Service.at_rate(SERVICE, Objective(None, true, statistic), 0.7), SMALL, DEVICE
    )
    assert "with 95% at most" in few.reason
    with pytest.raises(UsageError, match="too little"):
        Service.at_rate(SERVICE, Objective(2.0, statistic=statistic), 0.7, queries=150)


def test_of_several_profiles_of_a_workload_the_median_is_taken() -> None:
    profiles = {}
    for number, seconds in enumerate((0.03, 0.01, 0.02)):
        row = {"kind": "kernel", "start_seconds": 0.0, "duration_seconds": seconds}
        made = tasks_from_rows([row], run_id=f"run{number}", workload="asr", gpu=GPUS["V100"])
        profiles[made.run_id] = made
    applications, _ = applications_of(profiles)
    assert applications["asr"].solo_seconds == 0.02
    assert any("one of 3 profiles" in note for note in applications["asr"].notes)


def test_what_does_not_fit_into_memory_is_never_safe() -> None:
    """A service of 10 GB and batch work of 6: 1 beside it in 16, 2 in 22 and a bit, whatever the time."""
    service = Service(replace(SERVICE, memory_bytes=10e9), Objective(1e6))
    batch = replace(SMALL, memory_bytes=6e9)

    def fits(gigabytes: float | None, *slices: Partition) -> Fit:
        size = None if gigabytes is None else gigabytes * 1e9
        device = replace(DEVICE, memory_bytes=size, partitions=slices)
        return how_many_fit(service, batch, device, most=4, every=True)

    assert [fits(size).instances for size in (9.9, 10, 15.9, 16, 22.5, 40)] == [-1, 0, 0, 1, 2, 4]
    assert fits(None).instances == 4
    assert not fits(9.9).mixes[0].safe
    assert [len(fits(size).mixes) for size in (9.9, 16, 40)] == [1, 2, 5]
    assert fits(22.5).reason == "more do not fit into the device's memory of 22.5 GB"
    # Slices have a share of it: of 24 GB a half has room for two, 7/10 have room for the service.
    assert fits(24, Partition(5, 0.5), Partition(5, 0.5)).instances == 2
    assert fits(24, Partition(5, 0.3), Partition(5, 0.7)).instances == -1
    # Instances go to the others in turn: in 6.5 and 13 GB there is room for one, and then for one more.
    assert fits(32.5, Partition(4, 0.4), Partition(2, 0.2), Partition(4, 0.4)).instances == 2
