"""A model watched while runs arrive: which names drift, since when, how far, and bounds that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._report import Told
from jostle.bounds import (
    Bounds,
    Coverage,
    Level,
    Selection,
    pool_of,
    usual_levels,
)
from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.models._model import Model
    from jostle.runs import Colocations, Runs

KINDS = ("device", "platform", "workload")  # the wider first; the fleet before them all
FLEET = "fleet"
# Errors are told in units of what is usual, and no clock is better than a thousandth.
LEAST_SPREAD = 1e-3
# From so many calibration runs on, their median is known to far less than what the slow test allows.
FEWEST_TO_JUDGE_SLOWLY = 400


@dataclass(frozen=True)
class Drift:
    """kind: fleet, device, platform or workload; name: which one, "" for the fleet. ratio: how many times as
    long as predicted its runs take now, where 1 is as when the model was fitted. first, found: places in the
    stream of runs, counted from 0, of the first run that is off and of the run that told; runs: of that name
    from the one to the other. at: when the latter was measured, None where not known."""

    kind: str
    name: str
    ratio: float
    first: int
    found: int
    runs: int
    at: str | None = None

    def to_row(self) -> dict[str, Any]:
        """As a row of a table."""
        return dict(vars(self))


@dataclass(frozen=True)
class Usual:
    """What errors were like on runs that the model did not learn from: for each kind the names' levels in
    usual spreads, in the order of `names_by_kind`."""

    levels: dict[str, np.ndarray]

    @classmethod
    def of(cls, model: Model, calibration: Runs) -> Usual:
        """calibration: the runs that the model's bounds were calibrated on, names left out aside."""
        names = names_by_kind(model.predictor)
        kept = model.calibration.runs
        own = kept.take(np.flatnonzero(~kept.held_out))
        keys = _keys(model.predictor, calibration.ok().colocations)
        errors = np.zeros(len(own))
        for degree in np.unique(own.degree).tolist():
            place, median, mad = _usual_of(model, degree)
            at = own.degree == degree
            errors[at] = (own.scores[place, at] - median) / mad
        found = usual_levels(errors, list(keys), [len(names[kind]) for kind in KINDS])
        return cls(dict(zip(KINDS, found, strict=True)))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """For safetensors."""
        return {kind: np.ascontiguousarray(level) for kind, level in self.levels.items()}


