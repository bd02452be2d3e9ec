"""Data for the evaluation of forecasts: made ones whose truth is known, and the published snapshots.

*Phase programs*: a run goes through phases; each has a mean of its own per counter, each run its own
factor in each phase, and samples AR(1) noise; the phases' lengths vary from run to run. This is what
interpolation in time cannot see. *Drift*: means that move smoothly with time, where displacement is the
right picture. Both are traces like any recorded ones, with the clock as a counter.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jostle.data import Trace, Traces
from jostle.errors import UnreadableFile
from tests.plain_traces import plain_trace

COUNTERS = ("instructions", "llc-requests", "llc-misses")
UNITS = np.array([2e9, 5e6, 1e6])  # typical rates per second
PAPER_SCALE = {"instructions": 1e-8, "llc-requests": 1e-6, "llc-misses": 1e-5}  # counts per 10 ms
CYCLES = 5
LENGTH_SECONDS, INTERVAL_SECONDS = 3.0, 0.01  # of made runs and their samples
PHASES = 6
NOISE, MEMORY = (
    0.15,
    0.8,
)  # of made samples: the deviation of their log, and what stays of it in the next one
Folder = str | os.PathLike[str]


def phase_program(
    runs: int,
    *,
    jitter: float,
    seed: int = 0,
    length_seconds: float = LENGTH_SECONDS,
    cores: int = 1,
) -> Traces:
    """Repeated runs of one phase program. jitter: standard deviation of the log of a phase's length.

    Counter `beats` counts the marks between phases. The program depends on the seed alone, so calls with
    more runs have the same first ones.
    """
    program = np.random.default_rng([seed, 1])
    means = program.gamma(2.0, 0.5, size=(cores, PHASES, 3)) + 0.1
    lengths = program.dirichlet(np.full(PHASES, 20.0)) * length_seconds
    traces = []
    for run in range(runs):
        random = np.random.default_rng([seed, 2, run])
        own = lengths * np.exp(jitter * random.standard_normal(PHASES))
        ends = np.cumsum(own)
        n = int(np.ceil(ends[-1] / INTERVAL_SECONDS))
        time = INTERVAL_SECONDS * np.arange(1, n + 1)
        index = np.minimum(np.searchsorted(ends, time), PHASES - 1)
        before = np.append(0, index[:-1])
        beats = index - before
        # A sample in which a mark falls has parts of two phases.
        part = ((ends[before] - (time - INTERVAL_SECONDS)) / INTERVAL_SECONDS)[:, None]
        part = np.where((before == index)[:, None], 1.0, part)
        for core in range(cores):
            effect = np.exp(0.10 * random.standard_normal((PHASES, 3)))
            noise = _autoregressive(random, n)
            use = means[core] * effect
            level = (part * use[before] + (1 - part) * use[index]) * np.exp(noise) * UNITS
            traces.append(made_trace(run, core, time, level, ends[-1], {"beats": beats}))
    return Traces.from_traces(traces)


def drift(
    runs: int, *, seed: int = 0, length_seconds: float = LENGTH_SECONDS, cores: int = 1
) -> Traces:
    """Repeated runs whose rates move smoothly: a slow wave per counter, 10% per run, 15% noise."""
    program = np.random.default_rng([seed, 3])
    waves = program.uniform(0.6, 1.6, size=(cores, 3))
    offsets = program.uniform(0, 2 * np.pi, size=(cores, 3))
    traces = []
    n = round(length_seconds / INTERVAL_SECONDS)
    time = INTERVAL_SECONDS * np.arange(1, n + 1)
    for run in range(runs):
        random = np.random.default_rng([seed, 4, run])
        for core in range(cores):
            turn = 2 * np.pi * time[:, None] / length_seconds * waves[core] + offsets[core]
            effect = np.exp(0.10 * random.standard_normal(3))
            noise = _autoregressive(random, n)
            level = (1 + 0.6 * np.sin(turn)) * effect * np.exp(noise) * UNITS
            beats = np.zeros(n)
            traces.append(made_trace(run, core, time, level, length_seconds, {"beats": beats}))
    return Traces.from_traces(traces)


def _autoregressive(random: np.random.Generator, n: int) -> np.ndarray:
    """(n, 3) stationary AR(1) noise."""
    shocks = random.standard_normal((n, 3)) * NOISE * np.sqrt(1 - MEMORY**2)
    noise = np.empty((n, 3))
    noise[0] = random.standard_normal(3) * NOISE
    for t in range(1, n):
        noise[t] = MEMORY * noise[t - 1] + shocks[t]
    return noise


def made_trace(
    run: int,
    core: int,
    time: np.ndarray,
    rates: np.ndarray,
    end: float,
    more: Mapping[str, np.ndarray],
) -> Trace:
    """One run on one core: rates (T, 3) of COUNTERS in samples that end at the times, and more counts."""
    counters = {name: rates[:, i] * INTERVAL_SECONDS for i, name in enumerate(COUNTERS)}
    return plain_trace(
        counters | dict(more),
        INTERVAL_SECONDS,
        run_id=f"run-{run:05d}",
        core=core,
        workload="made",
        platform="none",
        runtime_seconds=float(max(end, time[-1])),
        time_seconds=time,
    )


def read_published(folder: Folder, between: int) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    """The published snapshots with `between` of them inside each control cycle.

    Returns times in cycles (s,), the clouds (500, 3) in counts per 10 ms, and a fingerprint of each cloud's
    data: equal fingerprints are the same samples. Raises UnreadableFile.
    """
    home = Path(folder) / f"halder_outfiles_0927_intermarginals{between}"
    count = CYCLES * (between + 1) + 1
    clouds, prints = [], []
    for k in range(count):
        found = sorted(home.glob(f"*_t{k}_3dim.txt"))
        if not found:
            raise UnreadableFile(f"there is no snapshot t{k}", where=str(home))
        try:
            cloud = np.loadtxt(found[0], ndmin=2)
        except ValueError as error:
            raise UnreadableFile(f"not a table of numbers: {error}", where=str(found[0])) from None
        clouds.append(cloud)
        prints.append(fingerprint(cloud))
    return np.arange(count) / (between + 1), clouds, prints


def fingerprint(atoms: np.ndarray) -> str:
    """The same for the same numbers in the same order."""
    return hashlib.sha256(np.ascontiguousarray(atoms, np.float64).tobytes()).hexdigest()[:16]
