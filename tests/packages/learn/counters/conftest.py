"""Small traces: by hand, and of a few simulated programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from jostle.data import Trace, Traces
from jostle.learn.learners.counters import SoloCounters
from studies.alignment.machine import Machine
from studies.alignment.simulated import draw_programs, simulate_campaign
from tests.plain_traces import plain_trace


def a_trace(
    instructions: Sequence[float],
    *,
    interval: float | Sequence[float] = 0.01,
    workload: str = "w",
    run_id: str = "r",
    corunners: tuple[str, ...] = (),
    window_id: str | None = None,
    core: int = 0,
    runtime: float | None = None,
    **counters: Sequence[float],
) -> Trace:
    facts = {"workload": workload, "run_id": run_id, "corunners": corunners}
    facts |= {"window_id": window_id, "core": core}
    facts |= {} if runtime is None else {"runtime_seconds": runtime}
    return plain_trace({"instructions": instructions, **counters}, interval, **facts)


def a_solo(counts: np.ndarray, tau: float = 1.0, *, name: str = "w", slot: int = 0) -> SoloCounters:
    """counts: (T, d) per period, instructions first."""
    table = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
    names = ("instructions", *(f"c{i}" for i in range(1, counts.shape[1])))
    return SoloCounters(name, "p", slot, tau, len(counts) * tau, names, table)


@pytest.fixture(scope="session")
def traces() -> Traces:
    """Six programs alone, and all their pairs both ways."""
    programs = draw_programs(6, 3, seconds=0.05, shortest_seconds=2e-3, longest_seconds=2e-2)
    return simulate_campaign(programs, Machine(clock_hertz=(2e9, 2e9)))
