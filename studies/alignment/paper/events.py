"""As many hardware events as the paper measured, made of the few that a simulated core counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.data import Trace, Traces

EVENTS = 64  # of a core, with those of the memory controller: 128 for two
SILENT = 13  # of a core that are always zero: 26 of 128 (Sec. IV-A)
POWERS = (0.5, 1.0, 1.5)  # of a count that an event may follow


def with_events(traces: Traces, number: int = EVENTS, seed: int = 0) -> Traces:
    """The traces with so many counters each, those they have included. SILENT of the new ones are always
    zero; the rest follow one counter or two, each by a power, in proportions and with noise drawn once for
    all traces: some nearly repeat another, some say something of their own. As they are where they have so
    many already."""
    every = list(traces)
    names = sorted(set.intersection(*(set(one.counters) for one in every))) if every else []
    more = number - len(names)
    if more <= 0:
        return traces
    random = np.random.default_rng(seed)
    silent = min(SILENT, more)
    made = [
        (random.choice(len(names), 2), random.choice(POWERS, 2), random.uniform(0.02, 0.7))
        for _ in range(more - silent)
    ]
    share = random.random(len(made))
    rates = np.concatenate([_rates(one, names) for one in every])
    usual = np.maximum(rates.mean(axis=0), 1e-30)

    def widened(one: Trace) -> Trace:
        own = _rates(one, names) / usual
        events = {f"zero_{i:02d}": np.zeros(len(one)) for i in range(silent)}
        for i, ((a, b), (p, q), noise) in enumerate(made):
            mixed = share[i] * own[:, a] ** p + (1 - share[i]) * own[:, b] ** q
            noisy = mixed * np.exp(noise * random.normal(size=len(one)))
            events[f"event_{i:02d}"] = 1e6 * noisy * one.interval_seconds
        return replace(one, counters={**one.counters, **events})

    return Traces.from_traces([widened(one) for one in every])


def _rates(one: Trace, names: list[str]) -> np.ndarray:
    """(T, d) per second, 0 for what is null."""
    table = np.stack([np.nan_to_num(one[name]) for name in names], axis=1)
    return np.maximum(table, 0.0) / one.interval_seconds[:, None]
