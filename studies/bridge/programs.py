"""Made programs in place of the paper's recordings that were never published: a controller and an annealer.

Both are governed by two laws. A share of the last-level cache, as Cache Allocation Technology gives it: of
the requests MISS_MOST / (1 + megabytes / HALF_MB) miss, falling towards MISS_LEAST (a power law of the
cache's size: Hartstein et al., On the nature of cache miss behavior, JILP 2008). A budget of memory
bandwidth, as Memguard enforces it: who would read more is stalled until it does not, and all its rates fall
alike (Yun et al., IEEE Trans. Computers 65, 2016).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import lfilter

from jostle.data import Traces
from studies.bridge.data import CYCLES, INTERVAL_SECONDS, MEMORY, NOISE, UNITS, made_trace

MISS_MOST, MISS_LEAST, HALF_MB = 0.6, 0.05, 6.0
LINE_BYTES = 64
CACHES_MB = (20.0, 12.0, 6.0, 2.0)  # of the annealer's cores, the first with the most
BANDWIDTHS_MBPS = (160.0, 120.0, 80.0, 40.0)
CYCLE_SECONDS = 0.2
ANNEAL_SECONDS = 10.5
STAGES = 6  # of falling temperature
NARROW = 0.5  # of a stage's requests at the last temperature over those at the first
SLACK = 0.03  # of the log of a budget, how exactly it is kept within a sample
EFFECT = 0.1  # of the log of a run's rates
CYCLE_COUNTER = "cycles"


def miss_ratio(cache_mb: np.ndarray | float) -> np.ndarray:
    """Of the requests how many miss a cache of so many megabytes."""
    return MISS_LEAST + (MISS_MOST - MISS_LEAST) / (1 + np.asarray(cache_mb, float) / HALF_MB)


def allocated(rates: np.ndarray, cache_mb: float, bandwidth_mbps: np.ndarray | float) -> np.ndarray:
    """(T, 3) rates of COUNTERS under an allocation: the cache says what misses, and all is held to the budget
    of bandwidth, one number or (T,)."""
    found = rates.copy()
    found[:, 2] = rates[:, 1] * miss_ratio(cache_mb)
    wanted = found[:, 2] * LINE_BYTES / 1e6
    stalled = np.minimum(1.0, bandwidth_mbps / np.maximum(wanted, 1e-300))
    return found * stalled[:, None]


def controller(runs: int, *, seed: int = 0) -> Traces:
    """Repeated runs of a model-predictive controller: five control cycles, each a reading of sensors, a
    number of solver iterations that differs from run to run, and an actuation; the first cycle starts cold.

    Counter `cycles` counts control cycles that ended.
    """
    program = np.random.default_rng([seed, 20])
    parts = program.gamma(2.0, 0.5, (3, 3)) + 0.1  # sensing, solving, actuating
    usual = program.integers(8, 13, CYCLES)
    traces = []
    for run in range(runs):
        random = np.random.default_rng([seed, 21, run])
        lengths, levels, cycle = [], [], []
        for number in range(CYCLES):
            iterations = usual[number] + random.binomial(4, 0.3) + (6 if number == 0 else 0)
            spans = np.array([0.15, 0.06 * iterations, 0.1]) * CYCLE_SECONDS
            lengths.append(spans * np.exp(0.03 * random.standard_normal(3)))
            levels.append(parts * (1.3 if number == 0 else 1.0))
            cycle += [number] * 3
        ends = np.cumsum(np.concatenate(lengths))
        time = INTERVAL_SECONDS * np.arange(1, int(np.ceil(ends[-1] / INTERVAL_SECONDS)) + 1)
        place = np.minimum(np.searchsorted(ends, time), len(ends) - 1)
        effect = np.exp(EFFECT * random.standard_normal(3))
        rates = np.concatenate(levels)[place] * effect * _noise(random, len(time)) * UNITS
        done = np.searchsorted(ends[2::3], time, side="right")
        counts = np.diff(done, prepend=0).astype(float)
        counts[-1] += CYCLES - done[-1]  # the last cycle ends within the last sample
        traces.append(made_trace(run, 0, time, rates, float(ends[-1]), {CYCLE_COUNTER: counts}))
    return Traces.from_traces(traces)


def annealer(
    runs: int,
    *,
    seed: int = 0,
    part: int = 0,
    caches_mb: Sequence[float] = CACHES_MB,
    bandwidths_mbps: Sequence[float] = BANDWIDTHS_MBPS,
    length_seconds: float = ANNEAL_SECONDS,
) -> Traces:
    """Repeated runs of a program that swaps random elements on every core at falling temperatures; core 0
    alone reads the input and writes the output. Each core has its own allocation.

    part: other runs of the same program."""
    program = np.random.default_rng([seed, 22])
    use = program.uniform(0.8, 1.2, (STAGES + 2, 3))
    requests = np.concatenate([[0.6], np.linspace(1.0, NARROW, STAGES), [0.4]])
    level = use * np.stack([np.ones(STAGES + 2), requests, requests], axis=1)
    spans = np.concatenate([[0.06], np.full(STAGES, 0.82 / STAGES), [0.12]]) * length_seconds
    time = INTERVAL_SECONDS * np.arange(1, round(length_seconds / INTERVAL_SECONDS) + 1)
    traces = []
    for run in range(runs):
        random = np.random.default_rng([seed, 23, part, run])
        ends = np.cumsum(spans * np.exp(0.02 * random.standard_normal(STAGES + 2)))
        place = np.minimum(np.searchsorted(ends, time), STAGES + 1)
        alone = (place == 0) | (place == STAGES + 1)
        for core, (cache, bandwidth) in enumerate(zip(caches_mb, bandwidths_mbps, strict=True)):
            effect = np.exp(EFFECT * random.standard_normal(3))
            rates = level[place] * effect * _noise(random, len(time)) * UNITS
            kept = np.exp(
                SLACK * random.standard_normal(len(time))
            )  # budgets are kept by the millisecond
            rates = allocated(rates, cache, bandwidth * kept)
            if core:
                rates[alone] = 0.0
            traces.append(made_trace(run, core, time, rates, length_seconds, {}))
    return Traces.from_traces(traces)


def _noise(random: np.random.Generator, n: int) -> np.ndarray:
    """(n, 3) factors whose logs are AR(1)."""
    shocks = random.standard_normal((n, 3)) * NOISE
    shocks[1:] *= np.sqrt(1 - MEMORY**2)
    return np.exp(lfilter([1.0], [1.0, -MEMORY], shocks, axis=0))
