"""How good forecasts of resource use are: on runs that they have not seen, at times that they have not.

Runs, not times, are split: A makes the snapshots and the forecast, B says what was right. The score is W2
in units of the noise within a snapshot, exact (a linear program). The oracle is A itself at that time: what
a perfect forecast from as many runs would score. A time whose measurement stands among the training
snapshots, bit for bit, is a leak and is left out; the paper's own design has 8 of 25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.bridge import (
    Bridge,
    Cloud,
    Distribution,
    Forecast,
    Snapshot,
    Snapshots,
    few,
    place,
    wasserstein,
)
from jostle.errors import NotEnoughRuns, UsageError
from jostle.evaluate.bridge._data import (
    COUNTERS,
    CYCLES,
    PAPER_SCALE,
    drift,
    fingerprint,
    phase_program,
    read_published,
)
from jostle.evaluate.bridge._rivals import predictions
from jostle.traces import Traces, Windows

STEADY = 1.0  # cycles: the first one is the start-up
CANDIDATES = 120  # times at which a snapshot may be placed
COMPARED = 500  # atoms of a forecast in a comparison
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Question:
    """One time on one core: the truth of B and A's own measurement there, ended runs as an atom at 0."""

    time_seconds: float
    core: int
    truth: Cloud
    oracle: Cloud
    leaks: bool = False


@dataclass(frozen=True)
class Split:
    """Training snapshots of A, and questions that B answers. others: {name: (forecast, its method)} that
    are scored too."""

    forecast: Forecast
    questions: Sequence[Question]
    period: float | None = None
    others: Mapping[str, tuple[Forecast, str]] = field(default_factory=dict)


MEASURES = ("w2", "q95", "q99", "brier")


@dataclass
class Scores:
    """w2[method], …: one per (split, question), aligned, NaN where a method had no answer.

    w2, q95, q99 (mean error of the quantiles): in scaled units. brier: squared error of P(any > limit).
    w1[method]: (d,) each, per component in its own units.
    """

    name: str
    components: tuple[str, ...] = ()
    w2: dict[str, list[float]] = field(default_factory=dict)
    q95: dict[str, list[float]] = field(default_factory=dict)
    q99: dict[str, list[float]] = field(default_factory=dict)
    brier: dict[str, list[float]] = field(default_factory=dict)
    w1: dict[str, list[np.ndarray]] = field(default_factory=dict)
    leaks: int = 0
    asked: int = 0

    def mean(self, method: str, measure: str = "w2") -> float:
        """Mean over the questions that every method answered."""
        return float(np.mean(np.array(getattr(self, measure)[method])[self._known()]))

    def component_errors(self, method: str) -> dict[str, float]:
        """{component: mean W1 in its own units}."""
        values = np.array(self.w1[method])[self._known()].mean(axis=0)
        return dict(zip(self.components, values.tolist(), strict=True))

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
    found = Scores(name, splits[0].forecast.components if splits else ())
    total = sum(len(split.questions) for split in splits)
    answered: list[dict[str, Compared]] = []
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
            at, core = question.time_seconds, question.core
            clouds = predictions(split.forecast, core, at, split.period)
            for key, (other, method) in split.others.items():
                clouds[key] = other.at(at, core, method=method).cloud
            clouds["oracle"] = question.oracle
            answered.append(
                {key: _compare(c, question.truth, scale, limit) for key, c in clouds.items()}
            )
            if progress:
                progress(found.asked, total, 0.0)
    if not answered:
        raise NotEnoughRuns(f"{name}: every time leaks, or there is none")
    for method in dict.fromkeys(key for row in answered for key in row):
        none = ((np.nan,) * len(MEASURES), np.full(len(found.components), np.nan))
        values = [row.get(method, none) for row in answered]
        for number, measure in enumerate(MEASURES):
            getattr(found, measure)[method] = [value[0][number] for value in values]
        found.w1[method] = [value[1] for value in values]
    return found


Compared = tuple[tuple[float, ...], np.ndarray]


def _compare(guess: Cloud, truth: Cloud, scale: np.ndarray, limit: np.ndarray) -> Compared:
    """(MEASURES), and (d,) W1 per component."""
    guess = few(guess.merged, COMPARED, 0)
    w2 = wasserstein(guess.scaled(scale), truth.scaled(scale))
    laws = [
        Distribution.of(cloud, [str(i) for i in range(len(scale))], "") for cloud in (guess, truth)
    ]
    tops = [law.quantile((0.95, 0.99)) for law in laws]
    q95, q99 = np.abs((tops[0] - tops[1]) * scale).mean(axis=1)
    over = [float(c.weights @ (c.atoms > limit).any(axis=1)) for c in (guess, truth)]
    w1 = np.array([_w1(guess, truth, column) for column in range(len(scale))])
    return (w2, float(q95), float(q99), (over[0] - over[1]) ** 2), w1


