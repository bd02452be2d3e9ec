"""Further laws of contention, different in kind from the machine's: a method must not hang on one of them.

`lru`: a shared cache kept by least recent use, whose occupancy follows the rate of insertions and whose
misses fall as a power of the occupancy; the bus slows down in proportion once it is full. No counter tells
the power or the working set: alone two programs may count the same and suffer differently.

`queue`: one memory server that takes requests one by one; each phase alternates between computing and
waiting for it, in the approximation of Schweitzer to mean value analysis (Schweitzer 1979; Lazowska et al.,
Quantitative System Performance, 1984, Ch. 6).

`smt`: two threads of one core share its issue slots and ports; each loses by what the other keeps busy of
what it needs itself, and both are slower still where together they need more than there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.alignment.machine import (
    COUNTERS,
    LINE_BYTES,
    Law,
    Machine,
    SimulatedPhase,
    SimulatedProgram,
)

ROUNDS = 300  # of the fixed points below at most, each a contraction that is damped
SETTLED = 1e-10


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


@dataclass(frozen=True)
class SharedCore:
    """See the module. width: instructions that a core issues in a cycle; ports: of loads and stores, of
    branches, and of the rest."""

    clock_hertz: tuple[float, ...] = (2.0e9,) * 4
    width: float = 4.0
    ports: tuple[float, float, float] = (1.0, 0.5, 2.5)

    def speeds(self, running: Sequence[tuple[int, SimulatedPhase]]) -> np.ndarray:
        run = _Running.of(self.clock_hertz, running)
        if not run.at:
            return np.zeros((len(running), len(COUNTERS)))
        memory = run.column("load_ratio") * (1 + run.column("write_ratio"))
        branches = run.column("branch_ratio")
        demand = np.stack([memory, branches, np.maximum(1 - memory - branches, 0.05)], axis=1)
        demand = np.concatenate([demand / np.array(self.ports), np.full((len(memory), 1), 1.0)], 1)
        demand[:, -1] /= self.width
        misses = run.column("accesses_per_instruction") * run.column("floor_ratio")
        alone = run.base * run.clock + misses * 120 / run.column("overlap")
        alone = np.maximum(alone, demand.max(axis=1))
        cycles = alone.copy()
        for _ in range(ROUNDS):
            busy = np.minimum(demand / cycles[:, None], 1.0)
            others = busy.sum(axis=0) - busy
            # What is asked for while it is busy waits; beyond what there is, all are stretched alike.
            waits = (demand * others / (1 + others)).sum(axis=1)
            over = np.maximum(busy.sum(axis=0) - 1.0, 0.0).max()
            wanted = (alone + waits) * (1 + 0.5 * over)
            off = np.abs(wanted / cycles - 1).max()
            cycles = 0.5 * cycles + 0.5 * wanted
            if off < SETTLED:
                break
        return run.counts(len(running), cycles / run.clock, misses)


LAWS: dict[str, Law] = {
    "simulator": Machine(),
    "lru": LruCache(),
    "queue": MemoryQueue(),
    "smt": SharedCore(),
}


def stressors(law: Law, seconds: float) -> list[SimulatedProgram]:
    """Three, each of one phase that lasts so long alone: `probe-cache` and `probe-stream` press on the cache
    and the bus, `probe-core` on issue slots and ports."""
    kinds = {
        "cache": SimulatedPhase(
            1.0, 0.5, 0.04, 6 * 2.0**20, floor_ratio=0.02, overlap=2.0, reuse_power=1.0
        ),
        "stream": SimulatedPhase(
            1.0, 0.5, 0.06, 2.0**26, floor_ratio=0.95, overlap=4.0, write_ratio=0.5
        ),
        "core": SimulatedPhase(1.0, 0.4, 1e-3, 2.0**16, branch_ratio=0.2, load_ratio=0.4),
    }
    results = []
    for name, kind in kinds.items():
        rate = float(law.speeds([(0, kind)])[0, 0])
        phase = SimulatedPhase(**(vars(kind) | {"instructions": float(np.ceil(rate * seconds))}))
        results.append(SimulatedProgram(f"probe-{name}", (phase,)))
    return results
