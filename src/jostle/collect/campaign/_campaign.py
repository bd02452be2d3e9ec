"""What a campaign measures: a list of windows that follows from its settings and nothing else.

The same settings give the same windows under the same names, so a campaign that was interrupted
goes on where it stopped, and one that is given more repeats or more sets only does what is new.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

from jostle._base.option_fields import Flag, Limits, Short, check_settings
from jostle.collect.host._facts import Cores, Device, chosen_cores, device_name, platform_name
from jostle.collect.slots._available import can_run, engines_for, find_engines
from jostle.collect.workloads._program import probe_workloads
from jostle.collect.workloads._workloads import Workload, find_workloads
from jostle.errors import UsageError, require_known

_FORMAT = 1
CHOSEN = 1_000_000  # ordinals of windows that were chosen begin here


@dataclass(frozen=True)
class PlannedWindow:
    """A set of workloads to measure once. members: sorted by name. ordinal: of the same set, from 0."""

    engine: str
    members: tuple[Workload, ...]
    ordinal: int

    @property
    def set_name(self) -> str:
        """Engine and members: speed/matmul-m+sort-s."""
        return f"{self.engine}/{'+'.join(member.name for member in self.members)}"

    @property
    def key(self) -> str:
        """The set's name and its ordinal."""
        return f"{self.set_name}/{self.ordinal}"


