"""Stressors that come with Jostle: what every workload is measured beside with `jostle measure --probes`.

Each is a shipped kernel of a size that presses in one way: on the last cache, on memory bandwidth at two
strengths, and by scattered accesses; these are taken unless others are named. Arithmetic in private caches
presses only on who shares the core itself, so `core` is for hosts where workloads do (threads of one core, or
more workloads than cores). What each loses beside the others is measured too: that is the scale on which a
workload's pressure is read (see `jostle.probes`).
"""

from __future__ import annotations

from collections.abc import Sequence

from jostle.errors import UnknownName
from jostle.measure.workloads._workloads import Workload
from jostle.measure.workloads.kernels import KERNEL_FOLDER

PREFIX = "probe-"
# name: (kernel, setup's argument, repeats of one repetition), the milder first.
_STRESSORS: dict[str, tuple[str, int, int]] = {
    "cache": ("stream", 1 << 21, 16),  # a triad through 6 MiB
    "copy": ("copy", 1 << 25, 32),  # 32 MiB to 32 MiB: half reads, half writes
    "scatter": ("radix", 1 << 21, 1),  # counts and moves 2 million keys
    "stream": ("stream", 1 << 25, 16),  # a triad through 96 MiB
    "core": ("matmul", 96, 8),  # multiplies and adds in private caches
}
USUAL = ("cache", "copy", "scatter", "stream")


def probe_workloads(names: Sequence[str] = ()) -> tuple[Workload, ...]:
    """The stressors of these names (with `probe-` or without), or the usual four. Raises UnknownName."""
    wanted = {name.removeprefix(PREFIX) for name in names} or set(USUAL)
    for name in sorted(wanted.difference(_STRESSORS)):
        raise UnknownName("stressor", name, tuple(_STRESSORS))
    return tuple(
        Workload(
            f"{PREFIX}{name}", KERNEL_FOLDER / f"{kernel}.wasm", argument, repeats, "stressors"
        )
        for name, (kernel, argument, repeats) in sorted(_STRESSORS.items())
        if name in wanted
    )
