"""How many batch instances fit beside a service on one accelerator: the question, its device, its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Confidence, Limits, NoOption, Positional
from jostle._base.report import Report
from jostle.data.tables import cells
from jostle.errors import BadData, UsageError, require_known
from jostle.models import CampaignQuestion
from jostle.operations.gpu_sharing._gpu_simulation import MeasuredRest, measured_of
from jostle.operations.gpu_sharing._instances_report import kept_of, one_answer, table_answer
from jostle.operations.gpu_sharing._tenants_report import read_wishes, sets_report

if TYPE_CHECKING:
    import numpy as np

    from jostle._base.progress import Progress
    from jostle.data import Profile
    from jostle.gpu import Application, Device, Wish


@dataclass(frozen=True, kw_only=True)
class FitQuestion(CampaignQuestion):
    """Count how many instances of a batch workload may share the device; without --batch, of each in the
    folder; with --tenants, which sets of several services and batch jobs may, and in which way. It is the
    question of jostle place safe on a fleet of one device, and has the same answer.
    Where runs of these workloads side by side were measured, answers are learned from them, too, and safe is
    what their bounds keep. Exit code 0: safe, 1: not even one (or not as many as asked; not all tenants
    together), 3: runs were measured and no bound is valid."""

    dataset: Annotated[
        Path, "A folder with solo profiles (see jostle import --kind profile).", Positional()
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
        """Simulate the co-locations. Returns one in detail, or all as a table. note: gets remarks on the
        profiles. Raises what reading raises."""
        from jostle.gpu import causes, how_many_fit, what_fits

        if self.tenants is not None:
            return self._sets(self.tenants, hardware, load, progress, note)
        applications, device, profiles = hardware.read(self.dataset, self.service, self.batch, note)
        require_known("workload", (self.service, self.batch), applications, where=str(self.dataset))
        measured, remarks, device = self._measured(hardware, device, profiles)
        rest = measured.rest if measured else None
        modes, wanted = hardware.modes(measured), 1 if self.instances is None else self.instances
        options = {
            "batch_share": hardware.batch_share,
            "most": self.most if self.instances is None else self.instances,
            "seed": load.seed,
            "rest": rest,
        }

        def notes(names: set[str]) -> list[str]:
            learned = measured.notes if measured else ()
            return [*remarks, *learned, *_notes(applications, names)]

        if self.service is not None and self.batch is not None:
            one, other = self._wish(applications[self.service], load), applications[self.batch]
            fit = how_many_fit(one, other, device, modes, **options)
            beside = min(kept_of(fit) + 1, len(fit.sets) - 1) or 1
            cost = causes(applications[self.service], [other] * beside, device, modes[0], rest)
            remarked = notes({self.service, self.batch})
            return one_answer(fit, (beside, cost), wanted, measured, remarked)
        names = sorted(applications)
        services = [name for name in names if self.service in (None, name)]
        fits = what_fits(
            [self._wish(applications[name], load) for name in services],
            [applications[name] for name in names if self.batch in (None, name)],
            device,
            modes,
            **options,
            progress=progress,
        )
        remarked = notes({name for fit in fits for name in (fit.service, fit.batch)})
        return table_answer(fits, self.statistic, wanted, measured, remarked)

    def _wish(self, application: Application, load: LoadQuestion) -> Wish:
        from jostle.gpu import DeviceTenant, Objective, Wish

        slowdown = None
        if self.objective.lower() != "none":
            slowdown = cells.asked(cells.slowdown, self.objective, "`objective`", "2.0x")
        latency = cells.asked(cells.seconds, self.latency, "`latency`", "100ms or 0.5s")
        tenant = DeviceTenant(application, load.rate, arrivals=load.times())
        return Wish(application.name, tenant, Objective(slowdown, latency, self.statistic))

    def _measured(
        self, hardware: DeviceQuestion, device: Device, profiles: Mapping[str, Profile]
    ) -> tuple[MeasuredRest | None, list[str], Device]:
        """Return what measured runs say, remarks, and the device with the bus as learned."""
        from jostle.learn import read

        asked = self.platform, self.confidence, hardware.gpu
        measured, remarks = measured_of(
            self.model, read(self.dataset), profiles, device, *asked, self.about
        )
        if measured is None and self.campaign is not None:
            raise UsageError(
                f"no campaign can be named: {remarks[0]}",
                fix="Leave `campaign` out, or say a `model` of measured co-runs.",
            )
        if measured is not None and hardware.bus is None:
            device = replace(device, bus=measured.rest.device.bus)
        return measured, remarks, device

    def _sets(
        self,
        tenants: Path,
        hardware: DeviceQuestion,
        load: LoadQuestion,
        progress: Progress,
        note: Callable[[str], None],
    ) -> Report:
        """Report which sets of the tenants fit."""
        from jostle.gpu import sets_that_fit

        # What is about one service and one batch workload; an option that had no effect would be an answer
        # to another question.
        both = ("dataset", "tenants", "model", "platform", "confidence", "campaign")
        own = [field.name for field in fields(self) if field.name not in both]
        odd = [*_set(self, *own), *_set(hardware, "sm_share"), *_set(load, "rate", "arrivals")]
        if odd:
            raise UsageError(
                f"{', '.join(odd)} cannot go with `tenants`",
                fix="Each tenant's limit, statistic, rate and share of the PEs stand in the table.",
            )
        applications, device, profiles = hardware.read(self.dataset, None, None, note)
        wishes, unused = read_wishes(tenants, applications)
        measured, remarks, device = self._measured(hardware, device, profiles)
        modes, rest = hardware.modes(measured), measured.rest if measured else None
        sets = sets_that_fit(wishes, device, modes, seed=load.seed, rest=rest, progress=progress)
        names = {wish.tenant.application.name for wish in wishes}
        remarks += measured.notes if measured else ()
        remarks += [*_notes(applications, names), *([unused] if unused else [])]
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
        "How the device is shared: concurrent, sequential, time-sliced, shares (MPS), or slices such as "
        "3g,4g (MIG; or PEs or a share of them, each with a share of memory after a colon: 60:0.5,60:0.5); "
        "repeat for each way to try, of which the best counts.  [default: as learned; else concurrent]",
    ] = ()
    bus: Annotated[
        str | None,
        "per_direction or shared.  [default: as learned; else per_direction]",
        NoOption(),
    ] = None
    placement: Annotated[str, "Blocks on PEs: pack or spread.", NoOption()] = "pack"
    sm_share: Annotated[
        float | None, "Of the PEs, what each batch instance may use at most (MPS), 0 to 1."
    ] = None
    memory: Annotated[
        str | None,
        "Of the device, such as 40GiB.  [default: what its name or the table of devices says]",
    ] = None
    pinned: Annotated[bool, "Transfers that do not say were from pinned memory.", NoOption()] = (
        False
    )
    memory_need: Annotated[float | None, "Bytes/s per PE of kernels without one.", NoOption()] = (
        None
    )

    def read(
        self,
        dataset: Path,
        service: str | None,
        batch: str | None,
        note: Callable[[str], None],
    ) -> tuple[dict[str, Application], Device, Mapping[str, Profile]]:
        """Read (the applications of the profiles, the device, the profiles). If profiles are of several
        devices, those on the service's count."""
        import jostle
        from jostle.gpu import applications_of

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
        return applications, device, profiles

    def modes(self, measured: MeasuredRest | None) -> tuple[str, ...]:
        """List the ways to share the device that are tried."""
        from jostle.placement import DEFAULT_MODES

        learned = DEFAULT_MODES if measured is None else (measured.rest.sharing,)
        return self.sharing or learned

    @property
    def memory_bytes(self) -> float | None:
        """Raises UsageError."""
        return cells.asked(cells.size, self.memory, "`memory`", "40GiB")

    @property
    def batch_share(self) -> float | None:
        """Return the share of the PEs that each batch instance may use at most; None: all."""
        if self.sm_share is not None and not 0 < self.sm_share <= 1:
            raise UsageError(f"`sm_share` {self.sm_share} is not above 0 and at most 1")
        return self.sm_share


