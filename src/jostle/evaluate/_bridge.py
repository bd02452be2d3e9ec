"""How good forecasts of resource use are: on runs that they have not seen, at times that they have not.

Runs, not times, are split: A makes the snapshots and the forecast, B says what was right. The score is W2
in units of the noise within a snapshot, exact (a linear program). The oracle is A itself at that time: what
a perfect forecast from as many runs would score. A time whose measurement stands among the training
snapshots, bit for bit, is a leak and is left out; the paper's own design has 8 of 25.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.bridge import Bridge, Cloud, Forecast, Snapshots, few, place, wasserstein
from jostle.errors import NotEnoughRuns, UsageError
from jostle.evaluate._bridge_baselines import predictions
from jostle.evaluate._bridge_data import (
    COUNTERS,
    CYCLES,
    PAPER_SCALE,
    drift,
    fingerprint,
    phase_program,
    read_published,
)
from jostle.traces import Traces

STEADY = 1.0  # cycles: the first one is the start-up
CANDIDATES = 120  # times at which a snapshot may be placed
COMPARED = 500  # atoms of a forecast in a comparison
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Question:
    """One time on one core: the truth of B and A's own measurement there."""

    time_seconds: float
    core: int
    truth: Cloud
    oracle: Cloud
    leaks: bool = False


@dataclass(frozen=True)
class Split:
    """Training snapshots of A, and questions that B answers."""

    forecast: Forecast
    questions: Sequence[Question]
    paper: Bridge | None = None
    period: float | None = None
    placed: Forecast | None = None  # phase-aware, of as many snapshots placed by the clock


@dataclass
class Scores:
    """w2[method]: one per (split, question), aligned, NaN where a method had no answer."""

    name: str
    w2: dict[str, list[float]] = field(default_factory=dict)
    q95: dict[str, list[float]] = field(default_factory=dict)
    brier: dict[str, list[float]] = field(default_factory=dict)
    leaks: int = 0
    asked: int = 0

    def mean(self, method: str) -> float:
        """Mean W2 where every method answered."""
        return float(np.mean(np.array(self.w2[method])[self._known()]))

    def ratio(self, method: str) -> float:
        """Mean W2 over the oracle's."""
        return self.mean(method) / self.mean("oracle")

    def paired(self, method: str, other: str = "ot") -> tuple[float, float]:
        """Mean difference of W2 to another method's, and its standard error over (split, time)."""
        known = self._known()
        gap = np.array(self.w2[method])[known] - np.array(self.w2[other])[known]
        return float(gap.mean()), float(gap.std(ddof=1) / len(gap) ** 0.5) if len(gap) > 1 else 0.0

    def skill(self, method: str, base: str = "nearest") -> float:
        """(base - method) / (base - oracle): 0 as good as the base, 1 as good as measuring."""
        room = self.mean(base) - self.mean("oracle")
        return (self.mean(base) - self.mean(method)) / room if room > 0 else float("nan")

    def _known(self) -> np.ndarray:
        return np.asarray(np.isfinite(np.array(list(self.w2.values()))).all(axis=0))


def score(name: str, splits: Sequence[Split], progress: Progress | None = None) -> Scores:
    """All methods on all questions that do not leak."""
    found = Scores(name)
    total = sum(len(split.questions) for split in splits)
    answered: list[dict[str, tuple[float, float, float]]] = []
    for split in splits:
        scale = split.forecast.scale
        pooled = np.concatenate(
            [s.cloud.atoms for shots in split.forecast.snapshots.cores.values() for s in shots]
        )
        limit = np.quantile(pooled, 0.95, axis=0)
        for question in split.questions:
            found.asked += 1
            if question.leaks:
                found.leaks += 1
                continue
            clouds = predictions(
                split.forecast, split.paper, question.core, question.time_seconds, split.period
            )
            if split.placed is not None:
                placed = split.placed.at(question.time_seconds, question.core, method="phase")
                clouds["phase_placed"] = placed.cloud
            clouds["oracle"] = question.oracle
            answered.append(
                {key: _compare(c, question.truth, scale, limit) for key, c in clouds.items()}
            )
            if progress:
                progress(found.asked, total, 0.0)
    if not answered:
        raise NotEnoughRuns(f"{name}: every time leaks, or there is none")
    for method in dict.fromkeys(key for row in answered for key in row):
        values = np.array([row.get(method, (np.nan,) * 3) for row in answered])
        for number, table in enumerate((found.w2, found.q95, found.brier)):
            table[method] = values[:, number].tolist()
    return found


def _compare(
    guess: Cloud, truth: Cloud, scale: np.ndarray, limit: np.ndarray
) -> tuple[float, float, float]:
    """W2, mean error of the 95% quantiles, both in scaled units, and the squared error of P(any > limit)."""
    guess = few(guess.merged, COMPARED, 0)
    w2 = wasserstein(guess.scaled(scale), truth.scaled(scale))
    tops = []
    for cloud in (guess, truth):
        order = np.argsort(cloud.atoms, axis=0)
        below = np.cumsum(cloud.weights[order], axis=0)
        rows = np.minimum((below < 0.95 - 1e-12).sum(axis=0), len(cloud) - 1)
        tops.append(np.take_along_axis(cloud.atoms, order, axis=0)[rows, np.arange(len(scale))])
    q95 = float(np.abs((tops[0] - tops[1]) * scale).mean())
    over = [float(c.weights @ (c.atoms > limit).any(axis=1)) for c in (guess, truth)]
    return w2, q95, (over[0] - over[1]) ** 2


