"""Profiles of seven made workloads of a V100."""

from __future__ import annotations

from jostle.traces import GPUS, Profile, tasks_from_rows

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
