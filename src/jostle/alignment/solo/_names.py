"""Which counters there are to learn from, and the events of the paper (Table III) by their names in Linux
perf, with what is nearest to them on any host.

The paper's machine is an NXP S32V234: Cortex-A53 cores, whose events perf lists by name
(tools/perf/pmu-events, cortex-a53; common events of ARMv8), and the MMDC memory controller, whose driver
counts bytes and busy cycles. `perf stat -I 1 -x, -e …` of them becomes traces by `jostle import perf`. None
of them is required.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from jostle.alignment.solo._counters import INSTRUCTIONS, MOST_NULL
from jostle.errors import BadData, NotEnoughRuns
from jostle.traces import MARKS

if TYPE_CHECKING:
    from jostle.traces import Traces

# What the machine did to a program, or how it was recorded, rather than what the program does: no counters to
# learn from, unless they are asked for by name. Levels are no counts.
NOT_OF_THE_PROGRAM = frozenset(
    (
        "repetitions",
        "cpu_seconds",
        "run_delay_seconds",
        "timeslices",
        "voluntary_switches",
        "involuntary_switches",
        "resident_bytes",
        "pressure_cpu_seconds",
        "pressure_memory_seconds",
        "pressure_io_seconds",
        "perf_task_clock_ns",
        "perf_context_switches",
        "perf_cpu_migrations",
    )
)

# (the paper's words, perf's name on the paper's machine, the nearest generic perf event or None)
PAPER_EVENTS: tuple[tuple[str, str, str | None], ...] = (
    ("Instructions", "inst_retired", "instructions"),
    ("DRAM write-bytes", "mmdc/write-bytes/", "uncore_imc/data_writes/"),
    ("DRAM read-bytes", "mmdc/read-bytes/", "uncore_imc/data_reads/"),
    ("DRAM busy-cycles", "mmdc/busy-cycles/", None),
    ("Conditional branches", "br_cond", "branch-instructions"),  # 0xC9
    # No event of the core has this name. This one is nearest: all software changes of the PC (0x0C).
    ("Unconditional branches", "pc_write_retired", None),
    ("Exception taken", "exc_taken", "page-faults"),
    ("L1 instruction cache access", "l1i_cache", "L1-icache-loads"),
    ("L1 instruction TLB refill", "l1i_tlb_refill", "iTLB-load-misses"),
    ("Load instructions", "ld_retired", "L1-dcache-loads"),
    ("Linefill because of prefetch", "prefetch_linefill", "L1-dcache-prefetches"),  # 0xC2
    ("Read allocate mode", "read_alloc", None),  # 0xC5; 0xC4 counts entering it
    ("L2 Data cache access", "l2d_cache", "LLC-loads"),
    (
        "pipeline stall because the store buffer is full",
        "stall_sb_full",  # 0xC7
        "stalled-cycles-backend",
    ),
)


def offered_counters(
    traces: Traces, wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...], list[str]]:
    """(counters that every run alone has, instructions first; notes on those left out), without those that
    are not of the program where none are asked for by name."""
    solo = [trace for trace in traces if trace.solo]
    if not solo:
        raise NotEnoughRuns("no workload was traced alone", fix="Trace every workload alone.")
    if wanted is not None:
        return (INSTRUCTIONS, *(name for name in wanted if name != INSTRUCTIONS)), []
    count = Counter(
        name
        for trace in solo
        for name, values in trace.counters.items()
        if name not in NOT_OF_THE_PROGRAM
        and name not in MARKS
        and np.isnan(values).mean() <= MOST_NULL
    )
    if not count[INSTRUCTIONS]:
        raise BadData(
            "no trace counts instructions", fix="Record the counter 'instructions': it is the axis."
        )
    notes = [
        f"counter {name} was left out: {len(solo) - n} of {len(solo)} runs alone do not have it"
        for name, n in sorted(count.items())
        if n < len(solo) and name != INSTRUCTIONS
    ]
    rest = sorted(n for n, c in count.items() if c == len(solo) and n != INSTRUCTIONS)
    return (INSTRUCTIONS, *rest), notes