def trace_splits(
    traces: Traces,
    snapshots: int,
    *,
    method: Bridge | None = None,
    splits: int = 3,
    times: int = 24,
    seed: int = 0,
) -> list[Split]:
    """Splits of recorded or made traces: half of the runs each, `snapshots` evenly spread times, and
    `times` random ones in between while all runs go on. Each core is asked. Raises NotEnoughRuns."""
    method = method or Bridge()
    if len(traces) < 8:
        raise NotEnoughRuns(
            f"{len(traces)} runs are too few to split", fix="Trace the workload more often."
        )
    every = list(traces)
    step = float(np.median(np.concatenate([trace.interval_seconds for trace in every])))
    first = max(float(trace.time_seconds[0]) for trace in every)
    last = min(float(trace.time_seconds[-1]) for trace in every)
    if snapshots < 2 or last - first < 2 * snapshots * step:
        raise UsageError(
            f"{snapshots} snapshots in {last - first:g} s of traces", fix="At least two, and apart."
        )
    grid = np.linspace(first, last, snapshots)
    made = []
    for number in range(splits):
        random = np.random.default_rng([seed, number])
        ids = [traces.run_ids[i] for i in random.permutation(len(traces))]
        half = len(ids) // 2
        asked = np.sort(random.uniform(first, last, times))
        asked = asked[np.abs(asked[:, None] - grid).min(axis=1) > step]
        by_clock = method.clock is not None and method.clock_kind == "beats"
        candidates = np.linspace(first, last, CANDIDATES) if by_clock else grid
        everything = np.union1d(np.union1d(grid, asked), candidates)
        settings = {"clock": method.clock, "clock_kind": method.clock_kind}
        a = Snapshots.from_traces(
            traces.select(ids[:half]), method.components, everything, **settings
        )
        b = Snapshots.from_traces(
            traces.select(ids[half:]), method.components, everything, **settings
        )
        train = a.select(np.searchsorted(everything, grid))
        questions = []
        for core in sorted(a.cores):
            for time in asked:
                k = int(np.searchsorted(everything, time))
                truth, oracle = b.of(core)[k], a.of(core)[k]
                prints = {fingerprint(shot.cloud.atoms) for shot in train.of(core)}
                leaks = fingerprint(oracle.cloud.atoms) in prints
                questions.append(Question(float(time), core, truth.cloud, oracle.cloud, leaks))
        settled = replace(method, snapshots=None)
        placed = None
        if by_clock:
            able = a.select(np.searchsorted(everything, candidates))
            placed = Forecast(able.select(place(able, snapshots, min(a.cores))), settled)
        made.append(Split(Forecast(train, settled), questions, placed=placed))
    return made


def published_splits(
    folder: Any, between: int, *, splits: int = 3, seed: int = 0, steady: bool = True
) -> list[Split]:
    """Splits of the published snapshots: `between` per cycle to train on, tau = k/6 of a cycle to ask."""
    train_times, train_clouds, prints = read_published(folder, between)
    ask_times, ask_clouds, ask_prints = read_published(folder, 5)
    made = []
    for number in range(splits):
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(train_clouds[0]))
        half = len(order) // 2
        kept = [k for k, time in enumerate(train_times) if not steady or time >= STEADY]
        train = Snapshots.from_arrays(
            train_times[kept], [train_clouds[k][order[:half]] for k in kept], COUNTERS
        )
        questions = []
        for k, time in enumerate(ask_times):
            if k % (len(ask_times) // CYCLES) == 0 or (steady and time < STEADY):
                continue
            a, b = (
                Cloud.of(ask_clouds[k][order[part]]) for part in (slice(half), slice(half, None))
            )
            questions.append(Question(float(time), 0, b, a, ask_prints[k] in prints))
        paper = Bridge.paper(PAPER_SCALE)
        made.append(Split(Forecast(train, Bridge()), questions, paper, 1.0))
    return made


def leaks_of_design(folder: Any, between: int) -> list[float]:
    """The times, in cycles, of the paper's held-out grid that are bit for bit a training snapshot."""
    _, _, prints = read_published(folder, between)
    times, _, asked = read_published(folder, 5)
    inner = [k for k in range(len(times)) if k % (len(times) // CYCLES)]
    return [float(times[k]) for k in inner if asked[k] in prints]


def made_splits(name: str, *, runs: int = 400, seed: int = 0, splits: int = 3) -> list[Split]:
    """The made data sets: `phases-JITTER-SNAPSHOTS` (jitter in percent) or `drift-SNAPSHOTS`."""
    parts = name.split("-")
    try:
        if parts[0] == "phases":
            jitter, snapshots = int(parts[1]) / 100, int(parts[2])
            traces = phase_program(runs, jitter=jitter, seed=seed)
            method = Bridge(components=COUNTERS, clock="beats", clock_kind="beats")
        elif parts[0] == "drift":
            snapshots = int(parts[1])
            traces = drift(runs, seed=seed)
            method = Bridge(components=COUNTERS)
        else:
            raise ValueError(name)
    except (IndexError, ValueError):
        raise UsageError(
            f"unknown data {name!r}",
            fix="phases-5-7 (jitter 5%, 7 snapshots), drift-7, nmpc-4 (4 inside each cycle).",
        ) from None
    return trace_splits(traces, snapshots, method=method, splits=splits, seed=seed)
