"""Programs that a trace follows: a sequence of phases, each a workload repeated so many times.

`fft-m*300+stream-l*40` is 300 repetitions of fft-m and then 40 of stream-l; `name=…` in front gives it a
name. A workload without a number has no end.

Stressors come with Jostle, for `jostle measure --probes`: each is a shipped kernel of a size that presses
in one way: on the last cache, on memory bandwidth at two strengths, and by scattered accesses; these are
taken unless others are named. Arithmetic in private caches presses only on who shares the core itself, so
`core` is for hosts where workloads do (threads of one core, or more workloads than cores). What each loses
beside the others is measured too: that is the scale on which a workload's pressure is read (see
`jostle.learn.learners.stressors`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jostle.collect.kernels._shipped_kernels import KERNEL_FOLDER, STRESSORS
from jostle.collect.workloads._workloads import Workload, find_workloads
from jostle.errors import UnknownName, UsageError


@dataclass(frozen=True)
class TracedProgram:
    """Program of several phases, to be traced.

    name: the workload's name in traces. phases: (workload, repetitions) one after the other.

    repetitions: None has no end, only as the last phase. Raises UsageError for an empty name, no phases, or
    repetitions below 1.
    """

    name: str
    phases: tuple[tuple[Workload, int | None], ...]

    def __post_init__(self) -> None:
        if not self.name or not self.phases:
            raise UsageError("a program has a name and at least one phase", where=self.name)
        for number, (workload, repetitions) in enumerate(self.phases, start=1):
            if repetitions is None and number < len(self.phases):
                raise UsageError(
                    f"{workload.name} has no end, so the phases after it never begin",
                    where=self.name,
                    fix=f"Say how often: {workload.name}*100.",
                )
            if repetitions is not None and repetitions < 1:
                raise UsageError(
                    f"{workload.name} must be repeated at least once, not {repetitions} times",
                    where=self.name,
                )

    @property
    def ends(self) -> bool:
        """True if it is a fixed amount of work."""
        return self.phases[-1][1] is not None


def find_programs(wanted: Sequence[str | Workload | TracedProgram]) -> tuple[TracedProgram, ...]:
    """Find the programs that these names, workloads or command lines stand for, in the order given. Raises
    UnknownName, UsageError for text that is no program."""
    return tuple(map(_program, wanted))


def _program(want: str | Workload | TracedProgram) -> TracedProgram:
    if isinstance(want, TracedProgram):
        return want
    if isinstance(want, Workload):
        return TracedProgram(want.name, ((want, None),))
    name, equals, text = want.rpartition("=")
    phases = []
    for part in text.split("+"):
        phase = re.fullmatch(r"\s*([^\s*]+)(?:\s*\*\s*([0-9]+))?\s*", part)
        if phase is None or (equals and not name.strip()):
            raise UsageError(
                f"{want!r} is not a program",
                fix="Write for instance fft-m*300+stream-l*40, or name=fft-m*300+stream-l*40.",
            )
        workloads = find_workloads([phase[1]])
        if len(workloads) != 1:
            raise UsageError(f"{phase[1]!r} fits {len(workloads)} workloads; name one", where=want)
        phases.append((workloads[0], int(phase[2]) if phase[2] else None))
    return TracedProgram(name.strip() or text.replace(" ", ""), tuple(phases))


PREFIX = "probe-"
USUAL = ("cache", "copy", "scatter", "stream")


def probe_workloads(names: Sequence[str] = ()) -> tuple[Workload, ...]:
    """Return the stressors of these names (with `probe-` or without), or the usual four. Raises
    UnknownName."""
    stressors = {name.removeprefix(PREFIX) for name in names} or set(USUAL)
    for name in sorted(stressors.difference(STRESSORS)):
        raise UnknownName("stressor", name, tuple(STRESSORS))
    return tuple(
        Workload(
            f"{PREFIX}{name}", KERNEL_FOLDER / f"{kernel}.wasm", argument, repeats, "stressors"
        )
        for name, (kernel, argument, repeats) in sorted(STRESSORS.items())
        if name in stressors
    )
