"""What a simulation is given, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.errors import UsageError
from jostle.gpu.applications._application import Application

TOLERANCE = 1e-13  # of the time since the start: what is closer together is simultaneous
SHARINGS = ("concurrent", "time-sliced", "sequential")
USUAL_SHARING = SHARINGS[0]  # if nothing says otherwise


@dataclass(frozen=True, eq=False)
class Tenant:
    """One application on the device. runs: how often it runs; None: again and again, until every tenant
    with a number has done it. arrivals: (runs,) times at which a run may begin, ascending (queries); a run
    waits for the one before it. most_pes: a limit on PEs (MPS active-thread share), None for none.
    """

    application: Application
    runs: int | None = 1
    start_seconds: float = 0.0
    arrivals: np.ndarray | None = None
    partition: int = 0
    most_pes: int | None = None

    def __post_init__(self) -> None:
        where = self.application.name
        if self.runs is not None and self.runs < 1:
            raise UsageError(f"{self.runs} runs of {where} is not at least 1")
        if not 0 <= self.start_seconds < np.inf:
            raise UsageError(f"{where} starts at {self.start_seconds} s")
        if self.most_pes is not None and self.most_pes < 1:
            raise UsageError(f"{where} may use {self.most_pes} PEs")
        if self.arrivals is not None:
            times = np.asarray(self.arrivals, np.float64)
            if times.ndim != 1 or not len(times) or not np.all(np.isfinite(times)):
                raise UsageError(f"the arrivals of {where} are not a list of finite times")
            if times[0] < 0 or np.any(np.diff(times) < 0):
                raise UsageError(f"the arrivals of {where} are negative or out of order")
            if self.runs != len(times):
                raise UsageError(f"{len(times)} arrivals of {where} for {self.runs} runs")


@dataclass(frozen=True, eq=False)
class Schedule:
    """Outcome of a simulation.

    run_ends: for each tenant (runs done,) seconds at which they ended. latencies: for each (runs done,)
    seconds from arrival, or from the end of the run before, to the end. task_ends: for each (tasks,) ends of
    its first run's tasks, NaN where it was not reached. tasks: how many were simulated in all.
    """

    run_ends: tuple[np.ndarray, ...]
    latencies: tuple[np.ndarray, ...]
    task_ends: tuple[np.ndarray, ...]
    tasks: int
