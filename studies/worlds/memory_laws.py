"""Laws of machines whose cores share memory, and programs with phases that run on them.

`simulator`: core n executes one instruction of a phase in

    cycles_per_instruction / clock[n] + (misses_per_instruction / overlap) * latency  seconds.

The cache is shared in proportion to the working sets that run; a phase that keeps the part p of its
working set misses with the ratio floor + (1 - floor) * (1 - p). All misses share one bus: its latency
rises with its utilisation u (bytes per second over the bandwidth) as

    latency = idle latency * (1 + queueing * u**2 / (1 - u)),

and u falls as the latency rises: the two meet in exactly one point.

`lru`: a shared cache kept by least recent use, whose occupancy follows the rate of insertions and whose
misses fall as a power of the occupancy; the bus slows down in proportion once it is full. No counter tells
the power or the working set: alone two programs may count the same and suffer differently.

`queue`: one memory server that takes requests one by one; each phase alternates between computing and
waiting for it, in the approximation of Schweitzer to mean value analysis (Schweitzer 1979; Lazowska et al.,
Quantitative System Performance, 1984, Ch. 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

LINE_BYTES = 64
ROUNDS = 300  # of the fixed points below at most, each a contraction that is damped
SETTLED = 1e-10
# What a core counts while it runs. All add up over time, so that a sample of any length is a difference.
COUNTERS = (
    "instructions",
    "cycles",
    "stall_cycles",
    "cache_accesses",
    "cache_misses",
    "dram_read_bytes",
    "dram_write_bytes",
    "dram_busy_cycles",
    "branches",
    "loads",
    "stores",
    "tlb_refills",
    "working_set_byte_seconds",
    "exceptions",
)


@dataclass(frozen=True)
class SimulatedPhase:
    """A stretch of a program that behaves alike. instructions 0 with idle_seconds: it sleeps so long.

    cycles_per_instruction: without cache misses. accesses_per_instruction: of the shared cache.
    floor_ratio: misses per access with the working set all in cache. overlap: misses served at once.
    write_ratio: bytes written per byte read. branch_ratio, load_ratio: of the instructions. reuse_power: with
    which misses fall as more is kept, where a law has it so.
    """

    instructions: float
    cycles_per_instruction: float = 1.0
    accesses_per_instruction: float = 0.0
    working_set_bytes: float = 0.0
    floor_ratio: float = 0.0
    overlap: float = 1.0
    write_ratio: float = 0.0
    branch_ratio: float = 0.1
    load_ratio: float = 0.3
    idle_seconds: float = 0.0
    reuse_power: float = 0.5


@dataclass(frozen=True)
class SimulatedProgram:
    """Phases one after the other."""

    name: str
    phases: tuple[SimulatedPhase, ...]

    @property
    def instructions(self) -> float:
        return math.fsum(phase.instructions for phase in self.phases)


class Law(Protocol):
    """How fast phases run side by side. clock_hertz: of each core."""

    @property
    def clock_hertz(self) -> tuple[float, ...]: ...

    def speeds(self, running: Sequence[tuple[int, SimulatedPhase]]) -> np.ndarray:
        """(k, len(COUNTERS)) counts per second of each phase while exactly these run, (core, phase) each."""
        ...


@dataclass(frozen=True)
class Machine:
    """clock_hertz: of each core. bandwidth: bytes per second of the bus. queueing: see the module."""

    clock_hertz: tuple[float, ...] = (2.0e9,) * 4
    bandwidth: float = 5.0e9
    cache_bytes: float = 8 * 2.0**20
    idle_latency_seconds: float = 70e-9
    queueing: float = 2.0
    bus_hertz: float = 8.0e8

    def speeds(self, running: Sequence[tuple[int, SimulatedPhase]]) -> np.ndarray:
        """(k, len(COUNTERS)) counts per second of each phase while exactly these run, (core, phase) each."""
        out = np.zeros((len(running), len(COUNTERS)))
        places = [i for i, (_, phase) in enumerate(running) if phase.instructions > 0]
        phases = [running[i][1] for i in places]
        clocks = [self.clock_hertz[running[i][0]] for i in places]
        demand = math.fsum(phase.working_set_bytes for phase in phases)
        kept = min(1.0, self.cache_bytes / demand) if demand > 0 else 1.0
        misses = [
            p.accesses_per_instruction * (p.floor_ratio + (1 - p.floor_ratio) * (1 - kept))
            if p.working_set_bytes
            else 0.0
            for p in phases
        ]
        compute = [
            p.cycles_per_instruction / clock for p, clock in zip(phases, clocks, strict=True)
        ]
        waits = [m / p.overlap for m, p in zip(misses, phases, strict=True)]
        traffic = [
            LINE_BYTES * m * (1 + p.write_ratio) for m, p in zip(misses, phases, strict=True)
        ]
        latency = _latency(self, compute, waits, traffic)
        for k, (i, phase, clock) in enumerate(zip(places, phases, clocks, strict=True)):
            rate = 1.0 / (compute[k] + waits[k] * latency)
            read, write = LINE_BYTES * misses[k], LINE_BYTES * misses[k] * phase.write_ratio
            out[i] = (
                rate,
                clock,
                clock * waits[k] * latency * rate,
                rate * phase.accesses_per_instruction,
                rate * misses[k],
                rate * read,
                rate * write,
                self.bus_hertz * rate * (read + write) / self.bandwidth,
                rate * phase.branch_ratio,
                rate * phase.load_ratio,
                rate * phase.load_ratio * phase.write_ratio,
                rate * phase.accesses_per_instruction * phase.working_set_bytes / 2**28,
                phase.working_set_bytes,
                0.0,
            )
        return out


def _latency(
    machine: Machine, compute: Sequence[float], waits: Sequence[float], traffic: Sequence[float]
) -> float:
    """Where the latency that a utilisation causes is the one that causes the utilisation, by bisection over
    the latency's excess e = latency / idle - 1; the utilisation at e solves queueing u^2 / (1 - u) = e."""
    idle, q = machine.idle_latency_seconds, machine.queueing

    def surplus(e: float) -> float:
        latency = idle * (1 + e)
        used = math.fsum(
            t / (c + w * latency) for c, w, t in zip(compute, waits, traffic, strict=True)
        )
        # The stable form of the positive root of q u^2 + e u - e = 0.
        allowed = 2 * e / (e + math.sqrt(e * e + 4 * q * e)) if e > 0 else 0.0
        return used / machine.bandwidth - allowed

    if surplus(0.0) <= 0:
        return idle
    high = 1.0
    while surplus(high) > 0:
        high *= 2.0
    low = 0.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        low, high = (middle, high) if surplus(middle) > 0 else (low, middle)
    return idle * (1 + 0.5 * (low + high))


