"""Latency of applications that share an accelerator, simulated from solo task traces.

Source: Prophet (ASPLOS 2017). This file is the room's whole public face. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._application import Application, Task
    from ._device import Device, Partition
    from ._models import (
        Concurrent,
        Model,
        PciExpress,
        Sequential,
        Station,
        Ticket,
        TimeSliced,
        model_named,
        model_names,
    )
    from ._simulate import Schedule, Tenant, simulate

_HOMES = {
    "Application": "_application",
    "Concurrent": "_models",
    "Device": "_device",
    "Model": "_models",
    "Partition": "_device",
    "PciExpress": "_models",
    "Schedule": "_simulate",
    "Sequential": "_models",
    "Station": "_models",
    "Task": "_application",
    "Tenant": "_simulate",
    "Ticket": "_models",
    "TimeSliced": "_models",
    "model_named": "_models",
    "model_names": "_models",
    "simulate": "_simulate",
}

__all__ = [
    "Application",
    "Concurrent",
    "Device",
    "Model",
    "Partition",
    "PciExpress",
    "Schedule",
    "Sequential",
    "Station",
    "Task",
    "Tenant",
    "Ticket",
    "TimeSliced",
    "model_named",
    "model_names",
    "simulate",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
