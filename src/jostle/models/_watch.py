"""A model watched while runs arrive: which names drift, since when, how far, and bounds that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._report import Glance
from jostle.bounds import AdaptiveLevels, Bounds, DriftLevel
from jostle.errors import UsageError
from jostle.models._following import Moved
from jostle.models._usual import (
    KINDS,
    KindNames,
    Usual,
    UsualErrors,
    sorted_scores,
    usual_of,
)

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

FLEET = "fleet"
# From so many calibration runs on, their median is known to far less than what the slow test allows.
FEWEST_FOR_SMALL_STEPS = 400
REMEMBERED = 512  # runs of a name, that may turn out to be off


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


class DriftWatch(Glance):
    """What `model.watch()` returns: hand it runs in the order in which they were measured."""

    def __init__(self, model: Any, confidence: float = DEFAULT_CONFIDENCE) -> None:
        """confidence: of the bounds that follow drifts."""
        self.model = model.following(None)
        self.confidence = float(exact_confidence(confidence))
        self.runs = 0
        self.checked = 0
        self.unknown = 0
        self.drifts: list[Drift] = []
        self._kinds = KindNames.of(model.predictor)
        self._usual = lru_cache(maxsize=None)(partial(usual_of, model))
        checked_by = int((~model.calibration.runs.held_out).sum())
        self._fleet = DriftLevel(slowly=checked_by >= FEWEST_FOR_SMALL_STEPS)
        usual = model.usual or Usual({})
        self._levels = {kind: _Levels(usual, kind) for kind in KINDS}
        self._lately: dict[tuple[str, int], list[_Seen]] = {}
        self._coverage: dict[int, AdaptiveLevels] = {}
        self._following: Any = None
        self._sorted = sorted_scores(model)

    def facts(self) -> list[tuple[str, str]]:
        """How many runs it has checked, and what drifts."""
        facts = [("checked", f"{self.checked} runs"), ("of unknown names", f"{self.unknown}")]
        return facts + [(one.kind, f"{one.name} x{one.ratio:.2f}") for one in self.drifts]

    def replay(self, runs: Runs, since: str | None = None) -> list[Drift]:
        """As `update`, in the order in which the runs were measured; those without a time come first, as
        they stand. since: only runs measured from then on, a time in ISO 8601, UTC where it names no other.

        Raises UsageError for what cannot be read as a time.
        """
        return self.update(_in_order(runs, since))

    def update(self, runs: Runs) -> list[Drift]:
        """What these runs show, in the order of the rows; earlier runs are remembered.

        Runs without a runtime and of names that the model does not know are counted and passed over.
        """
        first, self._following = len(self.drifts), None
        places = np.flatnonzero(runs.is_ok)
        known = self._kinds.know(runs.colocations)[places]
        self.unknown += int((~known).sum())
        places = places[known]
        start, self.runs = self.runs, self.runs + len(runs)
        if len(places):
            checked = runs.take(places)
            errors = UsualErrors.of(self.model.predictor, checked, self._usual)
            keys = self._kinds.keys(checked.colocations)
            when = _times(checked)
            rows = zip(
                (start + places).tolist(), errors.standard.tolist(), keys.T.tolist(), strict=True
            )
            for row, (place, error, codes) in enumerate(rows):
                if error == error:
                    self.checked += 1
                    covered = self._cover(place, errors, row, codes)
                    self._add(
                        covered, error * errors.spread[row], codes, errors.spread[row], when[row]
                    )
        return self.drifts[first:]

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds: the model's prediction times what the names have drifted by."""
        return self.following().predict(colocations)

    def bound(self, colocations: Colocations) -> Bounds:
        """Upper bounds that follow drifts.

        Where nothing has drifted they are the model's own. Where something has, they are moved by what was
        learned since, their level is kept true by adaptive conformal inference, and the outcome is
        `adapting`: no theorem holds for one of them, only for their share in the long run.
        """
        return self.following().bound(colocations, self.confidence)

    def following(self) -> Any:
        """The model with its answers moved by what has drifted up to now, at any confidence; the model itself
        where nothing has. Runs that come later do not change it."""
        if not self.drifts:
            return self.model
        if self._following is None:
            names = {}
            for kind, levels in self._levels.items():
                codes = sorted(code for code, level in levels.items() if level.alarms)
                shifts = [levels[code].shift for code in codes]
                names[kind] = np.array(codes, np.int64), np.array(shifts)
            adapted = {degree: adaptive.levels() for degree, adaptive in self._coverage.items()}
            fleet = self._fleet.shift if self._fleet.alarms else None
            self._following = self.model.following(Moved(self._kinds, fleet, names, adapted))
        return self._following

    def _add(
        self, run: _Seen, error: float, codes: list[int], spread: float, when: str | None
    ) -> None:
        """One run, asked of the fleet first and of ever narrower levels then. error, spread: log seconds."""
        places = [(FLEET, 0, self._fleet)]
        places += [(kind, c, self._levels[kind][c]) for kind, c in zip(KINDS, codes, strict=True)]
        # Every level is told what the others leave: where they usually are, and what they have moved by.
        rest = error - sum(level.usual * spread + level.shift for _, _, level in places)
        for kind, code, level in places:
            recent = self._lately.setdefault((kind, code), [])
            recent.append(run)
            del recent[:-REMEMBERED]
            alarm = level.add(rest + level.usual * spread + level.shift, spread)
            if alarm is not None:
                name = "" if kind == FLEET else self._kinds.names[kind][code]
                since = recent[-min(alarm.runs, len(recent)) :]
                ratio = float(np.exp(level.shift))
                drift = Drift(kind, name, ratio, since[0].place, run.place, alarm.runs, when)
                self.drifts.append(drift)
                self._count(since)
                for narrower in KINDS[KINDS.index(kind) + 1 :] if kind != FLEET else KINDS:
                    for other in self._levels[narrower].values():
                        other.forget()
                return

    def _cover(self, place: int, errors: UsualErrors, row: int, codes: list[int]) -> _Seen:
        """Whether a run of names that drifted was late at the level of today; one of names that did not is
        kept until it turns out that they did."""
        shift, degree = self._shift(codes), int(errors.degree[row])
        scores = self._sorted.get(degree)
        if scores is None or not len(scores):
            return _Seen(place, degree, 0, is_counted=True)
        below = np.searchsorted(scores, errors.score[row] - (shift or 0.0) / errors.scale[row])
        run = _Seen(place, degree, int(below))
        if shift is not None:
            self._count([run])
        return run

    def _count(self, runs: Sequence[_Seen]) -> None:
        """Late or not, for the levels that keep the share of late runs true: those before an alarm, too, when
        nothing had moved yet."""
        for run in runs:
            if not run.is_counted:
                levels = self._coverage.setdefault(run.degree, AdaptiveLevels(self.confidence))
                levels.add(run.below, len(self._sorted[run.degree]))
                run.is_counted = True

    def _shift(self, codes: Sequence[int]) -> float | None:
        """How far what these names add up to has moved, in log seconds; None where nothing has."""
        levels = [
            self._fleet,
            *(self._levels[kind][c] for kind, c in zip(KINDS, codes, strict=True)),
        ]
        if not any(level.alarms for level in levels):
            return None
        return sum(level.shift for level in levels)


@dataclass(slots=True)
class _Seen:
    """A run that was checked: its place in the stream, how many calibration scores are below its own, and
    whether the levels of bounds were told of it."""

    place: int
    degree: int
    below: int
    is_counted: bool = False


class _Levels(dict[int, DriftLevel]):
    """Of one kind by code, made when first asked about."""

    def __init__(self, usual: Usual, kind: str) -> None:
        super().__init__()
        self._usual, self._kind = usual, kind

    def __missing__(self, code: int) -> DriftLevel:
        level = self[code] = DriftLevel(*self._usual.at(self._kind, code))
        return level


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
                f"`since` {since!r} cannot be read as a time", fix="Say one like 2026-03-01T12:00."
            ) from None
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        order = order[at[order] >= int(when.timestamp() * 1e6)]
    return runs.take(order)
