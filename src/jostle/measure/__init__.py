"""Measuring on this machine: workloads side by side on WebAssembly engines, into a dataset of runs.

This file is the room's whole public face; names load on first use, so importing it costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._campaign import Campaign
    from ._check import MachineCheck, check_machine
    from ._counts import OpcodeCounts, count_opcodes
    from ._engines import available_engines, engine_table
    from ._estimate import Tolerance
    from ._facts import device_name, machine_facts
    from ._fleet import FleetInterrupted, FleetSummary, measure_fleet
    from ._measure import Interrupted, Progress, Summary, measure
    from ._native_mix import NativeMix, native_mix, read_callgrind
    from ._program import Program
    from ._storage import recover
    from ._trace import trace
    from ._trace_watch import Judgement
    from ._workloads import (
        Workload,
        command_workload,
        find_workloads,
        module_workload,
        shipped_workloads,
    )

_HOMES = {
    "Campaign": "_campaign",
    "FleetInterrupted": "_fleet",
    "FleetSummary": "_fleet",
    "Interrupted": "_measure",
    "Judgement": "_trace_watch",
    "MachineCheck": "_check",
    "NativeMix": "_native_mix",
    "OpcodeCounts": "_counts",
    "Program": "_program",
    "Progress": "_measure",
    "Summary": "_measure",
    "Tolerance": "_estimate",
    "Workload": "_workloads",
    "available_engines": "_engines",
    "check_machine": "_check",
    "command_workload": "_workloads",
    "count_opcodes": "_counts",
    "device_name": "_facts",
    "engine_table": "_engines",
    "find_workloads": "_workloads",
    "machine_facts": "_facts",
    "measure": "_measure",
    "measure_fleet": "_fleet",
    "module_workload": "_workloads",
    "native_mix": "_native_mix",
    "read_callgrind": "_native_mix",
    "recover": "_storage",
    "shipped_workloads": "_workloads",
    "trace": "_trace",
}

__all__ = [
    "Campaign",
    "FleetInterrupted",
    "FleetSummary",
    "Interrupted",
    "Judgement",
    "MachineCheck",
    "NativeMix",
    "OpcodeCounts",
    "Program",
    "Progress",
    "Summary",
    "Tolerance",
    "Workload",
    "available_engines",
    "check_machine",
    "command_workload",
    "count_opcodes",
    "device_name",
    "engine_table",
    "find_workloads",
    "machine_facts",
    "measure",
    "measure_fleet",
    "module_workload",
    "native_mix",
    "read_callgrind",
    "recover",
    "shipped_workloads",
    "trace",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
