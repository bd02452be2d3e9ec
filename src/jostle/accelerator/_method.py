"""The simulator as a method, so that bounds can be calibrated on measured co-runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from jostle.accelerator._fitted import FittedAccelerator
from jostle.accelerator.applications._profiles import applications_of
from jostle.methods import Data, Prepared

if TYPE_CHECKING:
    import numpy as np

    from jostle.progress import Progress


@dataclass(frozen=True)
class Accelerator:
    """Runtimes on an accelerator, simulated from solo profiles and corrected by measured runs."""

    gpu: Annotated[str | None, "The device, instead of the profiles' own."] = None
    sharing: Annotated[
        str, "How kernels share the device: concurrent, sequential, time-sliced or a plug-in."
    ] = "concurrent"
    bus: Annotated[
        str, "Whether transfers have a link per direction or one for both: per_direction or shared."
    ] = "per_direction"
    placement: Annotated[
        str, "Whether blocks fill one PE after the other or spread over all: pack or spread."
    ] = "pack"
    pinned: Annotated[
        bool, "Whether transfers whose profile does not say are from pinned memory."
    ] = False
    memory_need: Annotated[
        float | None, "Bytes per second and PE that kernels need whose profile does not say."
    ] = None

    name: ClassVar[str] = "accelerator"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "profiles"})
    offers_choice: ClassVar[bool] = False  # there is but one way to bound

    def prepare(self, data: Data) -> Prepared:
        """The runs of the data; its profiles are read when it learns."""
        return Prepared.of(data, data.runs_in_memory, calibrate_by="together")

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAccelerator:
        """Applications from the profiles, offsets from the runs. Raises UnknownName for a workload of the
        runs without a profile, BadData where the profiles are of different hardware."""
        applications, device = applications_of(
            prepared.data.profiles, self.gpu, pinned=self.pinned, memory_need=self.memory_need
        )
        device = replace(device, bus=self.bus, placement=self.placement)
        return FittedAccelerator.learned(applications, device, self.sharing, prepared.together())

    @classmethod
    def restore(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedAccelerator:
        """The inverse of to_arrays."""
        return FittedAccelerator.from_arrays(arrays, document)