def _counts(
    phase: SimulatedPhase, seconds: float, base: float, clock: float, misses: float
) -> np.ndarray:
    """(len(COUNTERS),) per second. seconds: of one instruction, base: of it without contention or misses."""
    rate = 1.0 / seconds
    read = LINE_BYTES * misses
    told = {
        "instructions": 1.0,
        "cycles": seconds * clock,
        "stall_cycles": max(seconds - base, 0.0) * clock,
        "cache_accesses": phase.accesses_per_instruction,
        "cache_misses": misses,
        "dram_read_bytes": read,
        "dram_write_bytes": read * phase.write_ratio,
        "branches": phase.branch_ratio,
        "loads": phase.load_ratio,
        "stores": phase.load_ratio * phase.write_ratio,
    }
    return rate * np.array([told.get(name, 0.0) for name in COUNTERS])


@dataclass(frozen=True)
class _Running:
    """The phases that execute something, as columns. at: their places."""

    at: list[int]
    phases: list[SimulatedPhase]
    clock: np.ndarray
    base: np.ndarray

    @classmethod
    def of(cls, clocks: Sequence[float], running: Sequence[tuple[int, SimulatedPhase]]) -> _Running:
        at = [i for i, (_, phase) in enumerate(running) if phase.instructions > 0]
        phases = [running[i][1] for i in at]
        clock = np.array([clocks[running[i][0]] for i in at])
        base = np.array([phase.cycles_per_instruction for phase in phases]) / clock
        return cls(at, phases, clock, base)

    def column(self, name: str) -> np.ndarray:
        return np.array([getattr(phase, name) for phase in self.phases])

    def counts(self, size: int, seconds: np.ndarray, misses: np.ndarray) -> np.ndarray:
        out = np.zeros((size, len(COUNTERS)))
        for k, i in enumerate(self.at):
            facts = float(seconds[k]), float(self.base[k]), float(self.clock[k])
            out[i] = _counts(self.phases[k], *facts, float(misses[k]))
        return out


