"""Profiles of seven made workloads of a V100, and simulations on one by both simulators."""

from __future__ import annotations

from typing import Any

from jostle.data import GPUS, Profile, tasks_from_rows
from jostle.gpu import Application, Device, Tenant, simulate
from tests.packages.gpu.reference import simulate_plainly

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
