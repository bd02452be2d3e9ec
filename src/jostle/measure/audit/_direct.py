"""A dataset checked: kernels without the collector (a plain loop, wasmtime's own fuel), members' overlap in
windows measured anew, and whether what it says of its windows can all be true at the same time.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.kernels import beat_times
from jostle.measure.audit._disturbers import measured_rows
from jostle.measure.campaign._campaign import PlannedWindow
from jostle.measure.campaign._slot_pool import SlotPool
from jostle.measure.campaign._summary import MeasureOptions
from jostle.measure.window._assess import Observed
from jostle.measure.workloads._opcode_counts import count_opcodes
from jostle.measure.workloads._workloads import Workload

# As the collector's quiet beat: neighbours that nothing shows only ever slow a repetition.
_QUIET_QUANTILE = 0.15
_FUEL = 1 << 62
_LATE_SECONDS = 0.02
# Engines of wasmtime, called after its level of optimising: the collector's own settings are not asked.
_LEVELS = ("speed", "none")


def solo_medians(rows: Sequence[dict[str, Any]], platform: str | None = None) -> dict[str, float]:
    """Median seconds alone by workload, on one platform, or whatever the platform."""
    seconds: dict[str, list[float]] = {}
    for row in rows:
        here = platform in (None, row["platform"])
        if here and not row["corunners"] and row["status"] == "ok":
            seconds.setdefault(row["workload"], []).append(row["runtime_seconds"])
    return {name: statistics.median(times) for name, times in seconds.items()}


@dataclass(frozen=True)
class DirectTime:
    """Seconds of a repetition alone: by a loop without the collector, by the collector now, and in the
    dataset, None where it has none of this machine."""

    workload: str
    engine: str
    direct_seconds: float
    collected_seconds: float | None
    dataset_seconds: float | None

    @property
    def error_ratio(self) -> float | None:
        """How far the collector is from the loop."""
        if self.collected_seconds is None:
            return None
        return self.collected_seconds / self.direct_seconds - 1


@dataclass(frozen=True)
class SecondCount:
    """What a repetition executes, in units of fuel: by rewriting the module, by wasmtime's counter, and in
    the dataset's features (None where not there)."""

    workload: str
    rewritten: int
    fuel: int
    dataset: int | None

    @property
    def agrees(self) -> bool:
        return self.rewritten == self.fuel and self.dataset in (None, self.fuel)


def can_time(engine: str) -> bool:
    """Whether there is a second way to run it here."""
    return engine in _LEVELS


def _instance(workload: Workload, level: str, *, fuel: bool = False) -> tuple[Any, Any]:
    """(store, exports) of a kernel that has been set up. level: of optimising."""
    import wasmtime

    config = wasmtime.Config()
    config.cranelift_opt_level = level
    config.consume_fuel = fuel
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    if fuel:
        store.set_fuel(_FUEL)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store.set_wasi(wasmtime.WasiConfig())
    module = wasmtime.Module(engine, workload.module_bytes)
    exports: Any = linker.instantiate(store, module).exports(store)
    exports["setup"](store, workload.argument)
    return store, exports


def timed_directly(workload: Workload, engine: str, seconds: float, core: int) -> float:
    """Seconds of a repetition, kept to a core, for so long."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        store, exports = _instance(workload, engine)
        run, repeats, lasted = exports["run"], workload.repeats, list[float]()
        run(store, repeats)
        until = time.perf_counter() + seconds
        while len(lasted) < 3 or time.perf_counter() < until:
            before = time.perf_counter()
            run(store, repeats)
            lasted.append(time.perf_counter() - before)
    finally:
        os.sched_setaffinity(0, allowed)
    return float(np.quantile(lasted, _QUIET_QUANTILE))


def fuel_used(workload: Workload) -> int:
    """What wasmtime's fuel says of one repetition after set-up."""
    store, exports = _instance(workload, "speed", fuel=True)
    before = store.get_fuel()
    exports["run"](store, workload.repeats)
    return before - store.get_fuel()


def second_count(workload: Workload, features: dict[str, Any] | None) -> SecondCount:
    """features: the dataset's row of the workload. Raises BadData."""
    counts = count_opcodes(workload)
    stored = None
    if features is not None and features.get("instructions") is not None:
        stored = int(features["instructions"]) + int(features["bulk_bytes"]) + counts.bulk_other
    return SecondCount(workload.name, counts.fuel, fuel_used(workload), stored)


