"""The events of the paper (Table III) by their names in Linux perf on an ARM Cortex-A53, and what is
nearest to them on any host. Recorders use these names for counters; none of them is required by the
method."""

from __future__ import annotations

# (the paper's words, perf's name on armv8_cortex_a53, the generic perf event or None)
PAPER_EVENTS: tuple[tuple[str, str, str | None], ...] = (
    ("Instructions", "inst_retired", "instructions"),
    ("DRAM write-bytes", "imx8_ddr/write-bytes", "uncore_imc/data_writes"),
    ("DRAM read-bytes", "imx8_ddr/read-bytes", "uncore_imc/data_reads"),
    ("DRAM busy-cycles", "imx8_ddr/cycles", "uncore_imc/clockticks"),
    ("Conditional branches", "r0c9", "branch-instructions"),
    ("Unconditional branches", "r0c8", None),
    ("Exception taken", "exc_taken", "page-faults"),
    ("L1 instruction cache access", "l1i_cache", "L1-icache-loads"),
    ("L1 instruction TLB refill", "l1i_tlb_refill", "iTLB-load-misses"),
    ("Load instructions", "ld_retired", "mem-loads"),
    ("Linefill because of prefetch", "r0c2", "LLC-prefetches"),
    ("Read allocate mode", "r0c4", None),
    ("L2 Data cache access", "l2d_cache", "LLC-loads"),
    ("pipeline stall because the store buffer is full", "r0c7", "stalled-cycles-backend"),
)
