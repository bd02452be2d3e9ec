"""How many instances fit, latency of queries, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle.accelerator import (
    Application,
    Device,
    Latency,
    Target,
    Task,
    causes,
    how_many_fit,
    poisson_arrivals,
    service_latency,
)
from jostle.errors import UsageError

DEVICE = Device(10, 8)
SERVICE = Application("asr", (Task("kernel", 1.0, blocks=40),))  # 5 of 10 PEs
SMALL = Application("md", (Task("kernel", 0.73, blocks=8),))  # 1 PE, never in step with the service
COPIES = Application("pf", (Task("htod", 1.0),))


def test_as_many_fit_as_there_are_free_pes() -> None:
    fit = how_many_fit(SERVICE, SMALL, DEVICE, Target(1.0), queries=20, most=8)
    assert fit.instances == 5
    assert "6 of md" in fit.reason
    assert "slowdown" in fit.reason
    assert [mix.safe for mix in fit.mixes] == [True] * 6 + [False]
    every = how_many_fit(SERVICE, SMALL, DEVICE, Target(1.0), queries=20, most=8, every=True)
    assert len(every.mixes) == 9
    assert every.instances == 5


def test_other_resources_do_not_count() -> None:
    fit = how_many_fit(SERVICE, COPIES, DEVICE, Target(1.0), queries=4)
    assert fit.instances == 15
    assert "all 15" in fit.reason


def test_a_latency_limit_may_be_missed_alone() -> None:
    fit = how_many_fit(SERVICE, SMALL, DEVICE, Target(2.0, 0.5))
    assert fit.instances == -1
    assert fit.limit == "latency"
    assert "alone" in fit.reason


def test_what_costs_is_named() -> None:
    mixed = Application("bp", (Task("htod", 1.3), Task("kernel", 0.8, blocks=80)))
    service = Application("imc", (Task("htod", 1.0), Task("kernel", 1.0, blocks=80)))
    found = causes(service, [mixed], DEVICE, queries=20)
    assert found.kernels_seconds > 0
    assert found.transfers_seconds > 0
    assert causes(SERVICE, [COPIES], DEVICE).kernels_seconds == pytest.approx(0, abs=1e-12)


def test_open_loop_matches_the_queue_that_theory_knows() -> None:
    """M/D/1 at half load: mean latency = service + load * service / (2 * (1 - load))."""
    arrivals = poisson_arrivals(0.5, 20_000, seed=1)
    latency = service_latency(SERVICE, [], DEVICE, arrivals=arrivals)
    assert latency.mean_seconds == pytest.approx(1 + 0.5 / (2 * 0.5), rel=0.05)
    assert latency.p99_seconds > latency.p95_seconds > latency.mean_seconds


def test_long_queries_beside_short_work_are_fewer() -> None:
    assert service_latency(SERVICE, [SMALL], DEVICE, queries=None).queries == 50
    tiny = Application("tiny", (Task("kernel", 1e-5, blocks=8),))
    assert service_latency(SERVICE, [tiny], DEVICE, queries=None).queries == 9
    assert service_latency(SERVICE, [tiny] * 4, DEVICE, queries=None).queries == 3


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
            Target(**bad)
    with pytest.raises(UsageError):
        poisson_arrivals(0.0, 10, 0)
