"""How fast run times are rolled forward, on one core, in CPU seconds.

    python benchmarks/alignment.py [--periods 100000]

A pair of simulated programs of 5 000 samples each, and a pair of --periods samples; the model is learned from
pairs of ten other programs. Each figure is the least of several repetitions.
"""

from __future__ import annotations

import argparse
import time

from _data import one_core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--periods", type=int, default=100_000)
    given = parser.parse_args()
    one_core()
    from jostle.alignment import (
        FittedAlignment,
        SoloIndex,
        aligned_rows,
        fit_learner,
        solo_counters,
        traced_runs,
        traced_windows,
    )
    from jostle.methods import RunCounts
    from studies.alignment.contention import Job, simulate
    from studies.alignment.machine import Machine
    from studies.alignment.simulated import draw_programs, simulate_campaign, trace_of

    counters = ("instructions", "stall_cycles", "cache_accesses", "dram_read_bytes")
    programs = draw_programs(12, 1, seconds=0.5)
    sets = [(a, b) for a in range(10) for b in range(10) if (a + b) % 3 == 0]
    traces = simulate_campaign(programs, sets=sets)
    rows = aligned_rows(traced_windows(traces), SoloIndex.from_traces(traces, counters))
    learned = fit_learner(rows, "phases")
    counts = RunCounts.of(traced_runs(traces))
    for samples in (5_000, given.periods):
        pair = draw_programs(12, 1, seconds=samples * 1e-3)[10:]
        solos = []
        for core, program in enumerate(pair):
            (history,) = simulate(Machine(), [Job(program, core)])
            trace = trace_of(history, 1e-3, run_id=program.name)
            solos.append(solo_counters(trace, counters))
        model = FittedAlignment(SoloIndex(tuple(solos)), learned, counts)
        best = float("inf")
        for _ in range(5):
            began = time.process_time()
            model.roll(solos)
            best = min(best, time.process_time() - began)
        sizes = " and ".join(str(solo.periods) for solo in solos)
        print(f"a pair of {sizes} samples: {1e3 * best:.1f} ms CPU")


if __name__ == "__main__":
    main()
