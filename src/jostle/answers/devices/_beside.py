"""How many batch instances fit beside a service on one accelerator: the question, its device, its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._options import Confidence, Limits, Positional
from jostle._report import Report
from jostle._tables import cells
from jostle.answers.devices._fits import one_answer, table_answer
from jostle.answers.devices._sets import MODES, read_wishes, sets_report
from jostle.answers.devices._simulation import MeasuredRest, Simulation, measured_of
from jostle.errors import BadData, UsageError, require_known

if TYPE_CHECKING:
    import numpy as np

    from jostle.accelerator import Application, Device
    from jostle.progress import Progress
    from jostle.traces import Profile


@dataclass(frozen=True, kw_only=True)
class FitQuestion:
    """How many instances of a batch workload may share the device; without --batch, of each in the folder;
    with --tenants, which sets of several services and batch jobs may, and in which way.
    Where runs of these workloads side by side were measured, answers are learned from them, too, and safe is
    what their bounds keep. Exit code 0: safe, 1: not even one (or not as many as asked; not all tenants
    together), 3: runs were measured and no bound is valid."""

    dataset: Annotated[
        Path, "A folder with solo profiles (see jostle import profile).", Positional()
    ]
    service: Annotated[
        str | None, "The service whose latency must hold.  [default: each in turn]"
    ] = None
    batch: Annotated[
        str | None, "The batch workload to put beside it.  [default: every other, a table]"
    ] = None
    tenants: Annotated[
        Path | None,
        "Instead: a table of services and batch jobs, each with its own rate_per_second, statistic, deadline "
        "and memory, as for jostle place.",
    ] = None
    objective: Annotated[str, "Slowdown allowed, such as 2.0x; 'none' for none."] = "2.0x"
    latency: Annotated[str | None, "Latency allowed, with its unit: 100ms, 0.5s."] = None
    statistic: Annotated[str, "What must hold: mean, p95, p99 or max."] = "mean"
    instances: Annotated[
        int | None, "Ask whether so many are safe, instead of how many.", Limits(0)
    ] = None
    most: Annotated[int, "Look no further than this.", Limits(0, 1000)] = 15
    model: Annotated[
        str | None,
        "A fitted model of measured co-runs; none: simulate alone.  [default: learned from the folder's own "
        "runs, where it has some]",
    ] = None
    platform: Annotated[str | None, "Of the measured runs.  [default: their only one]"] = None
    confidence: Confidence = DEFAULT_CONFIDENCE

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)

    def answer(
        self,
        hardware: DeviceQuestion,
        load: LoadQuestion,
        progress: Progress,
        note: Callable[[str], None],
    ) -> Report:
        """The co-locations simulated, one in detail or all as a table. note: gets remarks on the profiles.
        Raises what reading raises."""
        from jostle.accelerator import Objective, SimulationOptions, what_fits

        if self.tenants is not None:
            return self._sets(self.tenants, hardware, load, progress, note)
        slowdown = None
        if self.objective.lower() != "none":
            slowdown = cells.asked(cells.slowdown, self.objective, "`objective`", "2.0x")
        latency = cells.asked(cells.seconds, self.latency, "`latency`", "100ms or 0.5s")
        objective = Objective(slowdown, latency, self.statistic)
        applications, device, profiles = hardware.read(self.dataset, self.service, self.batch, note)
        require_known("workload", (self.service, self.batch), applications, where=str(self.dataset))
        measured, remarks = self._measured(hardware, device, profiles)
        if measured is not None and hardware.bus is None:
            device = replace(device, bus=measured.rest.device.bus)
        simulation = Simulation(
            applications,
            device,
            SimulationOptions(hardware.one_sharing or _sharing(measured), hardware.transfers),
            objective,
            queries=load.queries,
            arrivals=load.times(),
            batch_pes=hardware.batch_pes(device),
            instances=self.instances,
            most=self.most,
            rate=load.rate,
            seed=load.seed,
            measured=measured,
            remarks=tuple(remarks),
        )
        if self.service is not None and self.batch is not None:
            return one_answer(simulation, self.service, self.batch)
        names = sorted(applications)
        fits = what_fits(
            [simulation.service(name) for name in names if self.service in (None, name)],
            [applications[name] for name in names if self.batch in (None, name)],
            device,
            simulation.options,
            batch_pes=simulation.batch_pes,
            most=simulation.look_to,
            rest=simulation.rest,
            progress=progress,
        )
        return table_answer(simulation, fits)

    def _measured(
        self, hardware: DeviceQuestion, device: Device, profiles: Mapping[str, Profile]
    ) -> tuple[MeasuredRest | None, list[str]]:
        from jostle.methods import read

        asked = self.platform, self.confidence, hardware.gpu
        return measured_of(self.model, read(self.dataset), profiles, device, *asked)

    def _sets(
        self,
        tenants: Path,
        hardware: DeviceQuestion,
        load: LoadQuestion,
        progress: Progress,
        note: Callable[[str], None],
    ) -> Report:
        """Which sets of the tenants fit."""
        from jostle.accelerator import sets_that_fit

        # What is about one service and one batch workload; an option that had no effect would be an answer
        # to another question.
        both = ("dataset", "tenants", "model", "platform", "confidence")
        own = [field.name for field in fields(self) if field.name not in both]
        odd = [*_set(self, *own), *_set(hardware, "partition", "sm_share", "transfers")]
        if odd := [*odd, *_set(load, "rate", "arrivals")]:
            raise UsageError(
                f"{', '.join(odd)} cannot go with `tenants`",
                fix="Each tenant's limit, statistic and rate stand in the table; slices go with `sharing`.",
            )
        applications, device, profiles = hardware.read(self.dataset, None, None, note)
        wishes, unused = read_wishes(tenants, applications)
        measured, remarks = self._measured(hardware, device, profiles)
        if measured is not None and hardware.bus is None:
            device = replace(device, bus=measured.rest.device.bus)
        modes = hardware.sharing or ((_sharing(measured),) if measured else MODES)
        sets = sets_that_fit(
            wishes,
            device,
            modes,
            queries=load.queries,
            seed=load.seed,
            rest=measured.rest if measured else None,
            progress=progress,
        )
        names = {wish.tenant.application.name for wish in wishes}
        notes = sorted({f"{name}: {text}" for name in names for text in applications[name].notes})
        remarks += [*(measured.notes if measured else ()), *notes, *([unused] if unused else [])]
        return sets_report(sets, modes, remarks)


@dataclass(frozen=True, kw_only=True)
class DeviceQuestion:
    """The device, its slices, and how it is shared."""

    gpu: Annotated[str | None, "The device, instead of the profiles' own."] = None
    device: Annotated[
        str | None,
        "Of profiles of several devices: which, by number or name.  [default: the first]",
    ] = None
    sharing: Annotated[
        tuple[str, ...],
        "How kernels share: concurrent, sequential, time-sliced or a plug-in; with --tenants also shares "
        "(MPS) or slices such as 3g,4g (MIG), and repeated for each way to try.  [default: as learned; else "
        "concurrent, with --tenants time-sliced and shares, too]",
    ] = ()
    transfers: Annotated[str, "How transfers share the bus: pcie or a plug-in."] = "pcie"
    bus: Annotated[
        str | None, "per_direction or shared.  [default: as learned; else per_direction]"
    ] = None
    placement: Annotated[str, "Blocks on PEs: pack or spread."] = "pack"
    partition: Annotated[
        str | None,
        "Slices of the device (MIG), the service's first: 3g,4g, or PEs or a share of them, each "
        "with a share of memory after a colon: 60:0.5,60:0.5; one alone leaves the rest.",
    ] = None
    sm_share: Annotated[
        float | None, "Of the PEs, what each batch instance may use at most (MPS), 0 to 1."
    ] = None
    memory: Annotated[
        str | None,
        "Of the device, such as 40GiB.  [default: what its name or the table of devices says]",
    ] = None
    pinned: Annotated[bool, "Transfers that do not say were from pinned memory."] = False
    memory_need: Annotated[float | None, "Bytes/s per PE of kernels whose profile has none."] = None

    def read(
        self,
        dataset: Path,
        service: str | None,
        batch: str | None,
        note: Callable[[str], None],
    ) -> tuple[dict[str, Application], Device, Mapping[str, Profile]]:
        """The applications of the profiles, the device or its slice, and the profiles. Of profiles of several
        devices those on the service's count."""
        import jostle
        from jostle.accelerator import applications_of, split_device

        profiles = jostle.read(dataset).profiles
        if self.gpu is None and self.device is None:
            profiles = _on_one_device(profiles, service, batch, note)
        applications, device = applications_of(
            profiles,
            self.gpu,
            pinned=self.pinned,
            memory_need=self.memory_need,
            device=self.device,
        )
        device = replace(
            device,
            bus=self.bus or device.bus,
            placement=self.placement,
            memory_bytes=self.memory_bytes or device.memory_bytes,
        )
        if self.partition is not None:
            device = split_device(device, self.partition)
        return applications, device, profiles

    @property
    def one_sharing(self) -> str | None:
        """How kernels share, of questions about one way; None: not given. Raises UsageError for several."""
        if len(self.sharing) > 1:
            raise UsageError("several `sharing` go with `tenants`")
        return self.sharing[0] if self.sharing else None

    @property
    def memory_bytes(self) -> float | None:
        """Raises UsageError."""
        return cells.asked(cells.size, self.memory, "`memory`", "40GiB")

    def batch_pes(self, device: Device) -> int | None:
        """How many PEs each batch instance may use; None: all."""
        if self.sm_share is None:
            return None
        if not 0 < self.sm_share <= 1:
            raise UsageError(f"`sm_share` {self.sm_share} is not above 0 and at most 1")
        return max(1, round(self.sm_share * device.pes))


