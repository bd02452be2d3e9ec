"""Forecasts on programs recorded on this machine: a phased one alone, and four workers side by side.

    python -m studies.collect.bridge_recordings OUT [--runs 240] [--only controller] [--snapshots 7]

What OUT does not hold yet is recorded first, 10 ms samples, as `jostle trace` would: five minutes for the
controller (four cycles of five phases, 1.2 s) and four for the workers (three cycles of four phases; two
cores, or as many as there are). Then half of the runs forecast the other half, with the clocks that a trace
has: none, work (instructions), marks between phases, and marks of a program that comes back to its phases.
The machine should be quiet.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

COMPONENTS = ("loads", "stores", "branches", "float_operations")


@dataclass(frozen=True)
class Recording:
    """A cycle of phases, repeated; members side by side."""

    phases: tuple[tuple[str, int], ...]
    cycles: int
    members: int

    @property
    def program(self) -> str:
        cycle = "+".join(f"{workload}*{repeats}" for workload, repeats in self.phases)
        return "+".join([cycle] * self.cycles)

    @property
    def marks(self) -> tuple[float, ...]:
        """Repetitions done where a phase begins."""
        repeats = [repeats for _, repeats in self.phases] * self.cycles
        return tuple(float(mark) for mark in np.cumsum(repeats)[:-1])


RECORDINGS = {
    "controller": Recording(
        (("edit-m", 150), ("gemv-m", 150), ("lu-m", 150), ("matmul-m", 75), ("copy-l", 20)), 4, 1
    ),
    "workers": Recording(
        (("fft-m", 200), ("sort-m", 60), ("copy-l", 40), ("stencil-m", 120)), 3, 4
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=240)
    parser.add_argument("--only", choices=tuple(RECORDINGS))
    parser.add_argument("--snapshots", type=int, default=7)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--ended", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, recording in RECORDINGS.items():
        if options.only in (None, name):
            record(options.out / name, name, recording, options.runs)
            evaluate(options.out / name, recording, options)


def record(folder: Path, name: str, recording: Recording, runs: int) -> None:
    """Nothing where the folder holds traces already."""
    from jostle.measure import TraceOptions, trace
    from jostle.traces import write_traces

    if (folder / "traced_runs").is_dir():
        return
    results = trace(
        [f"{name}={recording.program}"] * recording.members,
        TraceOptions(runs=runs),
        progress=lambda done, total, _: print(f"{name}: window {done + 1} of {total}", flush=True),
    )
    write_traces(folder, results)


def evaluate(folder: Path, recording: Recording, options: argparse.Namespace) -> None:
    from jostle.bridge import Bridge
    from jostle.cli.console import print_table
    from jostle.traces import Windows, read_traces
    from studies.bridge.graphs.clock import ClockSettings
    from studies.bridge.scores import score
    from studies.bridge.splits import Also, trace_splits
    from studies.bridge.tables import score_table

    traces = read_traces(folder)
    runs = Windows.of(traces) if recording.members > 1 else traces
    plain = Bridge(components=COMPONENTS)
    beats = ClockSettings("repetitions", "beats", recording.marks)
    if "phases" in traces.counters:  # recordings of an older version have none
        beats = ClockSettings("phases", "beats")
    ways = {
        "no clock": None,
        "clock: instructions": ClockSettings("instructions"),
        "clock: phases": beats,
        "clock: phases, which come back": replace(beats, period=len(recording.phases)),
    }
    for number, (way, clock) in enumerate(ways.items()):
        splits = trace_splits(
            runs,
            options.snapshots,
            method=plain,
            splits=options.splits,
            ended=options.ended,
            also=Also(
                ("barycentric", "series_parallel") if len(runs) < len(traces) and not number else (), clock
            ),
            seed=options.seed,
        )  # fmt: skip
        scores = score(folder.name, splits)
        print(f"\n{folder.name}, {way}: {len(runs)} runs, {options.snapshots} snapshots")
        table = score_table(scores)
        print_table(table)


if __name__ == "__main__":
    main()