@dataclass(frozen=True)
class LruCache:
    """See the module. bandwidth: bytes per second."""

    clock_hertz: tuple[float, ...] = (2.0e9,) * 4
    bandwidth: float = 6.0e9
    cache_bytes: float = 8 * 2.0**20
    hit_seconds: float = 5e-9
    idle_latency_seconds: float = 60e-9

    def speeds(self, running: Sequence[tuple[int, SimulatedPhase]]) -> np.ndarray:
        run = _Running.of(self.clock_hertz, running)
        if not run.at:
            return np.zeros((len(running), len(COUNTERS)))
        accesses, power = run.column("accesses_per_instruction"), run.column("reuse_power")
        size = np.maximum(run.column("working_set_bytes"), 1.0)
        overlap, bytes_per_miss = (
            run.column("overlap"),
            LINE_BYTES * (1 + run.column("write_ratio")),
        )
        kept = np.full(len(size), self.cache_bytes / len(size))
        seconds = run.base + accesses * self.hit_seconds
        misses = accesses
        for _ in range(ROUNDS):
            part = np.minimum(kept / size, 1.0)
            ratio = np.clip((1 + 4 * part) ** -power - np.where(part >= 1, 5.0**-power, 0), 2e-3, 1)
            misses = accesses * ratio
            used = float((bytes_per_miss * misses / seconds).sum()) / self.bandwidth
            latency = self.idle_latency_seconds * max(1.0, used) * (1 + 0.3 * min(used, 1.0) ** 2)
            wanted = run.base + accesses * self.hit_seconds + misses * latency / overlap
            inserted = misses / seconds
            share = inserted / inserted.sum() if inserted.sum() > 0 else 1 / len(size)
            held = np.minimum(share * self.cache_bytes, size)
            room = size - held
            left = self.cache_bytes - held.sum()
            if left > 0 and room.sum() > 0:
                held = held + room * min(1.0, left / room.sum())
            off = np.abs(wanted / seconds - 1).max() + np.abs(held - kept).max() / self.cache_bytes
            kept, seconds = 0.6 * kept + 0.4 * held, 0.6 * seconds + 0.4 * wanted
            if off < SETTLED:
                break
        return run.counts(len(running), seconds, misses)


@dataclass(frozen=True)
class MemoryQueue:
    """See the module. service_seconds: of one request at the server; walk_seconds: of its way there."""

    clock_hertz: tuple[float, ...] = (2.0e9,) * 4
    service_seconds: float = 4e-8
    walk_seconds: float = 6e-8

    def speeds(self, running: Sequence[tuple[int, SimulatedPhase]]) -> np.ndarray:
        run = _Running.of(self.clock_hertz, running)
        if not run.at:
            return np.zeros((len(running), len(COUNTERS)))
        accesses, size = run.column("accesses_per_instruction"), run.column("working_set_bytes")
        misses = accesses * size / (size + 2.0**21)
        think = run.base / np.maximum(misses, 1e-9) + self.walk_seconds
        waiting, reply = np.zeros(len(size)), np.zeros(len(size))
        for _ in range(ROUNDS):
            reply = self.service_seconds * (1 + waiting.sum() - waiting)
            wanted = reply / (think + reply)
            off = np.abs(wanted - waiting).max()
            waiting = 0.5 * waiting + 0.5 * wanted
            if off < SETTLED:
                break
        seconds = run.base + misses * (self.walk_seconds + reply)
        return run.counts(len(running), seconds, misses)


LAWS: dict[str, Law] = {
    "simulator": Machine(),
    "lru": LruCache(),
    "queue": MemoryQueue(),
}


def stressors(law: Law, seconds: float) -> list[SimulatedProgram]:
    """Return two, each of one phase that lasts so long alone, that press on the cache and on the bus."""
    kinds = {
        "cache": SimulatedPhase(
            1.0, 0.5, 0.04, 6 * 2.0**20, floor_ratio=0.02, overlap=2.0, reuse_power=1.0
        ),
        "stream": SimulatedPhase(
            1.0, 0.5, 0.06, 2.0**26, floor_ratio=0.95, overlap=4.0, write_ratio=0.5
        ),
    }
    results = []
    for name, kind in kinds.items():
        rate = float(law.speeds([(0, kind)])[0, 0])
        phase = SimulatedPhase(**(vars(kind) | {"instructions": float(np.ceil(rate * seconds))}))
        results.append(SimulatedProgram(f"probe-{name}", (phase,)))
    return results
