"""A made scheduler: programs beside each other and beside foreign loads, and what a kernel tells of them.

Each millisecond a free core takes whom the fair scheduler of Linux (EEVDF) would: of those who had no more
than the mean the one with the earliest deadline, for a slice; who begins is put at the mean, and who slept as
far from it as when it fell asleep. Members repeat, as in a window of the collector. Nothing here knows how
lost time is estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# Processes that start together, each a list of steps: n computes n ms, -n sleeps n ms, a list is a child with
# these steps that is waited for.
PROGRAMS: dict[str, list[list[Any]]] = {
    "computes": [[160]],
    "in pieces": [[20, -5] * 6],
    "waits": [[3, -10] * 10],
    "pipeline": [[90], [50], [30]],
    "starts processes": [[1, [1]] * 60],
    "starts one": [[5, [120], 5, -20]],
}
SLICE_MS = 3
SHORT_MS = 10  # of children that compute less nobody sees what they waited


@dataclass(eq=False)
class Process:
    """What is left of its steps, and what it computed and waited for a core, in ms."""

    steps: list[Any]
    owner: int  # the member's number; -1: foreign
    cores: tuple[int, ...]
    parent: Process | None = None
    weight: float = 1.0
    had: float = 0.0
    deadline: float = 0.0
    lag: float = 0.0  # behind the mean, when it fell asleep
    is_new: bool = True
    computed: int = 0
    waited: int = 0
    until: int = 0


@dataclass
class Told:
    """Of a member: seconds of each whole execution."""

    wall: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    unseen: list[float] = field(default_factory=list)


@dataclass
class Made:
    """members: what was told of each. seconds: how long it went on. taken: seconds by foreign loads, of each
    core. used: by each member in all, seconds."""

    members: list[Told]
    seconds: float
    taken: list[float]
    used: list[float]

    def wall(self, member: int) -> float:
        """The mean."""
        walls = self.members[member].wall
        return sum(walls) / len(walls)


def made(
    programs: Sequence[list[list[Any]]],
    hogs: int = 0,
    cores: int = 1,
    least_ms: int = 1000,
    weight: float = 1.0,
) -> Made:
    """Programs over and over until each has ended once at least and least_ms are over. As many as cores or
    fewer have a core each, more share all. hogs: foreign processes that only compute, on any core, each of
    this weight."""
    everywhere = tuple(range(cores))
    own = [(at,) if len(programs) <= cores else everywhere for at in range(len(programs))]
    ready: list[Process] = []
    asleep: list[Process] = []
    ended: list[list[Process]] = [[] for _ in programs]
    alive = [0] * len(programs)
    began = [0] * len(programs)
    told = [Told() for _ in programs]
    running: dict[int, tuple[Process, int]] = {}  # by core: who, and the end of its slice
    taken, used = [0] * cores, [0] * len(programs)
    now = 0

    middle = 0.0

    def mean() -> float:
        nonlocal middle
        present = [*ready, *(one for one, _ in running.values())]
        weights = sum(one.weight for one in present)
        middle = sum(one.had * one.weight for one in present) / weights if present else middle
        return middle

    def come(one: Process) -> None:
        one.had = mean() - one.lag
        one.deadline = one.had + SLICE_MS * (0.5 if one.is_new else 1.0) / one.weight
        one.is_new = False
        ready.append(one)

    def rest(one: Process) -> None:
        """What it computed last is over."""
        one.lag = max(-SLICE_MS, min(SLICE_MS, mean() - one.had))
        settle(one)

    def begin(member: int) -> None:
        began[member] = now
        for steps in programs[member]:
            one = Process(list(steps), member, own[member])
            alive[member] += 1
            settle(one)

    def settle(one: Process) -> None:
        """Its next step that takes a core, its sleep or its end."""
        while one.steps:
            step = one.steps[0]
            if not isinstance(step, list) and step > 0:
                come(one)
                return
            one.steps.pop(0)
            if isinstance(step, list):
                alive[one.owner] += 1
                settle(Process(list(step), one.owner, one.cores, one))
                return
            if step < 0:
                one.until = now - step
                asleep.append(one)
                return
        alive[one.owner] -= 1
        ended[one.owner].append(one)
        if one.parent is not None:
            settle(one.parent)
        elif not alive[one.owner]:
            end(one.owner)

    def end(member: int) -> None:
        every, out = ended[member], told[member]
        short = [one for one in every if one.parent is not None and one.computed < SHORT_MS]
        seen = [one for one in every if one not in short]
        out.wall.append((now - began[member]) * 1e-3)
        out.used.append(sum(one.computed for one in every) * 1e-3)
        out.waited.append(sum(one.waited for one in seen) * 1e-3)
        out.unseen.append(sum(one.computed for one in short) * 1e-3)
        every.clear()
        restart.append(member)

    restart = list(range(len(programs)))
    ready += [Process([10**9], -1, everywhere, weight=weight) for _ in range(hogs)]
    while now < least_ms or not all(one.wall for one in told):
        for member in restart[:]:
            restart.remove(member)
            begin(member)
        for one in [one for one in asleep if one.until <= now]:
            asleep.remove(one)
            settle(one)
        for core in everywhere:
            if core in running and now >= running[core][1]:
                over = running.pop(core)[0]
                over.deadline = over.had + SLICE_MS / over.weight
                ready.append(over)
        for core in everywhere:
            able = [one for one in ready if core in one.cores]
            if core not in running and able:
                level = mean() + 1e-9
                chosen = min(able, key=lambda one: (one.had > level, one.deadline))
                ready.remove(chosen)
                running[core] = chosen, now + SLICE_MS
        now += 1
        for one in ready:
            one.waited += 1
        for core, (one, _) in list(running.items()):
            one.computed += 1
            one.steps[0] -= 1
            one.had += 1 / one.weight
            if one.owner < 0:
                taken[core] += 1
                continue
            used[one.owner] += 1
            if not one.steps[0]:
                del running[core]
                one.steps.pop(0)
                rest(one)
    return Made(told, now * 1e-3, [one * 1e-3 for one in taken], [one * 1e-3 for one in used])
