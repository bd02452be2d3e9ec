"""The simulator: applications of any number on one device, task by task, to the end of what was asked."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Sequence

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.simulator._reference import Reference
from jostle.accelerator.simulator._sharing import (
    KERNEL_MODELS,
    TRANSFER_MODELS,
    Concurrent,
    PciExpress,
    Sequential,
    SharingModel,
    TimeSliced,
    sharing_model_named,
)
from jostle.accelerator.simulator._tenants import Schedule, SimulationOptions, Tenant
from jostle.errors import MissingExtra, UsageError


def simulate(
    tenants: Sequence[Tenant],
    device: Device,
    options: SimulationOptions | None = None,
    *,
    until_seconds: float = np.inf,
) -> Schedule:
    """Run the tenants together.

    until_seconds: stop there even if runs are left: exclusive transfers can starve the others for ever.
    Raises UsageError where nothing would ever end, UnknownName for a model that is not registered.
    """
    options = options or SimulationOptions()
    sharing = _model(options.sharing, KERNEL_MODELS)
    transfers = _model(options.transfers, TRANSFER_MODELS)
    _check(tenants, device)
    if not until_seconds > 0:
        raise UsageError(f"a simulation until {until_seconds} s ends before it begins")
    used = (tenant.application.columns.resources for tenant in tenants)
    resources = tuple(sorted(set().union(*used)))
    if options.engine != "reference" and _compiles(sharing, transfers):
        if can_compile():
            from jostle.accelerator.simulator._compiled import simulate_compiled

            return simulate_compiled(tenants, device, sharing, resources, until_seconds)
        if options.engine == "compiled":
            raise MissingExtra("numba", "fit")
    elif options.engine == "compiled":
        raise UsageError("only the built-in models are compiled", fix="Use the engine reference.")
    return Reference(tenants, device, sharing, transfers, resources).run(until_seconds)


def can_compile() -> bool:
    """Whether built-in models are simulated by the compiled simulator here."""
    return bool(importlib.util.find_spec("numba")) and not os.environ.get("JOSTLE_REFERENCE")


def _model(model: str | SharingModel, group: str) -> SharingModel:
    return sharing_model_named(model, group) if isinstance(model, str) else model


def _compiles(sharing: SharingModel, transfers: SharingModel) -> bool:
    """Whether the compiled simulator has these models."""
    return type(sharing) in (Concurrent, Sequential, TimeSliced) and type(transfers) is PciExpress


def _check(tenants: Sequence[Tenant], device: Device) -> None:
    if all(tenant.runs is None for tenant in tenants):
        raise UsageError(
            "no tenant has a number of runs, so the simulation would never end",
            fix="Give at least one tenant runs=1.",
        )
    for tenant in tenants:
        if not 0 <= tenant.partition < len(device.pools):
            raise UsageError(
                f"{tenant.application.name} is in partition {tenant.partition} of a device with "
                f"{len(device.pools)}"
            )
