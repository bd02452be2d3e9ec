"""The accelerator that applications share: processing elements, shared resources, bus, partitions.

Source: Prophet (ASPLOS 2017), Table 1: Np processing elements (PEs), Nmw warps on each, effective global
memory bandwidth GB. Bus, placement and partitions are settings that the paper does not have.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from jostle.errors import UsageError, require_choice

if TYPE_CHECKING:
    from jostle.data import Gpu

BUSES = ("per_direction", "shared")
PLACEMENTS = ("pack", "spread")
MEMORY = "memory"
# As NVIDIA writes it, with the memory and what else the slice has: 3g, 3g.40gb, 1g.10gb+me, MIG 3g.40gb.
_MIG_NAME = re.compile(r"(?:mig )?(\dg)(?:\.(\d+)gb)?(?:\+[a-z.]+)?")
# Of the peak that data sheets give, what a kernel can really draw; measured as 80 to 92% on GPUs.
EFFECTIVE_SHARE = 0.85


@dataclass(frozen=True)
class Partition:
    """A slice with PEs and a share of every shared resource of its own (MIG). resource_ratio: 0 to 1."""

    pes: int
    resource_ratio: float = 1.0


@dataclass(frozen=True)
class Device:
    """Accelerator with its capacities.

    pes, warps_per_pe: Np, Nmw. resources: {name: capacity of the whole device}, in the unit in which kernels
    state their need per PE; `memory` is GB in bytes per second. A resource without an entry is unlimited.
    bus: transfers in both directions each have a link, or share one. placement: blocks fill one PE after the
    other, or spread over all. time_slice_seconds: of the time-sliced model. partitions: none means one that
    is the whole device. memory_bytes: None where it is not known. slices: that it can be cut into (MIG), see
    Gpu.slices.
    """

    pes: int
    warps_per_pe: int = 64
    resources: Mapping[str, float] = field(default_factory=dict)
    bus: str = "per_direction"
    placement: str = "pack"
    time_slice_seconds: float = 2e-3
    partitions: tuple[Partition, ...] = ()
    memory_bytes: float | None = None
    slices: tuple[tuple[str, int, float], ...] = ()

    def __post_init__(self) -> None:
        if self.pes < 1 or self.warps_per_pe < 1:
            raise UsageError(
                f"a device with {self.pes} PEs of {self.warps_per_pe} warps runs nothing"
            )
        for name, capacity in self.resources.items():
            if not capacity > 0:
                raise UsageError(f"the capacity of {name!r} is {capacity}, not above 0")
        require_choice("bus", self.bus, BUSES)
        require_choice("placement", self.placement, PLACEMENTS)
        if not (self.time_slice_seconds > 0 and math.isfinite(self.time_slice_seconds)):
            raise UsageError(f"a time slice of {self.time_slice_seconds} s is not above 0")
        for part in self.partitions:
            if part.pes < 1 or not 0 < part.resource_ratio <= 1:
                raise UsageError(f"{part} has no PEs or no share of the resources")
        if sum(part.pes for part in self.partitions) > self.pes:
            raise UsageError(f"the partitions have more PEs than the device's {self.pes}")
        if sum(part.resource_ratio for part in self.partitions) > 1 + 1e-9 and self.partitions:
            raise UsageError("the partitions share out more than all of the device's resources")

    @classmethod
    def of(cls, gpu: Gpu, **settings) -> Device:
        """Return the device of a row of hardware."""
        peak = gpu.memory_bandwidth_bytes_per_second
        resources = {MEMORY: peak * EFFECTIVE_SHARE} if peak else {}
        known = {"memory_bytes": gpu.memory_bytes, "slices": gpu.slices}
        return cls(gpu.pes, gpu.warps_per_pe, resources, **{**known, **settings})

    @property
    def pools(self) -> tuple[Partition, ...]:
        """The partitions, or the one that is the whole device."""
        return self.partitions or (Partition(self.pes),)


def split_device(device: Device, text: str) -> Device:
    """Return the device in partitions, the first of them the service's.

    text: slices with commas between them, each a MIG instance (`3g` or `3g.40gb`), a number of PEs, or a
    share of the PEs as a fraction or with a point (`3/7`, `0.5`); after a colon the share of every resource
    (as of the PEs by default). One slice alone, unless it is named, leaves the rest to a second. Raises
    UsageError.
    """
    parts = [_slice(device, part.strip()) for part in text.split(",")]
    if len(parts) == 1:
        rest = Partition(device.pes - parts[0].pes, 1 - parts[0].resource_ratio)
        if _MIG_NAME.fullmatch(text.strip().lower()) or rest.pes < 1 or rest.resource_ratio <= 0:
            raise UsageError(
                f"`partition` {text!r} leaves nothing that is known for the batch work",
                fix="Say every slice, such as 3g,4g or 0.5,0.5.",
            )
        parts.append(rest)
    return replace(device, partitions=tuple(parts))


def _slice(device: Device, text: str) -> Partition:
    full = _MIG_NAME.fullmatch(text.lower())
    known = dict.fromkeys(name for name, *_ in device.slices)
    if full and full[1] in known:
        alike = [(pes, ratio) for name, pes, ratio in device.slices if name == full[1]]
        if full[2] and device.memory_bytes:
            # Of the smallest slice there are some with twice the memory: 1g.20gb beside 1g.10gb.
            ratio = float(full[2]) * 1e9 / device.memory_bytes
            alike = [(pes, one) for pes, one in alike if 0.8 * one <= ratio <= 1.2 * one]
            if not alike:
                raise UsageError(
                    f"{text!r} is no slice of a device with {device.memory_bytes / 1e9:.0f} GB",
                    fix="Say which device it is with `gpu`, such as A100 80GB.",
                )
        return Partition(*alike[0])
    size, _, share = text.partition(":")
    try:
        amount = Fraction(size)
        whole = "." not in size and "/" not in size
        pes = int(amount if whole else amount * device.pes)
        return Partition(pes, float(Fraction(share)) if share else pes / device.pes)
    except (ValueError, ZeroDivisionError):
        named = f"one of {', '.join(known)}, " if known else ""
        raise UsageError(
            f"{text!r} is not a slice of a device of {device.pes} PEs",
            fix=f"Give {named}a number of PEs or a share such as 3/7, and after a colon the share of memory.",
        ) from None
