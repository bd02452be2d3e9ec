"""Stressors that come with Jostle: what every workload is measured beside with `jostle measure --probes`.

Each is a shipped kernel of a size that presses in one way: on the last cache, on memory bandwidth at two
strengths, and by scattered accesses. Arithmetic and sets that fit a private cache press on nobody and are no
stressors. What each loses beside the others is measured too: that is the scale on which a workload's pressure
is read (see `jostle.probes`).
"""

from __future__ import annotations

from jostle.measure.workloads._workloads import Workload
from jostle.measure.workloads.kernels import KERNEL_FOLDER

PREFIX = "probe-"
# name: (kernel, setup's argument, repeats of one repetition), the milder first.
_STRESSORS: dict[str, tuple[str, int, int]] = {
    "cache": ("stream", 1 << 21, 16),  # a triad through 6 MiB
    "copy": ("copy", 1 << 25, 32),  # 32 MiB to 32 MiB: half reads, half writes
    "scatter": ("radix", 1 << 21, 1),  # counts and moves 2 million keys
    "stream": ("stream", 1 << 25, 16),  # a triad through 96 MiB
}


def probe_workloads() -> tuple[Workload, ...]:
    """The stressors, by name."""
    return tuple(
        Workload(
            f"{PREFIX}{name}", KERNEL_FOLDER / f"{kernel}.wasm", argument, repeats, "stressors"
        )
        for name, (kernel, argument, repeats) in sorted(_STRESSORS.items())
    )