@dataclass(frozen=True, kw_only=True)
class LoadQuestion:
    """Options that say when queries arrive at the service."""

    rate: Annotated[float | None, "Queries per second, at random times; else back to back."] = None
    arrivals: Annotated[
        Path | None, "A file of times in seconds, one on a line, at which queries arrive."
    ] = None
    seed: Annotated[int, "Of the arrivals.", NoOption()] = 0

    def times(self) -> np.ndarray | None:
        """Return seconds at which they arrive by a file; None: back to back, or at the rate."""
        from jostle.gpu import read_arrivals

        if self.rate is not None and self.arrivals is not None:
            raise UsageError("give `rate` or `arrivals`, not both")
        return None if self.arrivals is None else read_arrivals(self.arrivals)


def _set(settings: object, *names: str) -> list[str]:
    """List which of these fields differ from their defaults, as an error names them."""
    defaults = {field.name: field.default for field in fields(settings)}  # pyright: ignore
    return [f"`{name}`" for name in names if getattr(settings, name) != defaults[name]]


def _on_one_device(
    profiles: Mapping[str, Profile],
    service: str | None,
    batch: str | None,
    note: Callable[[str], None],
) -> Mapping[str, Profile]:
    """Keep the profiles of the service's device; without a service, of the device with the most profiles."""
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


def _notes(applications: Mapping[str, Application], names: set[str]) -> list[str]:
    """List what is to be known of the profiles of these workloads."""
    return sorted({f"{name}: {text}" for name in names for text in applications[name].notes})