class Watch(Told):
    """What `model.watch()` returns: hand it runs in the order in which they were measured."""

    def __init__(self, model: Model, confidence: float = DEFAULT_CONFIDENCE) -> None:
        """confidence: of the bounds that follow drifts."""
        self.model = model
        self.confidence = float(exact_confidence(confidence))
        self.runs = 0
        self.judged = 0
        self.unknown = 0
        self.drifts: list[Drift] = []
        self._names = names_by_kind(model.predictor)
        judged_by = int((~model.calibration.runs.held_out).sum())
        self._fleet = Level(slowly=judged_by >= FEWEST_TO_JUDGE_SLOWLY)
        usual = model.usual or Usual({})
        self._levels = {
            kind: [
                Level(usual=float(level))
                for level in usual.levels.get(kind, np.zeros(len(self._names[kind])))
            ]
            for kind in KINDS
        }
        self._places: dict[tuple[str, int], list[int]] = {}
        self._coverage: dict[int, Coverage] = {}
        self._sorted = _usual_scores(model)

    def told(self) -> list[tuple[str, str]]:
        """How many runs it has judged, and what drifts."""
        found = [("judged", f"{self.judged} runs"), ("of unknown names", f"{self.unknown}")]
        return found + [(one.kind, f"{one.name} x{one.ratio:.2f}") for one in self.drifts]

    def replay(self, runs: Runs, since: str | None = None) -> list[Drift]:
        """As `update`, in the order in which the runs were measured; those without a time come first, as
        they stand. since: only runs measured from then on, a time in ISO 8601, UTC where it names no other.

        Raises UsageError for what is no time.
        """
        return self.update(_in_order(runs, since))

    def update(self, runs: Runs) -> list[Drift]:
        """What these runs show, in the order of the rows; earlier runs are remembered.

        Runs without a runtime and of names that the model does not know are counted and passed over.
        """
        first = len(self.drifts)
        places = np.flatnonzero(runs.is_ok)
        known = _known(self.model.predictor, runs.colocations)[places]
        self.unknown += int((~known).sum())
        places = places[known]
        start, self.runs = self.runs, self.runs + len(runs)
        if len(places):
            judged = runs.take(places)
            errors = _Errors.of(self.model, judged)
            keys = _keys(self.model.predictor, judged.colocations)
            when = _times(judged)
            rows = zip(
                (start + places).tolist(), errors.standard.tolist(), keys.T.tolist(), strict=True
            )
            for row, (place, error, codes) in enumerate(rows):
                if error == error:
                    self.judged += 1
                    self._cover(errors, row, codes)
                    self._add(
                        place, error * errors.spread[row], codes, errors.spread[row], when[row]
                    )
        return self.drifts[first:]

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds: the model's prediction times what the names have drifted by."""
        return self.model.predict(colocations) * self._ratio(colocations)[0]

    def bound(self, colocations: Colocations) -> Bounds:
        """Upper bounds that follow drifts.

        Where nothing has drifted they are the model's own. Where something has, they are moved by what was
        learned since, their level is kept true by adaptive conformal inference, and the outcome is
        `adapting`: no theorem holds for one of them, only for their share in the long run.
        """
        found = self.model.bound(colocations, self.confidence)
        ratio, moved = self._ratio(colocations)
        if not moved.any():
            return found
        seconds, outcome = found.seconds.copy(), found.outcome.astype("<U20")
        degree = np.asarray(colocations.number_of_corunners)
        for d in np.unique(degree[moved]):
            at = np.flatnonzero(moved & (degree == d))
            level = self._coverage[int(d)].level if int(d) in self._coverage else self.confidence
            there = self.model.bound(colocations.take(at), min(level, 1 - 1e-9))
            # At a level that calibration runs cannot give, what they can give at most.
            finite = np.where(there.is_valid, there.seconds, seconds[at])
            seconds[at] = finite * ratio[at]
            outcome[at] = np.where(np.isfinite(finite), "adapting", found.outcome[at])
        return replace(found, seconds=seconds, outcome=outcome)

    def _add(
        self, place: int, error: float, codes: list[int], spread: float, when: str | None
    ) -> None:
        """One run, asked of the fleet first and of ever narrower levels then. error, spread: log seconds."""
        asked = [(FLEET, 0, self._fleet)]
        asked += [(kind, c, self._levels[kind][c]) for kind, c in zip(KINDS, codes, strict=True)]
        # Every level is told what the usual levels of the others leave.
        rest = error - spread * sum(level.usual for _, _, level in asked)
        for kind, code, level in asked:
            seen = self._places.setdefault((kind, code), [])
            seen.append(place)
            del seen[:-512]
            before = level.shift
            alarm = level.add(rest + spread * level.usual, spread)
            if alarm is not None:
                name = "" if kind == FLEET else self._names[kind][code]
                first = seen[-min(alarm.runs, len(seen))]
                ratio = float(np.exp(level.shift))
                self.drifts.append(Drift(kind, name, ratio, first, place, alarm.runs, when))
                for narrower in KINDS[KINDS.index(kind) + 1 :] if kind != FLEET else KINDS:
                    for other in self._levels[narrower]:
                        other.forget()
                return
            rest -= before

    def _cover(self, errors: _Errors, row: int, codes: list[int]) -> None:
        """Whether a run of names that drifted was late at the level of today."""
        shift = self._shift(codes)
        if shift is None:
            return
        degree = int(errors.degree[row])
        kept = self._coverage.setdefault(degree, Coverage(1 - self.confidence))
        scores = self._sorted.get(degree)
        if scores is None or not len(scores):
            return
        at = min(int(np.ceil(kept.level * (len(scores) + 1))), len(scores)) - 1
        kept.add(errors.score[row] - shift / errors.scale[row] > scores[at])

    def _shift(self, codes: Sequence[int]) -> float | None:
        """How far what these names add up to has moved, in log seconds; None where nothing has."""
        levels = [
            self._fleet,
            *(self._levels[kind][c] for kind, c in zip(KINDS, codes, strict=True)),
        ]
        if not any(level.alarms for level in levels):
            return None
        return sum(level.shift for level in levels)

    def _ratio(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """(what runtimes are multiplied by (n,), whether any of the names drifted (n,))."""
        n = len(colocations)
        if not self.drifts:
            return np.ones(n), np.zeros(n, bool)
        keys = _keys(self.model.predictor, colocations)
        shifts = [self._shift(codes) for codes in keys.T.tolist()]
        moved = np.array([shift is not None for shift in shifts], bool)
        return np.exp(np.array([shift or 0.0 for shift in shifts])), moved


@dataclass(frozen=True)
class _Errors:
    """Of n runs: score under the way that bounds their pool; standard: it in usual spreads from the usual
    median; scale: log seconds that a score of one is; spread: usual spread of errors, in log seconds."""

    score: np.ndarray
    standard: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    degree: np.ndarray

    @classmethod
    def of(cls, model: Model, runs: Runs) -> _Errors:
        part = Selection.of(model.predictor, runs)
        degree = part.degree
        score, scale = np.full(len(degree), np.nan), np.ones(len(degree))
        median, mad = np.zeros(len(degree)), np.ones(len(degree))
        for d in np.unique(degree):
            at, (place, middle, spread) = degree == d, _usual_of(model, int(d))
            score[at], scale[at] = part.scores[place, at], part.candidates.scale[place, at]
            median[at], mad[at] = middle, spread
        score = np.where(np.isfinite(score), score, np.nan)
        return cls(score, (score - median) / mad, scale, mad * scale, degree)


def names_by_kind(predictor: Any) -> dict[str, tuple[str, ...]]:
    """Workloads, platforms, and the devices that platforms are named after: what stands behind the colon."""
    platforms = tuple(predictor.platform_names)
    return {
        "device": tuple(sorted({device_of(name) for name in platforms})),
        "platform": platforms,
        "workload": tuple(predictor.workload_names),
    }


def device_of(platform: str) -> str:
    """hc-42 of iwasm-a:hc-42, and the platform itself where nothing is behind a colon."""
    return platform.partition(":")[2] or platform


def _keys(predictor: Any, colocations: Colocations) -> np.ndarray:
    """(3, n) codes of device, platform and workload."""
    names = names_by_kind(predictor)
    workload, platform, _ = colocations.recode(names["workload"], names["platform"])
    position = {name: code for code, name in enumerate(names["device"])}
    device = np.array([position[device_of(name)] for name in names["platform"]], np.int64)
    return np.stack([device[platform], platform, workload])


def _known(predictor: Any, colocations: Colocations) -> np.ndarray:
    """(n,) bool: whether the model knows every name."""
    workload, platform, corunner = colocations.recode(
        predictor.workload_names, predictor.platform_names
    )
    row = np.repeat(np.arange(len(workload)), colocations.number_of_corunners)
    lost = np.bincount(row, corunner < 0, len(workload)) > 0
    return (workload >= 0) & (platform >= 0) & ~lost


def _usual_of(model: Model, degree: int) -> tuple[int, float, float]:
    """(the candidate that bounds a number of co-runners, median and usual spread of its scores): of the
    nearest number of co-runners that was calibrated on where there is none."""
    calibration = model.calibration
    runs = calibration.runs
    inside = ~runs.held_out & (runs.degree == degree)
    if not inside.any():
        known = runs.degree[~runs.held_out]
        if not len(known):
            return 0, 0.0, 1.0
        degree = int(known[np.argmin(np.abs(known - degree))])
        inside = ~runs.held_out & (runs.degree == degree)
    way = calibration.ways.get(pool_of(degree))
    place = way.stages[0] if way is not None else 0
    scores = runs.scores[place, inside]
    scores = scores[np.isfinite(scores)]
    if not len(scores):
        return place, 0.0, 1.0
    median = float(np.median(scores))
    return place, median, max(float(np.median(np.abs(scores - median))), LEAST_SPREAD)


def _usual_scores(model: Model) -> dict[int, np.ndarray]:
    """The calibration scores of every number of co-runners, ascending."""
    runs = model.calibration.runs
    found = {}
    for degree in np.unique(runs.degree[~runs.held_out]).tolist():
        place, _, _ = _usual_of(model, degree)
        found[degree] = np.sort(runs.scores[place, ~runs.held_out & (runs.degree == degree)])
    return found


def _times(runs: Runs) -> list[str | None]:
    """When each run was measured, as text."""
    return [
        None if at is None else at.isoformat()
        for at in runs.table.column("measured_at").to_pylist()
    ]


def _in_order(runs: Runs, since: str | None) -> Runs:
    """Sorted by the time of measuring, from a time on."""
    import pyarrow as pa

    column = runs.table.column("measured_at")
    at = column.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
    order = np.argsort(at, kind="stable")
    if since is not None:
        try:
            when = datetime.fromisoformat(since)
        except ValueError:
            raise UsageError(
                f"`since` {since!r} is no time", fix="Say one like 2026-03-01T12:00."
            ) from None
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        order = order[at[order] >= int(when.timestamp() * 1e6)]
    return runs.take(order)
