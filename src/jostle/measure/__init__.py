"""Measuring on this machine: workloads side by side on WebAssembly engines, into a dataset of runs.

This file is the room's whole public face; names load on first use, so importing it costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from .campaign._campaign import Campaign
    from .campaign._fleet import FleetInterrupted, FleetSummary, measure_fleet
    from .campaign._session import Interrupted, Progress, Summary, measure
    from .campaign._storage import recover
    from .counting._native_mix import NativeMix, native_mix, read_callgrind
    from .counting._opcode_counts import OpcodeCounts, count_opcodes
    from .host._facts import device_name, machine_facts
    from .slots._available import available_engines, engine_table
    from .tracing._trace import trace
    from .tracing._watch import Judgement
    from .window._check import MachineCheck, check_machine
    from .window._estimate import Tolerance
    from .workloads._program import Program
    from .workloads._workloads import (
        Workload,
        command_workload,
        find_workloads,
        module_workload,
        shipped_workloads,
    )

_HOMES = {
    "Campaign": "campaign._campaign",
    "FleetInterrupted": "campaign._fleet",
    "FleetSummary": "campaign._fleet",
    "Interrupted": "campaign._session",
    "Judgement": "tracing._watch",
    "MachineCheck": "window._check",
    "NativeMix": "counting._native_mix",
    "OpcodeCounts": "counting._opcode_counts",
    "Program": "workloads._program",
    "Progress": "campaign._session",
    "Summary": "campaign._session",
    "Tolerance": "window._estimate",
    "Workload": "workloads._workloads",
    "available_engines": "slots._available",
    "check_machine": "window._check",
    "command_workload": "workloads._workloads",
    "count_opcodes": "counting._opcode_counts",
    "device_name": "host._facts",
    "engine_table": "slots._available",
    "find_workloads": "workloads._workloads",
    "machine_facts": "host._facts",
    "measure": "campaign._session",
    "measure_fleet": "campaign._fleet",
    "module_workload": "workloads._workloads",
    "native_mix": "counting._native_mix",
    "read_callgrind": "counting._native_mix",
    "recover": "campaign._storage",
    "shipped_workloads": "workloads._workloads",
    "trace": "tracing._trace",
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
