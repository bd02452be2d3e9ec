"""How much do the cores of this machine share? For four or more cores.

    python benchmarks/contention.py FOLDER [--cores 0 --cores 1 …] [--seconds 0.3]

Measures the bandwidth of streams on one core and on all of them, and the time of a load from memory alone and
beside streams on all other cores. Says if the cores share too little for a campaign to show anything, and
prints the command that records one: eight programs that press on caches and memory bandwidth, each on a core
of its own, alone, beside stressors and in random sets. FOLDER holds the compiled program. Needs cc.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOURCE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

/* kernel KIND KIB SECONDS [PASSES]: for so long, or so many passes. Prints what was done in a second. */
int main(int argc, char **argv) {
    const char *kind = argv[1];
    size_t n = strtoull(argv[2], 0, 10) * 1024 / sizeof(uint64_t), i;
    double seconds = atof(argv[3]), began;
    long passes = argc > 4 ? atol(argv[4]) : -1, done = 0;
    uint64_t *a = malloc(n * sizeof *a), x = 88172645463325252ull, at = 0;
    if (!a || n < 2) return 1;
    for (i = 0; i < n; i++) a[i] = i;
    if (!strcmp(kind, "chase"))  /* Sattolo's shuffle: one cycle through all */
        for (i = n - 1; i > 0; i--) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            size_t j = x % i; uint64_t t = a[i]; a[i] = a[j]; a[j] = t;
        }
    began = now();
    while (passes < 0 ? now() - began < seconds : done < passes) {
        if (!strcmp(kind, "stream")) for (i = 0; i < n; i++) a[i] = a[i] * 3 + 1;
        else if (!strcmp(kind, "copy")) memcpy(a, a + n / 2, n / 2 * sizeof *a);
        else if (!strcmp(kind, "chase")) for (i = 0; i < n / 16; i++) at = a[at];
        else for (i = 0; i < n / 16; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; a[x % n] += x; }
        done++;
    }
    began = now() - began;
    size_t each = !strcmp(kind, "stream") ? n * 16 : !strcmp(kind, "copy") ? n * 8 : n / 16;
    printf("%.9g %llu\n", done * (double)each / began, (unsigned long long)(a[1] + at));
    return 0;
}
"""
# What a campaign measures: kernel and KiB, inside a last cache of some MiB and past it.
PROGRAMS = (
    ("stream", 96 * 1024),
    ("stream", 2 * 1024),
    ("copy", 64 * 1024),
    ("copy", 4 * 1024),
    ("chase", 96 * 1024),
    ("chase", 3 * 1024),
    ("scatter", 64 * 1024),
    ("scatter", 512),
)
PAST_CACHES = 128 * 1024  # KiB
TOO_LITTLE = (
    1.10  # times as long, beside streams on all other cores, under which there is little to tell
)
REPEATS = 5


def run_beside(
    kernel: Path, jobs: Sequence[tuple[int, str, int]], seconds: float, passes: int | None = None
) -> list[float]:
    """What each of (core, kind, KiB) did per second, all at once."""
    more = [] if passes is None else [str(passes)]
    started = [
        subprocess.Popen(
            [str(kernel), kind, str(size), str(seconds), *more],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda core=core: os.sched_setaffinity(0, {core}),
        )
        for core, kind, size in jobs
    ]
    return [float(process.communicate()[0].split()[0]) for process in started]


def measured(kernel: Path, cores: Sequence[int], seconds: float) -> dict[str, Any]:
    """Medians of what one core and all cores do past the caches."""

    def of(jobs: Sequence[tuple[int, str, int]]) -> list[list[float]]:
        return [run_beside(kernel, jobs, seconds) for _ in range(REPEATS)]

    streams = [(core, "stream", PAST_CACHES) for core in cores]
    one = statistics.median(each[0] for each in of(streams[:1]))
    every = statistics.median(sum(each) for each in of(streams))
    chase = (cores[0], "chase", PAST_CACHES)
    alone = statistics.median(each[0] for each in of([chase]))
    beside = statistics.median(each[0] for each in of([chase, *streams[1:]]))
    return {
        "cores": list(cores),
        "stream_one_core_bytes_per_second": one,
        "stream_all_cores_bytes_per_second": every,
        "stream_slowdown_ratio": one * len(cores) / every,
        "load_alone_seconds": 1 / alone,
        "load_beside_streams_seconds": 1 / beside,
        "load_slowdown_ratio": alone / beside,
    }


def told(facts: dict[str, Any]) -> str:
    lines = [
        f"{len(facts['cores'])} cores; a stream of one moves "
        f"{facts['stream_one_core_bytes_per_second'] / 1e9:.1f} GB/s, those of all together "
        f"{facts['stream_all_cores_bytes_per_second'] / 1e9:.1f} GB/s "
        f"(each {facts['stream_slowdown_ratio']:.2f} times as slow)",
        f"a load from memory takes {1e9 * facts['load_alone_seconds']:.0f} ns alone, "
        f"{1e9 * facts['load_beside_streams_seconds']:.0f} ns beside streams on all other cores",
    ]
    most = max(facts["stream_slowdown_ratio"], facts["load_slowdown_ratio"])
    if most < TOO_LITTLE:
        lines.append(
            f"these cores share too little: nothing is slowed by over {most - 1:.0%}, which noise "
            "hides; more cores of one socket would tell more"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cores", type=int, action="append")
    parser.add_argument("--seconds", type=float, default=0.3, help="about how long a program takes")
    given = parser.parse_args()
    cores = given.cores or sorted(os.sched_getaffinity(0))
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kernel = folder / "kernel"
    (folder / "kernel.c").write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-o", str(kernel), str(folder / "kernel.c")], check=True)
    print(told(measured(kernel, cores, given.seconds)), flush=True)
    words = ["jostle", "measure", "-o", str(folder / "runs"), "--probes"]
    for kind, size in PROGRAMS:
        passes = max(1, round(_passes(kernel, cores[0], kind, size, given.seconds)))
        words += ["-c", f"{kernel} {kind} {size} 0 {passes}"]
    for core in cores:
        words += ["--core", str(core)]
    print(shlex.join([*words, "--largest", str(len(cores))]))
    return 0


def _passes(kernel: Path, core: int, kind: str, size: int, seconds: float) -> float:
    """That take so long alone."""
    words = size * 1024 // 8
    each = {"stream": words * 16, "copy": words * 8}.get(kind, words // 16)
    return run_beside(kernel, [(core, kind, size)], seconds)[0] * seconds / each


if __name__ == "__main__":
    raise SystemExit(main())
