"""How many instances fit, latency of queries, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.data import GPUS, tasks_from_rows
from jostle.errors import UsageError
from jostle.gpu import (
    Application,
    Device,
    DeviceTenant,
    Fit,
    Latency,
    Objective,
    Task,
    Wish,
    applications_of,
    causes,
    how_many_fit,
)

DEVICE = Device(10, 8)
SERVICE = Application.of("asr", Task("kernel", 1.0, blocks=40))  # 5 of 10 PEs
SMALL = Application.of("md", Task("kernel", 0.73, blocks=8))  # 1 PE, never in step with the service
COPIES = Application.of("pf", Task("htod", 1.0))


def service(objective: Objective | None = None, application: Application = SERVICE) -> Wish:
    return Wish(application.name, DeviceTenant(application), objective or Objective())


def test_as_many_fit_as_there_are_free_pes() -> None:
    fit = how_many_fit(service(Objective(1.0)), SMALL, DEVICE, most=8)
    assert fit.instances == 5
    assert "6 of md" in fit.reason
    assert "slowdown" in fit.reason
    assert [one.verdict for one in fit.sets] == ["within"] * 6 + ["over"]


def test_other_resources_do_not_count() -> None:
    fit = how_many_fit(service(Objective(1.0)), COPIES, DEVICE)
    assert fit.instances == 15
    assert "all 15" in fit.reason


def test_a_latency_limit_may_be_missed_alone() -> None:
    fit = how_many_fit(service(Objective(2.0, 0.5)), SMALL, DEVICE)
    assert fit.instances == -1
    assert fit.limit == "latency"
    assert "alone" in fit.reason


def test_what_costs_is_named() -> None:
    mixed = Application.of("bp", Task("htod", 1.3), Task("kernel", 0.8, blocks=80))
    both = Application.of("imc", Task("htod", 1.0), Task("kernel", 1.0, blocks=80))
    found = causes(both, [mixed], DEVICE)
    assert found.kernels_seconds > 0
    assert found.transfers_seconds > 0
    assert causes(SERVICE, [COPIES], DEVICE).kernels_seconds == pytest.approx(0, abs=1e-12)


def test_order_statistics_are_exact() -> None:
    latency = Latency.of(np.arange(1, 101, dtype=float))
    assert (latency.p95_seconds, latency.p99_seconds) == (95, 99)
    with pytest.raises(UsageError):
        Latency.of(np.zeros(0))


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
    asked = service(Objective(1e6), replace(SERVICE, memory_bytes=10e9))
    batch = replace(SMALL, memory_bytes=6e9)

    def fits(gigabytes: float | None, mode: str = "concurrent") -> Fit:
        size = None if gigabytes is None else gigabytes * 1e9
        device = replace(DEVICE, memory_bytes=size)
        return how_many_fit(asked, batch, device, [mode], most=4)

    assert [fits(size).instances for size in (9.9, 10, 15.9, 16, 22.5, 40)] == [-1, 0, 0, 1, 2, 4]
    assert fits(None).instances == 4
    assert "alone does not fit" in fits(9.9).reason
    assert [len(fits(size).sets) for size in (9.9, 16, 40)] == [1, 2, 5]
    assert fits(22.5).reason == "more do not fit into the device's memory of 22.5 GB"
    # Slices have a share of it: of 24 GB a half has room for two; 3/10 for one and 7/10 for the service.
    assert fits(24, "0.5,0.5").instances == 2
    assert fits(24, "0.3,0.7").instances == 2
    assert fits(14, "0.5,0.5").instances == -1
