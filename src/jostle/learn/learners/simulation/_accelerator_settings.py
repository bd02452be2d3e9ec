"""The fields of the method: which device, and how it is shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from jostle.gpu import Application, Device, applications_of

if TYPE_CHECKING:
    from jostle.data import Profile


@dataclass(frozen=True)
class AcceleratorSettings:
    """The fields of Accelerator, without what it does."""

    gpu: Annotated[str | None, "The device, instead of the profiles' own."] = None
    sharing: Annotated[
        str | None,
        "How kernels share the device: concurrent, sequential or time-sliced.  [default: "
        "what measured runs say, concurrent without any]",
    ] = None
    bus: Annotated[
        str | None,
        "Whether transfers have a link per direction or one for both: per_direction or shared.  "
        "[default: what measured runs say, per_direction without any]",
    ] = None
    placement: Annotated[
        str, "Whether blocks fill one PE after the other or spread over all: pack or spread."
    ] = "pack"
    pinned: Annotated[
        bool, "Whether transfers whose profile does not say are from pinned memory."
    ] = False
    memory_need: Annotated[
        float | None, "Bytes per second and PE that kernels need whose profile does not say."
    ] = None

    def hardware(self, profiles: Mapping[str, Profile]) -> tuple[dict[str, Application], Device]:
        """Return ({workload: its application}, sorted by name, the device). Raises BadData if the profiles
        are of different hardware."""
        applications, device = applications_of(
            profiles, self.gpu, pinned=self.pinned, memory_need=self.memory_need
        )
        device = replace(device, bus=self.bus or device.bus, placement=self.placement)
        return dict(sorted(applications.items())), device
