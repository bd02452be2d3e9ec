"""The audit of a campaign: its dataset against itself, its collector against other clocks and counters, and
against disturbers that it knows nothing of."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle._options import Flag, Limits, check_settings
from jostle.measure.audit._direct import (
    DirectTime,
    Overlap,
    SecondCount,
    can_time,
    contradictions,
    direct_times,
    overlaps,
    second_count,
    solo_medians,
)
from jostle.measure.audit._disturbers import Detection, detection
from jostle.measure.campaign._campaign import Campaign
from jostle.measure.campaign._slot_pool import SlotPool
from jostle.measure.campaign._summary import MeasureOptions
from jostle.measure.host._facts import Cores, chosen_cores, device_name
from jostle.measure.slots._available import available_engines
from jostle.measure.workloads._workloads import Workload, command_workload, shipped_workloads

if TYPE_CHECKING:
    from jostle.runs import Runs

# A loop without the collector and the collector may differ by so much, in the median of the kernels.
_MOST_OFF = 0.1
_WHOLE = 0.999
_STRONG_SHARE, _DETECTED, _FALSE_ALARMS = 0.25, 0.95, 0.05
_FALLBACK = ("sort-s", "matmul-s", "chase-s", "sha256-s")


@dataclass(frozen=True)
class AuditOptions:
    """How much is checked. Raises UsageError."""

    kernels: Annotated[int, "Kernels to time and count again.", Limits(0)] = 4
    sets: Annotated[int, "Sets to measure again, for their overlap.", Limits(0)] = 6
    windows: Annotated[int, "Windows for each strength of a disturber.", Limits(0)] = 20
    shares: Annotated[
        tuple[float, ...],
        "Of a core, held by a disturber; may be repeated.",
        Flag("--share"),
        Limits(0.01, 0.99),
    ] = (0.1, 0.25, 0.5)
    cores: Cores = None
    seed: Annotated[int, "Of what is chosen."] = 0

    def __post_init__(self) -> None:
        check_settings(self)


@dataclass(frozen=True)
class AuditReport:
    """What was found. engine: on which kernels ran. rows: runs in the dataset, contaminated: of them.
    contradictions: sentences. times, counts, overlaps, detections: of each kernel, set and disturber.
    notes: what could not be checked."""

    dataset: str
    engine: str
    rows: int
    contaminated: int
    contradictions: tuple[str, ...]
    overlaps: tuple[Overlap, ...]
    times: tuple[DirectTime, ...]
    counts: tuple[SecondCount, ...]
    detections: tuple[Detection, ...]
    notes: tuple[str, ...]

    def checks(self) -> dict[str, bool]:
        """What was to hold, and whether it does; a check that had nothing to look at is not there."""
        checks = {"the dataset does not contradict itself": not self.contradictions}
        if counted := [one for one in self.overlaps if one.counts]:
            checks["everyone was there all the time"] = all(
                one.common_ratio >= _WHOLE for one in counted
            )
        if (off := self.median_error) is not None:
            checks["the collector's times are those of a plain loop"] = off <= _MOST_OFF
        if self.counts:
            checks["instructions are counted alike in two ways"] = all(
                one.agrees for one in self.counts
            )
        strong = [one for one in self.detections if one.share >= _STRONG_SHARE]
        quiet = [one for one in self.detections if not one.share]
        if strong:
            checks["a disturber of a quarter of a core is flagged"] = all(
                one.interval[1] >= _DETECTED for one in strong
            )
        if quiet:
            checks["false alarms are few"] = all(one.interval[0] <= _FALSE_ALARMS for one in quiet)
        return checks

    @property
    def passed(self) -> bool:
        return all(self.checks().values())

    @property
    def median_error(self) -> float | None:
        """Of |collector / loop - 1|."""
        errors = [abs(one.error_ratio) for one in self.times if one.error_ratio is not None]
        return statistics.median(errors) if errors else None

    def to_json(self) -> dict[str, Any]:
        """A JSON document, schema measure-audit/v1."""
        document = {"schema": "measure-audit/v1", **asdict(self)}
        document["detections"] = [
            {**asdict(one), "rate": one.rate, "interval": list(one.interval)}
            for one in self.detections
        ]
        return {**document, "checks": self.checks(), "passed": self.passed}


def audit(
    dataset: str | Path,
    options: AuditOptions | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> AuditReport:
    """Check a dataset of campaigns, and on this machine the collector that makes them.

    progress: told what comes next. Raises UnreadableFile for what is no dataset, NotPermitted where
    processes cannot be pinned, MissingExtra.
    """
    from jostle.runs import Dataset

    options = options or AuditOptions()
    runs = Dataset(dataset).read()
    rows = runs.table.to_pylist()
    cores = chosen_cores(options.cores)
    notes: list[str] = []
    engine, platform = _engine(runs, cores, notes)
    kernels = _kernels(runs, options, notes)
    progress("the dataset against itself")
    sentences = contradictions(rows)
    progress("instructions in a second way")
    features = {
        row["workload"]: row
        for row in (runs.workload_features.to_pylist() if runs.workload_features else [])
    }
    counts = [second_count(one, features.get(one.name)) for one in kernels]
    progress("kernels by a plain loop")
    times = (
        direct_times(kernels, engine, solo_medians(rows, platform) if platform else {}, cores, 0.3)
        if can_time(engine) and kernels
        else []
    )
    progress("sets again, for their overlap")
    overlapping = _overlaps(kernels, engine, cores, options)
    detections = list[Detection]()
    for member, where in (
        *((one, engine) for one in kernels[:1]),
        (command_workload(["sleep", "0.05"], "a job that waits"), "native"),
    ):
        for share in (0.0, *options.shares) if options.windows else ():
            progress(f"{member.name} beside a disturber of {share:.0%} of a core")
            detections.append(
                detection(member, where, share=share, windows=options.windows, cores=cores)
            )
    return AuditReport(
        str(dataset),
        engine,
        len(rows),
        sum(row["status"] == "contaminated" for row in rows),
        tuple(sentences),
        tuple(overlapping),
        tuple(times),
        tuple(counts),
        tuple(detections),
        tuple(notes),
    )


def _engine(runs: Runs, cores: tuple[int, ...], notes: list[str]) -> tuple[str, str | None]:
    """(the engine to audit on, its platform in the dataset, None where that is not of this machine)."""
    here = [engine for engine in available_engines() if can_time(engine)]
    known = set(runs.table.column("platform").to_pylist())
    for engine in here:
        platform = Campaign(workloads=["sort-s"], engines=[engine], cores=cores, sets=0).platform(
            engine
        )
        if platform in known:
            return engine, platform
    notes.append(
        f"no platform of the dataset is an engine of this machine ({device_name(cores)}) that can be timed "
        "in a second way: its own times are not compared"
    )
    return (here[0] if here else "speed"), None


def _kernels(runs: Runs, options: AuditOptions, notes: list[str]) -> list[Workload]:
    """Shipped kernels of the dataset, as many as are wanted; others where it has none."""
    names = set(runs.table.column("workload").to_pylist())
    known = [one for one in shipped_workloads() if one.name in names]
    if not known:
        notes.append("the dataset has no shipped kernel: the collector is checked with others")
        known = [one for one in shipped_workloads() if one.name in _FALLBACK]
    # Short ones first: a window holds many of their repetitions.
    known.sort(key=lambda one: ("sml".find(one.size), one.name))
    short = [one for one in known if one.size == known[0].size] or known
    kernels = short if len(short) >= options.kernels else known
    random.Random(f"audit/{options.seed}").shuffle(kernels)
    return sorted(kernels[: options.kernels], key=lambda one: one.name)


def _overlaps(
    kernels: Sequence[Workload], engine: str, cores: tuple[int, ...], options: AuditOptions
) -> list[Overlap]:
    if not kernels or not options.sets:
        return []
    campaign = Campaign(
        workloads=list(kernels),
        engines=[engine],
        solo_repeats=0,
        sets=options.sets,
        set_sizes=(2, max(2, min(4, 2 * len(cores)))),
        seed=options.seed,
        cores=cores,
        device="here",
    )
    plan = campaign.plan()
    most = max(len(one.members) for one in plan)
    with SlotPool(campaign, most, MeasureOptions()) as pool:
        return overlaps(pool, plan, campaign.window_seconds)
