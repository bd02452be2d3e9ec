"""The paper's experiments, on the data there is: single-core snapshots, four cores, and allocations between.

Source: Bondar, Gifford, Phan, Halder, Stochastic Learning of Computational Resource Usage as Graph Structured
Multimarginal Schrödinger Bridge, Sec. VI. What it did not publish (raw profiles, cycle ends, the multi-core
recordings, other allocations) is made (`_programs`); every answer names its source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from jostle.data import Traces
from jostle.errors import BadData, UnknownName
from jostle.usage import Bridge, Cloud, Forecast, Snapshots, evenly_few
from studies.bridge.data import (
    COUNTERS,
    CYCLES,
    INTERVAL_SECONDS,
    PAPER_SCALE,
    Folder,
    fingerprint,
    read_published,
)
from studies.bridge.graphs.forecasts import GRAPHS, GraphForecast
from studies.bridge.programs import (
    ANNEAL_SECONDS,
    CYCLE_COUNTER,
    annealer,
    controller,
)
from studies.bridge.rivals import wasserstein

PAPER_UNITS = np.array([PAPER_SCALE[name] for name in COUNTERS])  # of counts per 10 ms
SNAPSHOT_SECONDS = (0.0, 0.5, 1.5, 2.5, 5.0, 9.5, 10.5)  # of the multi-core experiment
HELD_OUT_SECONDS = (0.8, 2.2, 7.0, 9.0, 10.0)
MULTI_EPS = 0.05
MULTI_SCALE = {
    "instructions": 1e-11,
    "llc-requests": 1e-9,
    "llc-misses": 1e-7,
}  # of events per second
Read = Callable[[int, bool], tuple[np.ndarray, list[np.ndarray], list[str]]]


@dataclass(frozen=True, eq=False)
class SingleCore:
    """The controller. read(between, truth): times in cycles, clouds (n, 3) of counts per 10 ms with so many
    snapshots inside each cycle, and their fingerprints; truth: those to compare with. profiles: (times,
    counts (runs, T, 3), unit of time). ends: (runs, cycles) seconds at which control cycles ended."""

    read: Read
    source: str
    profiles: tuple[np.ndarray, np.ndarray, str]
    ends: np.ndarray
    ends_source: str

    @classmethod
    def of(
        cls,
        published: Folder | None,
        recorded: Traces | None = None,
        *,
        counter: str = CYCLE_COUNTER,
        period: int = 1,
        runs: int = 500,
        seed: int = 0,
    ) -> SingleCore:
        """From the published snapshots where given, else from made runs; cycle ends from recorded traces
        where given. Raises UnknownName, BadData, UnreadableFile."""
        made = controller(runs, seed=seed)
        told = f"Made controller, {runs} runs: the paper's recordings were never published."
        ends = cycle_ends(recorded or made, counter if recorded else CYCLE_COUNTER, period)
        ends_told = f"{len(recorded)} recorded runs." if recorded else told
        if published is not None:
            times, clouds, _ = read_published(published, 5)
            profiles = times, np.stack(clouds, axis=1), "control cycles"
            text = f"Published snapshots of the paper's controller, {len(clouds[0])} runs."
            return cls(lambda b, _: read_published(published, b), text, profiles, ends, ends_told)
        shots = np.stack([trace_rates(t) for t in list(made)[:60]]) * INTERVAL_SECONDS
        time = INTERVAL_SECONDS * np.arange(1, shots.shape[1] + 1)
        profiles = time, shots, "s"
        return cls(lru_cache(_reader(made)), told, profiles, ends, ends_told)


def _reader(made: Traces) -> Read:
    """Half of made runs to learn from, half as the truth; what has ended uses nothing."""
    ids = made.run_ids
    halves = [list(made.select(part)) for part in (ids[: len(ids) // 2], ids[len(ids) // 2 :])]
    marks = np.append(INTERVAL_SECONDS, cycle_ends(made, CYCLE_COUNTER).mean(axis=0))

    def read(between: int, truth: bool) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
        places = np.arange(CYCLES * (between + 1) + 1) / (between + 1)
        moments = np.interp(places, np.arange(CYCLES + 1), marks)
        rates = np.stack([trace_rates(trace, moments) for trace in halves[int(truth)]])
        clouds = list(np.swapaxes(rates, 0, 1) * INTERVAL_SECONDS)
        return places, clouds, [fingerprint(cloud) for cloud in clouds]

    return read


def trace_rates(trace: object, moments: np.ndarray | None = None) -> np.ndarray:
    """(T, 3) rates of COUNTERS at the moments, or in its own samples up to three seconds; 0 after the end."""
    from jostle.data import Trace

    assert isinstance(trace, Trace)
    if moments is None:
        moments = INTERVAL_SECONDS * np.arange(1, round(3.0 / INTERVAL_SECONDS) + 1)
    place = np.searchsorted(trace.time_seconds, moments - 1e-9)
    inside = place < len(trace)
    place = np.minimum(place, len(trace) - 1)
    values = np.stack([trace.counters[name] for name in COUNTERS], axis=1)
    return np.where(inside[:, None], (values / trace.interval_seconds[:, None])[place], 0.0)


def cycle_ends(traces: Traces, counter: str, period: int = 1) -> np.ndarray:
    """(runs, cycles) the seconds at which a counter of phases had come through each further `period` of them,
    as many cycles as all runs completed; to within a sample. Raises UnknownName, BadData for none."""
    found = []
    for trace in traces:
        if counter not in trace.counters:
            raise UnknownName("counter", counter, tuple(trace.counters))
        done = np.cumsum(np.nan_to_num(trace.counters[counter]))
        whole = int(done[-1] // period)
        place = np.searchsorted(done, period * np.arange(1, whole + 1) - 1e-9)
        found.append(np.minimum(trace.time_seconds[place], trace.runtime_seconds))
    fewest = min(len(each) for each in found)
    if not fewest:
        raise BadData(
            f"not every run completed a cycle of {period} by {counter}",
            fix="Name the counter of phases and how many are a cycle.",
        )
    return np.array([each[:fewest] for each in found])


@dataclass(frozen=True, eq=False)
class MultiCore:
    """The annealer on four cores, each with its own allocation; half of the runs are learned from."""

    traces: Traces
    source: str
    barycentre_atoms: int = 600

    @classmethod
    def made(cls, runs: int = 400, *, seed: int = 0) -> MultiCore:
        text = f"Made annealer on four cores, {runs} runs: the paper's recordings were never published."
        return cls(annealer(runs, seed=seed), text)

    held_out_seconds = HELD_OUT_SECONDS

    @cached_property
    def _halves(self) -> tuple[Snapshots, Snapshots]:
        ids = self.traces.run_ids
        parts = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        first, last = INTERVAL_SECONDS, ANNEAL_SECONDS
        moments = np.clip(np.union1d(SNAPSHOT_SECONDS, HELD_OUT_SECONDS), first, last)
        a, b = (Snapshots.from_traces(self.traces.select(ids), COUNTERS, moments) for ids in parts)
        return a, b

    @cached_property
    def train(self) -> Snapshots:
        a, _ = self._halves
        places = np.clip(SNAPSHOT_SECONDS, INTERVAL_SECONDS, ANNEAL_SECONDS)
        return a.select(np.searchsorted(a.times_seconds, places))

    @cached_property
    def _forecasts(self) -> dict[str, Forecast]:
        return {}

    def forecast(self, graph: Any) -> Forecast:
        """By a graph of cores with the paper's settings, `path`: each core by itself; or a method by name."""
        if graph not in self._forecasts:
            paper = Bridge.paper(MULTI_SCALE, MULTI_EPS)
            if graph in GRAPHS:
                one = GraphForecast(self.train, paper, graph, self.barycentre_atoms)
            else:
                one = Forecast(self.train, paper if graph == "path" else Bridge(graph))
            self._forecasts[graph] = one
        return self._forecasts[graph]

    def measured(self, core: int, at: float, *, learned: bool = False) -> Cloud:
        """What the other half of the runs did at a held-out time; learned: the half that is learned from."""
        shots = self._halves[0 if learned else 1]
        return shots.of(core)[int(np.searchsorted(shots.times_seconds, at))].cloud


def distance(guess: Cloud, truth: Cloud, scale: np.ndarray, atoms: int) -> float:
    """W2 of a forecast of at most so many atoms, in scaled units: more would look nearer for their number."""
    return wasserstein(evenly_few(guess, atoms).scaled(scale), truth.scaled(scale))
