"""How far a traced program is: what its beats show was executed by when, from exact instruction counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.collect.kernels._beats import CAPACITY, beat_times
from jostle.collect.workloads._opcode_counts import count_opcodes
from jostle.collect.workloads._program import TracedProgram
from jostle.collect.workloads._workloads import Workload
from jostle.errors import BadData

# Beats finer than this part of a repetition tell nothing more at intervals of a millisecond.
_FINEST = 16
# What is usual for a repetition: only to keep a long trace's beats within the harness's memory.
_SHORT_REPETITION_SECONDS = 0.0005
# Counters made of opcode counts: the classes of instructions that a column adds up.
_CLASSES: dict[str, tuple[str, ...]] = {
    "loads": (".load",),
    "stores": (".store",),
    "branches": ("br_if", "br_table", "if", "br"),
    "calls": ("call", "call_indirect", "return_call", "return_call_indirect"),
    "float_operations": tuple(
        f"f{bits}.{name}"
        for bits in (32, 64)
        for name in ("add", "sub", "mul", "div", "sqrt", "min", "max", "neg", "abs")
    ),
}
_BYTES = {"loaded_bytes": ".load", "stored_bytes": ".store"}
_WORKING_SET = "working_set_byte_seconds"
PROGRESS = ("instructions", "repetitions", *_CLASSES, "bulk_bytes", *_BYTES, _WORKING_SET)
PHASES = "phases"


@dataclass(frozen=True)
class ProgramPhase:
    """A phase of a program in which the same work repeats. repeats: of `run` in one beat. beats: how many,
    None without end. per_beat: by counter; of the working set its size, which counts for as long as the phase
    takes."""

    workload: Workload
    repeats: int
    beats: int | None
    per_beat: dict[str, float]


def phases_of(program: TracedProgram, longest_seconds: float) -> list[ProgramPhase]:
    """Return the program in beats that are as fine as useful and fill no memory."""
    room = CAPACITY * _SHORT_REPETITION_SECONDS / (4 * longest_seconds)
    finest = max(1, min(_FINEST, int(room)))
    phases = []
    for workload, repetitions in program.phases:
        parts = max(k for k in range(1, finest + 1) if workload.repeats % k == 0)
        repeats = workload.repeats // parts
        one = replace(workload, repeats=repeats)
        beats = None if repetitions is None else repetitions * parts
        phases.append(ProgramPhase(workload, repeats, beats, _per_beat(one, 1 / parts)))
    return phases


def _per_beat(workload: Workload, repetitions: float) -> dict[str, float]:
    """Return exact counts of one beat, null where the module cannot be counted."""
    try:
        counts = count_opcodes(workload)
    except BadData:
        return {**dict.fromkeys(PROGRESS, float("nan")), "repetitions": repetitions}
    counters: dict[str, float] = {
        "instructions": counts.instructions,
        "repetitions": repetitions,
        "bulk_bytes": counts.bulk_bytes,
    }
    for name, opcodes in _CLASSES.items():
        counters[name] = sum(
            count
            for opcode, count in counts.opcodes.items()
            if opcode in opcodes or any(w.startswith(".") and w in opcode for w in opcodes)
        )
    for name, kind in _BYTES.items():
        counters[name] = sum(
            count * _width(opcode) for opcode, count in counts.opcodes.items() if kind in opcode
        )
    counters[_WORKING_SET] = counts.memory_bytes
    return counters


def _width(opcode: str) -> int:
    """Return bytes that `i64.load`, `i64.load16_s` or the like moves."""
    kind, _, name = opcode.partition(".")
    digits = "".join(c for c in name.partition("_")[0] if c.isdigit())
    return int(digits or kind[1:]) // 8


def progress_of(
    phases: Sequence[ProgramPhase], pieces: Sequence[dict[str, Any]]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return (n,) times in nanoseconds that rise, and by counter (n,) how much was done at each."""
    times, steps, passed = [], [], []
    for piece in pieces:
        beats = beat_times(piece)
        per_beat = phases[piece["phase"]].per_beat
        times.append(beats)
        steps.append((len(beats), per_beat))
        # A beat's part of its phase; one without end is never passed.
        beats_of_phase = phases[piece["phase"]].beats
        passed.append(1 / beats_of_phase if beats_of_phase else 0.0)
    joined = np.maximum.accumulate(np.concatenate(times))
    lasted = np.diff(joined, prepend=joined[0]) * 1e-9
    done = {}
    for name in PROGRESS:
        # The first time of a piece is its start: nothing is done between pieces.
        parts = [np.r_[0.0, np.full(count - 1, per[name])] for count, per in steps]
        if name == _WORKING_SET:  # it is held between pieces, too
            held = np.concatenate([np.full(count, per[name]) for count, per in steps])
            done[name] = np.cumsum(held * lasted)
        else:
            done[name] = np.cumsum(np.concatenate(parts))
    parts = [
        np.r_[0.0, np.full(count - 1, part)] for part, (count, _) in zip(passed, steps, strict=True)
    ]
    done[PHASES] = np.cumsum(np.concatenate(parts))
    return joined, done