@dataclass(frozen=True)
class Campaign:
    """Plan of what to measure on this machine.

    workloads: names, shell patterns or Workload objects; None means all that are shipped.
    engines: names; None means all that work here and can run any of the workloads. A workload is measured on
    the engines that can run it.
    solo_repeats: windows of each workload alone on each engine.
    sets: number of random sets in all, which take the engines in turn; each draws a size from
    set_sizes = (smallest, largest) and its members with replacement.
    window_seconds: length that counts, of one window; slow members get longer ones.
    seed: seed of the sets and of the order.
    device: what platforms are called after the engine; None derives it from the CPU.
    cores: cores to use; None means all that this process may use.
    probes: also each workload beside each stressor of `probe_workloads`, and these alone and beside each
    other, solo_repeats times.
    stressors: names of the stressors to use; empty means the usual four.
    chosen: sets that were chosen, as by `Model.suggest`, each as (engine, names of the members): measured
    once each, before all else and in this order.
    Raises UsageError, UnknownName, MissingExtra, NotPermitted.
    """

    workloads: Sequence[str | Workload] | None = None
    engines: Annotated[
        Sequence[str] | None,
        "An engine; may be repeated. A limited machine is a device of its own: measure under nice, taskset "
        "or systemd-run.  [default: all that work here; see jostle doctor]",
        Flag("--engine"),
        Short("-e"),
    ] = None
    solo_repeats: Annotated[
        int, "Windows of each workload alone on each engine.", Flag("--solo"), Limits(0)
    ] = 2
    sets: Annotated[int, "Random sets of workloads side by side, in all.", Limits(0)] = 60
    set_sizes: tuple[int, int] = (2, 4)
    window_seconds: Annotated[
        float, "Seconds that count in one window.", Flag("--window"), Limits(0.02, 60)
    ] = 0.25
    seed: Annotated[int, "Of the sets drawn and the order."] = 0
    device: Device = None
    cores: Cores = None
    probes: Annotated[
        bool,
        "Also each workload beside each of four stressors, a window of each for each --solo (for jostle fit "
        "probes).",
    ] = False
    stressors: Annotated[
        Sequence[str],
        "Only these stressors, so much less to measure: cache, copy, scatter, stream, or core, where cores "
        "are shared; may be repeated.  [implies --probes]",
    ] = ()
    chosen: Sequence[tuple[str, Sequence[str]]] = ()
    # What the settings above mean here.
    members: tuple[Workload, ...] = field(init=False, repr=False)
    engine_names: tuple[str, ...] = field(init=False, repr=False)
    core_numbers: tuple[int, ...] = field(init=False, repr=False)
    device_name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_settings(self)
        smallest, largest = self.set_sizes
        if not 2 <= smallest <= largest <= 32:
            what = "sets have 2 to 32 members, the fewest before the most"
            raise UsageError(what, where=f"set_sizes={self.set_sizes}")
        cores = chosen_cores(self.cores)
        settle = object.__setattr__
        settle(self, "core_numbers", cores)
        members = find_workloads(self.workloads)
        programs = all(member.kind == "command" for member in members)
        if self.probes:
            if len(cores) < 2:
                raise UsageError("probes need two cores: a workload's, and the stressor's")
            members = find_workloads([*members, *probe_workloads(self.stressors)])
        elif self.stressors:
            raise UsageError("stressors, but nothing is measured beside them", fix="Set `probes`.")
        named = find_engines(["native"] if programs and not self.engines else self.engines)
        engines = engines_for(named, members)
        if self.engines is not None and len(engines) < len(named):
            useless = next(engine for engine in named if engine not in engines)
            raise UsageError(
                f"engine {useless!r} can run none of the workloads",
                fix="Command lines run on native, WASI programs on wasmtime's engines.",
            )
        for member in members:
            if not any(can_run(engine, member) for engine in engines):
                raise UsageError(
                    f"no engine chosen can run it, which is a {member.kind}", where=member.name
                )
        _require_chosen(self.chosen, engines, members)
        settle(self, "engine_names", tuple(engines))
        settle(self, "members", members)
        settle(self, "device_name", self.device or device_name(cores))

    @cached_property
    def identity(self) -> str:
        """Twelve hexadecimal digits for all settings but how much is asked for."""
        settings = {
            "format": _FORMAT,
            "workloads": [
                [
                    *(member.name, member.digest, member.argument, member.repeats),
                    *member.arguments,
                    *([] if member.job is None else [{"job": member.job.digest}]),
                ]
                for member in self.members
            ],
            "engines": self.engine_names,
            "set_sizes": self.set_sizes,
            "window_seconds": self.window_seconds,
            "seed": self.seed,
            "device": self.device_name,
            "cores": self.core_numbers,
            **({"probes": True} if self.probes else {}),
            **({"stressors": [one.name for one in self._stressors]} if self.stressors else {}),
            **({"chosen": [[e, sorted(m)] for e, m in self.chosen]} if self.chosen else {}),
        }
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]

    def platform(self, engine: str) -> str:
        """Return the platform's name in a dataset: wasmtime-speed:intel-xeon-2.1ghz-2c."""
        return platform_name(engine, self.device_name)

    def window_id(self, planned: PlannedWindow, attempt: int) -> str:
        """Return the same for the same window in every run of the campaign. attempt: from 0."""
        digest = hashlib.sha256(planned.key.encode()).hexdigest()[:12]
        return f"{self.identity}-{digest}-{attempt}"

    def plan(self) -> list[PlannedWindow]:
        """Return all windows in order: each workload alone once, then everything else mixed."""
        alone = [
            PlannedWindow(engine, (member,), ordinal)
            for ordinal in range(self.solo_repeats)
            for engine in self.engine_names
            for member in self.members
            if can_run(engine, member)
        ]
        order = random.Random(f"jostle-order/{_FORMAT}/{self.seed}")
        opening = [window for window in alone if not window.ordinal]
        order.shuffle(opening)
        mixed = (
            [window for window in alone if window.ordinal] + self._beside_probes() + self._sets()
        )
        order.shuffle(mixed)
        return self._chosen() + opening + mixed

    def _chosen(self) -> list[PlannedWindow]:
        """Return windows of their own, whatever else the campaign measures of the same sets."""
        member = {one.name: one for one in self.members}
        ordinals: Counter[tuple[str, tuple[str, ...]]] = Counter()
        windows = []
        for engine, names in self.chosen:
            name = (engine, tuple(sorted(names)))
            windows.append(
                PlannedWindow(engine, tuple(member[n] for n in name[1]), CHOSEN + ordinals[name])
            )
            ordinals[name] += 1
        return windows

    @property
    def _stressors(self) -> tuple[Workload, ...]:
        return probe_workloads(self.stressors) if self.probes else ()

    def _beside_probes(self) -> list[PlannedWindow]:
        """Return each workload, and each stressor, beside each stressor."""
        stressors = self._stressors
        names = {one.name for one in stressors}
        pairs = [
            tuple(sorted((member, stressor), key=lambda one: one.name))
            for stressor in stressors
            for member in self.members
            if member.name not in names or member.name <= stressor.name
        ]
        return [
            PlannedWindow(engine, pair, ordinal)
            for ordinal in range(self.solo_repeats)
            for engine in self.engine_names
            for pair in pairs
            if all(can_run(engine, member) for member in pair)
        ]

    def _sets(self) -> list[PlannedWindow]:
        """Return the first of an endless sequence of random sets, so that asking for more only adds."""
        draw = random.Random(f"jostle-sets/{_FORMAT}/{self.seed}")
        ordinals: Counter[tuple[str, tuple[str, ...]]] = Counter()
        sets = []
        stressors = {one.name for one in self._stressors}
        candidates = [member for member in self.members if member.name not in stressors]
        # An engine may run nothing but stressors, where all else are command lines.
        able = [e for e in self.engine_names if any(can_run(e, one) for one in candidates)]
        for number in range(self.sets if able else 0):
            engine = able[number % len(able)]
            size = draw.randint(*self.set_sizes)
            members = [member for member in candidates if can_run(engine, member)]
            draw_members = sorted(draw.choices(members, k=size), key=lambda member: member.name)
            name = (engine, tuple(member.name for member in draw_members))
            sets.append(PlannedWindow(engine, tuple(draw_members), ordinals[name]))
            ordinals[name] += 1
        return sets


def _require_chosen(
    chosen: Sequence[tuple[str, Sequence[str]]],
    engines: Sequence[str],
    members: Sequence[Workload],
) -> None:
    """Raises UsageError, UnknownName."""
    known = {one.name: one for one in members}
    for engine, names in chosen:
        require_known("engine", engine, engines)
        if not names:
            raise UsageError("a chosen set has no members", where=engine)
        for name in names:
            require_known("workload", name, known)
            if not can_run(engine, known[name]):
                raise UsageError(f"engine {engine!r} cannot run it", where=name)
