"""Profiles of seven made workloads of a V100, and simulations on one by both simulators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle.accelerator import Application, Device, Tenant, simulate
from jostle.accelerator.learned._delays import Delays, Sharing
from jostle.runs import Colocations
from jostle.traces import GPUS, Profile, tasks_from_rows
from tests.accelerator.reference import simulate_plainly

DEVICE = Device.of(GPUS["V100"])
FULL = {"blocks": 160, "threads_per_block": 1024, "registers_per_thread": 32}  # of 80 PEs, two each
ENGINES = [simulate_plainly, simulate]

# asr, md and hw compute, pf and nn copy, bp and kms do both.
KINDS = {
    "asr": (["kernel"], 0.01),
    "md": (["kernel"], 0.013),
    "pf": (["htod"], 0.007),
    "bp": (["htod", "kernel"], 0.004),
    "hw": (["kernel"], 0.017),
    "nn": (["dtoh"], 0.005),
    "kms": (["kernel", "dtoh"], 0.006),
}
NAMES = tuple(KINDS)


def profile_of(name: str, gpu: str = "V100") -> Profile:
    kind, seconds = KINDS[name]
    shape = {"blocks": 80 * 4, "threads_per_block": 256, "registers_per_thread": 32}
    rows = []
    for number, what in enumerate(kind * 3):
        row = {"kind": what, "start_seconds": 0.1 + number * seconds, "duration_seconds": seconds}
        rows.append({**row, **(shape if what == "kernel" else {"bytes": 1000, "pinned": False})})
    return tasks_from_rows(rows, run_id=name, gpu=GPUS[gpu])


def ends(engine: Any, *applications: Application, sharing: str = "concurrent") -> list[float]:
    found = engine([Tenant(application) for application in applications], DEVICE, sharing)
    return [float(part[0]) for part in found.run_ends]


def simulated_seconds(
    applications: Mapping[str, Application], device: Device, sharing: str, asked: Colocations
) -> np.ndarray:
    """(n,) seconds by the simulator, nothing learned: one run of the workload, as long as its trace, its
    co-runners repeating. Raises UnknownName for a workload without an application."""
    names = tuple(applications)
    target, _, corunner = asked.codes_in(names, asked.platform_names)
    beside = np.zeros((len(asked), len(names)))
    np.add.at(beside, (np.repeat(np.arange(len(asked)), asked.number_of_corunners), corunner), 1)
    delays = Delays(tuple(applications.values()), device)
    way = Sharing(sharing, device.bus, "repeating")
    return delays.alone(way)[target] + delays.of(way, target, beside)
