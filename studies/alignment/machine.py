"""A machine whose cores share a cache and a memory bus, programs with phases, and how fast they run.

Core n executes one instruction of a phase in

    cycles_per_instruction / clock[n] + (misses_per_instruction / overlap) * latency  seconds.

The cache is shared in proportion to the working sets that run; a phase that keeps the part p of its
working set misses with the ratio floor + (1 - floor) * (1 - p). All misses share one bus: its latency
rises with its utilisation u (bytes per second over the bandwidth) as

    latency = idle latency * (1 + queueing * u**2 / (1 - u)),

and u falls as the latency rises: the two meet in exactly one point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from jostle.errors import UsageError

LINE_BYTES = 64
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

    def __post_init__(self) -> None:
        values = vars(self).values()
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise UsageError("a phase has a number that is negative or not finite")
        if (self.instructions > 0) == (self.idle_seconds > 0):
            raise UsageError("a phase either executes instructions or is idle for some seconds")
        if self.cycles_per_instruction <= 0 or self.overlap <= 0:
            raise UsageError("cycles_per_instruction and overlap must be above 0")
        if self.floor_ratio > 1:
            raise UsageError("floor_ratio is a share of the accesses, at most 1")


@dataclass(frozen=True)
class SimulatedProgram:
    """Phases one after the other."""

    name: str
    phases: tuple[SimulatedPhase, ...]

    def __post_init__(self) -> None:
        if not any(phase.instructions for phase in self.phases):
            raise UsageError(f"program {self.name!r} has no instructions")

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

    clock_hertz: tuple[float, ...] = (2.0e9, 1.7e9, 2.0e9, 1.7e9)
    bandwidth: float = 5.0e9
    cache_bytes: float = 8 * 2.0**20
    idle_latency_seconds: float = 70e-9
    queueing: float = 2.0
    bus_hertz: float = 8.0e8

    def __post_init__(self) -> None:
        numbers = (*self.clock_hertz, self.bandwidth, self.idle_latency_seconds, self.bus_hertz)
        if not self.clock_hertz or not all(math.isfinite(x) and x > 0 for x in numbers):
            raise UsageError("clocks, bandwidth, latency and bus must be finite and above 0")
        if not (self.queueing > 0 and self.cache_bytes >= 0):
            raise UsageError("queueing must be above 0 and cache_bytes not negative")

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