def _w1(x: Cloud, y: Cloud, column: int) -> float:
    """The area between the distribution functions of one component."""
    values = np.concatenate([x.atoms[:, column], y.atoms[:, column]])
    mass = np.concatenate([x.weights, -y.weights])
    order = np.argsort(values)
    apart = np.abs(np.cumsum(mass[order])[:-1])
    return float(apart @ np.diff(values[order]))


def _with_idle(shot: Snapshot) -> Cloud:
    names = [str(i) for i in range(shot.cloud.atoms.shape[1])]
    return Distribution.of(shot.cloud, names, "", idle_ratio=shot.idle_ratio).cloud


def trace_splits(
    traces: Traces | Windows,
    snapshots: int,
    *,
    method: Bridge | None = None,
    splits: int = 3,
    times: int = 24,
    ended: float = 0.0,
    graphs: Sequence[str] = (),
    seed: int = 0,
) -> list[Split]:
    """Splits of recorded or made traces: half of the runs each, `snapshots` evenly spread times, and
    `times` random ones in between. Each core is asked.

    ended: the share of the cores' runs that have ended by the last snapshot; 0: while all go on. graphs:
    bridges of these graphs are scored too. Raises NotEnoughRuns, UsageError.
    """
    method = method or Bridge()
    if len(traces) < 8:
        raise NotEnoughRuns(
            f"{len(traces)} runs are too few to split", fix="Trace the workload more often."
        )
    every = list(traces)
    step = float(np.median(np.concatenate([trace.interval_seconds for trace in every])))
    first = max(float(trace.time_seconds[0]) for trace in every)
    last = float(np.quantile([trace.time_seconds[-1] for trace in every], ended, method="lower"))
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
        a, b = (
            Snapshots.from_traces(
                traces.select(part), method.components, everything, clock=method.clock_settings
            )
            for part in (ids[:half], ids[half:])
        )
        train = a.select(np.searchsorted(everything, grid))
        questions = []
        for core in sorted(a.cores):
            for time in asked:
                k = int(np.searchsorted(everything, time))
                truth, oracle = b.of(core)[k], a.of(core)[k]
                prints = {fingerprint(shot.cloud.atoms) for shot in train.of(core)}
                leaks = fingerprint(oracle.cloud.atoms) in prints
                both = _with_idle(truth), _with_idle(oracle)
                questions.append(Question(float(time), core, *both, leaks))
        settled = replace(method, snapshots=None)
        others: dict[str, tuple[Forecast, str]] = {}
        if by_clock:
            able = a.select(np.searchsorted(everything, candidates))
            placed = able.select(place(able, snapshots, min(a.cores)))
            others["phase_placed"] = Forecast(placed, settled), "phase"
        for graph in graphs:
            others[graph] = Forecast(train, replace(settled, graph=graph)), "bridge"
        made.append(Split(Forecast(train, settled), questions, others=others))
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
        paper = Forecast(train, Bridge.paper(PAPER_SCALE)), "bridge"
        made.append(Split(Forecast(train, Bridge()), questions, 1.0, {"paper": paper}))
    return made


def leaks_of_design(folder: Any, between: int) -> list[float]:
    """The times, in cycles, of the paper's held-out grid that are bit for bit a training snapshot."""
    _, _, prints = read_published(folder, between)
    times, _, asked = read_published(folder, 5)
    inner = [k for k in range(len(times)) if k % (len(times) // CYCLES)]
    return [float(times[k]) for k in inner if asked[k] in prints]


def made_splits(
    name: str,
    *,
    runs: int = 400,
    seed: int = 0,
    splits: int = 3,
    ended: float = 0.0,
    clock: bool = True,
) -> list[Split]:
    """The made data sets: `phases-JITTER-SNAPSHOTS` (jitter in percent) or `drift-SNAPSHOTS`.

    clock: phase programs with their marks.
    """
    parts = name.split("-")
    try:
        if parts[0] == "phases":
            jitter, snapshots = int(parts[1]) / 100, int(parts[2])
            traces = phase_program(runs, jitter=jitter, seed=seed)
            method = Bridge(components=COUNTERS)
            if clock:
                method = replace(method, clock="beats", clock_kind="beats")
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
    return trace_splits(traces, snapshots, method=method, splits=splits, ended=ended, seed=seed)
