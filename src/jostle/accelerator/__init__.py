"""Latency of applications that share an accelerator, simulated from solo task traces.

Source: Prophet (ASPLOS 2017). This file is the room's whole public face. Names load on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._application import Application, Task
    from ._arrivals import Latency, poisson_arrivals, read_arrivals
    from ._device import Device, Partition, split_device
    from ._method import Accelerator, read_applications
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
    from ._safe import Cause, Fit, Mix, Target, causes, how_many_fit, service_latency, what_fits
    from ._simulate import Schedule, Tenant, simulate

_HOMES = {
    "Accelerator": "_method",
    "Application": "_application",
    "Cause": "_safe",
    "Concurrent": "_models",
    "Device": "_device",
    "Fit": "_safe",
    "Latency": "_arrivals",
    "Mix": "_safe",
    "Model": "_models",
    "Partition": "_device",
    "PciExpress": "_models",
    "Schedule": "_simulate",
    "Sequential": "_models",
    "Station": "_models",
    "Target": "_safe",
    "Task": "_application",
    "Tenant": "_simulate",
    "Ticket": "_models",
    "TimeSliced": "_models",
    "causes": "_safe",
    "how_many_fit": "_safe",
    "model_named": "_models",
    "model_names": "_models",
    "poisson_arrivals": "_arrivals",
    "read_applications": "_method",
    "read_arrivals": "_arrivals",
    "service_latency": "_safe",
    "simulate": "_simulate",
    "split_device": "_device",
    "what_fits": "_safe",
}

__all__ = [
    "Accelerator",
    "Application",
    "Cause",
    "Concurrent",
    "Device",
    "Fit",
    "Latency",
    "Mix",
    "Model",
    "Partition",
    "PciExpress",
    "Schedule",
    "Sequential",
    "Station",
    "Target",
    "Task",
    "Tenant",
    "Ticket",
    "TimeSliced",
    "causes",
    "how_many_fit",
    "model_named",
    "model_names",
    "poisson_arrivals",
    "read_applications",
    "read_arrivals",
    "service_latency",
    "simulate",
    "split_device",
    "what_fits",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