@dataclass(frozen=True, kw_only=True)
class LoadQuestion:
    """When queries arrive at the service."""

    rate: Annotated[float | None, "Queries per second, at random times; else back to back."] = None
    arrivals: Annotated[
        Path | None, "A file of times in seconds, one on a line, at which queries arrive."
    ] = None
    queries: Annotated[
        int | None,
        "Queries to simulate.  [default: 50, fewer where they are long, 101 for p99; at a rate up to 20 000]",
        Limits(1),
    ] = None
    seed: Annotated[int, "Of the arrivals."] = 0

    def times(self) -> np.ndarray | None:
        """Seconds at which they arrive by a file; None: back to back, or at the rate."""
        from jostle.accelerator import read_arrivals

        if self.rate is not None and self.arrivals is not None:
            raise UsageError("give `rate` or `arrivals`, not both")
        return None if self.arrivals is None else read_arrivals(self.arrivals)


def _set(settings: object, *names: str) -> list[str]:
    """Of these fields those that differ from their defaults, as an error names them."""
    defaults = {field.name: field.default for field in fields(settings)}  # pyright: ignore
    return [f"`{name}`" for name in names if getattr(settings, name) != defaults[name]]


def _on_one_device(
    profiles: Mapping[str, Profile],
    service: str | None,
    batch: str | None,
    note: Callable[[str], None],
) -> Mapping[str, Profile]:
    """The profiles of the device that the service was profiled on, and without a service that most were."""
    device = {}
    for run_id, profile in profiles.items():
        row = profile.gpus.get(profile.devices[0])
        if row is not None:
            device[run_id] = row.name
    if len(set(device.values())) < 2:
        return profiles
    of_service = [device[i] for i in device if profiles[i].workload == service]
    counted = Counter(of_service or device.values())
    chosen = min(counted, key=lambda name: (-counted[name], name))
    rest = {i: profile for i, profile in profiles.items() if device.get(i, chosen) == chosen}
    there = {profile.workload for profile in rest.values()}
    gone = {profiles[i].workload: name for i, name in device.items()}
    for name in (service, batch):
        if name in gone and name not in there:
            raise BadData(
                f"{name} was profiled on {gone[name]}, not on {chosen}",
                fix=f"Profile it on {chosen}, too; or say `gpu` to take all profiles as of one device.",
            )
    left_out = ", ".join(sorted(set(gone) - there))
    also = f"; left out, profiled on others only: {left_out}" if left_out else ""
    n = len(set(device.values()))
    note(f"note: the folder has profiles of {n} devices: on {chosen}{also}")
    return rest


def _sharing(measured: MeasuredRest | None) -> str:
    return "concurrent" if measured is None else measured.rest.sharing
