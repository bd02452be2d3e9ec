"""The simulator as a method, so that bounds can be calibrated on measured co-runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

from jostle.accelerator._fitted import FittedAccelerator
from jostle.accelerator.applications._profiles import applications_of
from jostle.accelerator.learned._fit import USUAL_SHARING, learn_coruns
from jostle.methods import Data, FitWithout, Prepared, Restores, RunCounts, first_solo_runs

if TYPE_CHECKING:
    from jostle.progress import Progress


@dataclass(frozen=True)
class Accelerator(Restores):
    """Runtimes on an accelerator, from measured runs and simulations of solo profiles, weighed by runs left
    out."""

    gpu: Annotated[str | None, "The device, instead of the profiles' own."] = None
    sharing: Annotated[
        str | None,
        "How kernels share the device: concurrent, sequential, time-sliced or a plug-in.  [default: "
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

    name: ClassVar[str] = "accelerator"
    fitted: ClassVar[str] = "jostle.accelerator._fitted:FittedAccelerator"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "profiles"})
    offers_choice: ClassVar[bool] = False  # there is but one way to bound

    def prepare(self, data: Data) -> Prepared:
        """The runs of the data; its profiles are read when it learns. Answers are relative to the runtime
        alone, so one of each is required."""
        runs = data.runs_in_memory
        required = first_solo_runs(runs)
        return Prepared.of(data, runs, required=required, calibrate_by="together", is_close=True)

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAccelerator:
        """Applications from the profiles, the rest from the runs. Raises UnknownName for a workload of the
        runs without a profile, BadData where the profiles are of different hardware, MissingExtra without
        SciPy."""
        return self.fit_left_out(prepared, seed=seed, progress=progress)[0]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[FittedAccelerator, list[FitWithout]]:
        """As `fit`, and the same without each of some parts of the sets of workloads."""
        applications, device = applications_of(
            prepared.data.profiles, self.gpu, pinned=self.pinned, memory_need=self.memory_need
        )
        applications = dict(sorted(applications.items()))
        device = replace(device, bus=self.bus or device.bus, placement=self.placement)
        runs = prepared.together()
        learned = learn_coruns(runs, applications, device, (self.sharing, self.bus), seed)
        fitted = FittedAccelerator(
            applications,
            device,
            self.sharing or USUAL_SHARING,
            RunCounts.of(runs),
            learned.log_solo,
            learned.stacks,
            learned.most,
            learned.notes,
        )
        return fitted, [] if not learned.without else fitted.left_out(runs, learned.without)
