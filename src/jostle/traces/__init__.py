"""Time-resolved profiles: what runs did while they ran.

This file is the room's whole public face. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._counters import LEVELS, MARKS, Trace, Traces
    from ._gpus import GPUS, Gpu, gpu_named, known_gpu
    from ._perf_stat import read_perf_stat
    from ._profiles import read_profile, read_profiles, write_profiles
    from ._store import read_traces, write_traces
    from ._tasks import Profile, tasks_from_rows
    from ._waiting import all_without_waiting, without_waiting
    from ._windows import Windows

_HOMES = {
    "GPUS": "_gpus",
    "Gpu": "_gpus",
    "LEVELS": "_counters",
    "MARKS": "_counters",
    "Profile": "_tasks",
    "Trace": "_counters",
    "Traces": "_counters",
    "all_without_waiting": "_waiting",
    "Windows": "_windows",
    "gpu_named": "_gpus",
    "known_gpu": "_gpus",
    "read_perf_stat": "_perf_stat",
    "read_profile": "_profiles",
    "read_profiles": "_profiles",
    "read_traces": "_store",
    "tasks_from_rows": "_tasks",
    "without_waiting": "_waiting",
    "write_profiles": "_profiles",
    "write_traces": "_store",
}

__all__ = [
    "GPUS",
    "LEVELS",
    "MARKS",
    "Gpu",
    "Profile",
    "Trace",
    "Traces",
    "Windows",
    "all_without_waiting",
    "gpu_named",
    "known_gpu",
    "read_perf_stat",
    "read_profile",
    "read_profiles",
    "read_traces",
    "tasks_from_rows",
    "without_waiting",
    "write_profiles",
    "write_traces",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