def direct_times(
    kernels: Sequence[Workload],
    engine: str,
    stored: dict[str, float],
    cores: tuple[int, ...],
    seconds: float,
) -> list[DirectTime]:
    """Loop, collector, loop: what changes on the machine meets both. stored: the dataset's seconds."""
    first = [timed_directly(one, engine, seconds, cores[0]) for one in kernels]
    collected = solo_medians(measured_rows(kernels, engine, cores, 3, MeasureOptions()))
    second = [timed_directly(one, engine, seconds, cores[0]) for one in kernels]
    return [
        DirectTime(
            one.name, engine, statistics.mean(pair), collected.get(one.name), stored.get(one.name)
        )
        for one, *pair in zip(kernels, first, second, strict=True)
    ]


@dataclass(frozen=True)
class Overlap:
    """set_name: engine and members. common_ratio: the part of the interval that counts in which everyone was
    between its first and its last beat; longest_beat_ratio: the longest beat of anyone, as a share of the
    interval, which is how long nothing was heard of it. spread_seconds: between the first and the last to
    start. counts: whether a campaign would take it, or repeat it since somebody started too late."""

    set_name: str
    common_ratio: float
    longest_beat_ratio: float
    spread_seconds: float
    counts: bool


def overlap_of(set_name: str, observed: Observed) -> Overlap:
    """From the beats of all members of a window."""
    beats = [beat_times(answer) for answer in observed.answers]
    begin, end = observed.begin_ns, observed.end_ns
    first = max(begin, *(int(times[0]) for times in beats))
    last = min(end, *(int(times[-1]) for times in beats))
    inside = [times[(times >= begin) & (times <= end)] for times in beats]
    longest = max(float(np.diff(np.concatenate([[begin], times, [end]])).max()) for times in inside)
    starts = [int(times[0]) for times in beats]
    whole = end - begin
    allowed_ns = min(_LATE_SECONDS * 1e9, begin - observed.start_ns)
    return Overlap(
        set_name,
        max(0, last - first) / whole,
        longest / whole,
        (max(starts) - min(starts)) * 1e-9,
        max(starts) - observed.start_ns <= allowed_ns,
    )


def overlaps(
    pool: SlotPool, planned: Sequence[PlannedWindow], window_seconds: float
) -> list[Overlap]:
    """Measure these windows, and look at their beats; those with a failure are left out."""
    measured: list[Overlap] = []
    for one in planned:

        def look(observed: Observed, name: str = one.set_name) -> None:
            measured.append(overlap_of(name, observed))

        pool.measure(one, window_seconds, look)
    return measured


# Repetitions times seconds each must fit into the window; both are rounded by what a beat lasts.
_FITS = 1.05
_ESTIMATORS = {"quiet", "wall", "cpu"}


def contradictions(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences about windows that cannot have been as they are written down. rows: of campaigns, with their
    window_id."""
    windows: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row.get("window_id"):
            windows.setdefault(str(row["window_id"]), []).append(row)
    sentences = []
    for name, members in windows.items():
        sentences += [f"window {name}: {text}" for text in _of_window(members)]
    return sentences


def _of_window(members: list[dict[str, Any]]) -> list[str]:
    sentences = []
    names = Counter(row["workload"] for row in members)
    for row in members:
        if Counter([row["workload"], *(row["corunners"] or ())]) != names:
            sentences.append(f"{row['workload']} has other co-runners than the window has members")
            break
    sentences += [
        f"its members differ in {what}"
        for what in ("platform", "measured_at", "window_seconds")
        if len({str(row.get(what)) for row in members}) > 1
    ]
    for row in members:
        if row["status"] != "ok":
            continue
        seconds, late = row.get("window_seconds"), row.get("lateness_seconds")
        if late is not None and seconds is not None:
            allowed = 0.5 * seconds
            if late > allowed:
                sentences.append(f"{row['workload']} started {late:.3f} s late and counts")
        if seconds is None or row.get("estimator") not in _ESTIMATORS:
            continue
        raw = row.get("raw_runtime_seconds") or row["runtime_seconds"]
        if row["repetitions"] * raw > _FITS * seconds:
            text = f"{row['repetitions']:.1f} of {row['runtime_seconds']:.3g} s each"
            sentences.append(f"{row['workload']} did {text} in {seconds:.3g} s")
    return sentences
