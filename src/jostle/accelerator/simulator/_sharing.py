"""How kernels and transfers share the accelerator: models that users may add to.

A model makes a facility for a device; the simulator hands it tickets and moves its time. A package adds
one with an entry point in the group `jostle.kernel_models` or `jostle.transfer_models` that names a
callable without arguments returning a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Protocol

from jostle._registry import load, names_of
from jostle.accelerator._device import Device
from jostle.accelerator.simulator._facilities import (
    BusFacility,
    ConcurrentFacility,
    Facility,
    SequentialFacility,
    TimeSlicedFacility,
)


class SharingModel(Protocol):
    """resources: the device's, in the order of the tickets' needs. name: as registered."""

    @property
    def name(self) -> str: ...

    def facility(self, device: Device, resources: tuple[str, ...]) -> Facility: ...


@dataclass(frozen=True)
class Concurrent:
    """Kernels run beside each other (streams, MPS)."""

    name: str = "concurrent"

    def facility(self, device: Device, resources: tuple[str, ...]) -> Facility:
        return ConcurrentFacility(device, resources)


@dataclass(frozen=True)
class Sequential:
    """One kernel at a time."""

    name: str = "sequential"

    def facility(self, device: Device, resources: tuple[str, ...]) -> Facility:
        return SequentialFacility()


@dataclass(frozen=True)
class TimeSliced:
    """Turns of the device's time slice (processes without MPS)."""

    name: str = "time-sliced"

    def facility(self, device: Device, resources: tuple[str, ...]) -> Facility:
        return TimeSlicedFacility(device.time_slice_seconds)


@dataclass(frozen=True)
class PciExpress:
    """Prophet's three scenarios on the device's bus."""

    name: str = "pcie"

    def facility(self, device: Device, resources: tuple[str, ...]) -> Facility:
        return BusFacility(device.bus == "shared")


KERNEL_MODELS, TRANSFER_MODELS = "jostle.kernel_models", "jostle.transfer_models"


def sharing_model_names(group: str = KERNEL_MODELS) -> tuple[str, ...]:
    """Models that are installed, sorted."""
    return names_of(group)


@cache
def sharing_model_named(name: str, group: str = KERNEL_MODELS) -> SharingModel:
    """A model by name. Raises UnknownName."""
    return load(group, name)()
