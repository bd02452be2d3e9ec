"""A model watched while runs arrive: what drifts, since when, how far, and bounds that follow."""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.report import Glance
from jostle.conformal import (
    CONFIDENCES,
    MEAN,
    SIGN,
    SPREAD,
    TOLD,
    Bounds,
    DriftLevels,
    Quantiles,
    conformal_rank,
)
from jostle.errors import UsageError, require_runs
from jostle.models._drift_adjusted import DriftCorrection
from jostle.models._residual_baseline import LEVELS, KindNames, UsualScores, normal_score

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

GAIN = 0.04  # with which what moved is followed in the long run
REMEMBERED = 512  # runs of a level, that may turn out to be off
MOST_USUAL = 100_000  # runs of each number of co-runners that ranks are taken among
FEW_RUNS = 20.0  # that usual levels are worth where a model has none
EXPECTED = 1.4826  # usual spreads that one standard deviation of a normal law is
SURELY = 4.0  # standard errors that a median lies off, where the mean has moved
ALIKE = 3.0  # standard errors that runs after each other are alike by, in a period
WIDE = -1.5  # standard deviations that the least tenth of runs lies under, where errors are wider
FLIPS = 2  # moves there and back again that make a period


@dataclass(frozen=True)
class Drift:
    """Drift that was found.

    kind: fleet, device, platform or workload; name: which one, "" for the fleet. change: of its mean, its
    spread, a share of its runs, or a period. ratio, spread_ratio: how many times as long as predicted its
    runs take now, and how many times as wide errors are, where 1 is as when the model was fitted. chance:
    that so much is seen where nothing changes, at most. first, found: places in the stream of runs, counted
    from 0, of the first run that is off and of the run that told; runs: of that name from the one to the
    other. at: when the latter was measured, None where not known.
    """

    kind: str
    name: str
    change: Literal["mean", "spread", "share", "period"]
    ratio: float
    spread_ratio: float
    chance: float
    first: int
    found: int
    runs: int
    at: str | None = None

    def to_row(self) -> dict[str, Any]:
        """Return a row of a table."""
        return dict(vars(self))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A run that was checked. place: in the stream. off: its error in log seconds, less what was moved then;
    standard: in usual spreads, of `spread` log seconds each. score: its normal score less what is usual of
    its names; usual: that in usual spreads."""

    place: int
    off: float
    standard: float
    score: float
    usual: float
    spread: float
    degree: int


class DriftWatch(Glance):
    """Watch a model for drift: hand it runs in the order in which they were measured."""

    def __init__(
        self, model: Any, confidence: float = DEFAULT_CONFIDENCE, told: float = TOLD
    ) -> None:
        """confidence: at which coverage is watched. told: in so many runs one false alarm at most of each
        kind of names."""
        self._told = told
        self.model = model.as_fitted
        self.confidence = float(exact_confidence(confidence))
        self.runs = 0
        self.checked = 0
        self.unknown = 0
        self.drifts: list[Drift] = []
        self.changes = 0  # drifts, and names that came to seem so or no longer do
        self._kinds = KindNames.of(model.predictor)
        self._first = self._kinds.first
        self._scores = UsualScores(model)
        self._usual = self._scores.by_degree()
        self._confidences = np.array(sorted({*CONFIDENCES, self.confidence}))
        self._place = int(np.searchsorted(self._confidences, self.confidence))
        self._usual_late = NormalDist().inv_cdf(self.confidence)
        self._bounds = {d: self._offsets(scores) for d, scores in self._usual.items() if scores}
        self._levels = self._known_levels()
        self._lately: dict[int, deque[_Seen]] = {}
        self._extra: dict[int, Quantiles] = {}
        self._moves: dict[int, list[float]] = {}
        self._doubted: set[int] = set()
        self._following: Any = None

    def _facts(self) -> list[tuple[str, str]]:
        """Count the runs checked, and list what drifts."""
        facts = [("checked", f"{self.checked} runs"), ("of unknown names", f"{self.unknown}")]
        return facts + [(one.kind, f"{one.name} x{one.ratio:.2f}") for one in self.drifts]

    def replay(self, runs: Runs, since: str | None = None) -> list[Drift]:
        """Do as `update` with runs in the order in which the runs were measured; those without a time come
        first, as they stand. since: only runs measured from then on, a time in ISO 8601, UTC where it
        names no other.

        Raises UsageError for what cannot be read as a time.
        """
        return self.update(in_order(runs, since))

    def update(self, runs: Runs) -> list[Drift]:
        """Find the drifts that these runs show, in the order of the rows; earlier runs are remembered.

        Runs without a runtime or an answer and of names that the model does not know are passed over.
        """
        require_runs(runs)
        first, self._following = len(self.drifts), None
        places = np.flatnonzero(runs.is_ok)
        known = self._kinds.know(runs.colocations)[places]
        self.unknown += int((~known).sum())
        places = places[known]
        start, self.runs = self.runs, self.runs + len(runs)
        if len(places):
            checked = runs.take(places)
            c = checked.colocations
            log, scale = self.model.calibration.scaled(self.model.predictor, c)
            median, usual = self._scores.at(c.number_of_corunners)
            error = np.log(checked.runtime_seconds) - log - median * scale
            columns = error.tolist(), (usual * scale).tolist(), c.number_of_corunners.tolist()
            when, levels = checked.table.column("measured_at").to_pylist(), self._kinds.levels(c).T
            for row in np.flatnonzero(np.isfinite(error)).tolist():
                self.checked += 1
                mine = (one[row] for one in (*columns, when))
                self._add(int(start + places[row]), levels[row], *mine)
        return self.drifts[first:]

    def predict(self, colocations: Colocations) -> np.ndarray:
        """Predict (n,) seconds: the model's prediction times what the names have drifted by."""
        return self.following().predict(colocations)

    def bound(self, colocations: Colocations) -> Bounds:
        """Bound runtimes by bounds that follow drifts.

        Where nothing has drifted they are the model's own. From the first sign on that something has, the
        outcome is `adapting`: bounds are moved once it is told, so far that the stated share of runs is kept
        in the long run; no theorem holds for one of them.
        """
        return self.following().bound(colocations, self.confidence)

    def following(self) -> Any:
        """Return the model with its answers moved by what has drifted up to now, at any confidence; the model
        itself if nothing has. Runs that come later do not change it."""
        if not self.drifts and not self._doubted:
            return self.model
        if self._following is None:
            off, none = sorted(self._doubted | set(self._extra)), np.zeros(len(self._confidences))
            extra = [self._extra[k].extra if k in self._extra else none for k in off]
            about = np.array(off), self._levels.shift[off], np.array(extra)
            moved = DriftCorrection(self._kinds, *about, self._confidences, self._scores)
            self._following = moved.followed_by(self.model)
        return self._following

    def _offsets(self, scores: list[float]) -> np.ndarray:
        """Compute bounds' offsets per confidence, in usual spreads; the largest score if none is valid."""
        ranks = [conformal_rank(len(scores), float(c)) for c in self._confidences]
        return np.array([scores[min(rank, len(scores)) - 1] for rank in ranks])

    def _known_levels(self) -> DriftLevels:
        """Return the levels that calibration runs had. If other fits than now answered those, which had not
        seen them, any share of a level may be due to that alone."""
        usual, late = self.model.usual, 1 - self.confidence
        if usual is None:
            n = self._first[-1]
            return DriftLevels(np.zeros(n), np.full(n, 0.3), np.ones(n), np.full(n, FEW_RUNS), late)
        parts = [usual.levels[kind] for kind in LEVELS]
        names = ("level", "unsure", "noise", "freedom")
        level, unsure, noise, freedom = (
            np.concatenate([vars(part)[name] for part in parts]) for name in names
        )
        if self.model.calibration.is_cross_conformal:
            unsure, level = np.hypot(unsure, level / np.sqrt(12)), level / 2
            unsure[0] = max(unsure[0], 0.1)
        # A platform that is its device's only one has no level beside that one's to learn.
        of = self._kinds.device_of_platform
        first = self._first[LEVELS.index("platform")]
        unsure[first + np.flatnonzero(np.bincount(of)[of] == 1)] = 0.0
        return DriftLevels(level, unsure, noise, freedom, late)

    def _add(
        self, place: int, at: np.ndarray, error: float, spread: float, degree: int, when: Any
    ) -> None:
        """Add one run of the levels `at`, the wider first. error, spread: log seconds."""
        levels = self._levels
        off = error - float(levels.shift[at].sum())
        standard, usual = off / spread, self._usual.get(degree)
        if not usual:
            return
        score, expected = normal_score(usual, standard), float(levels.mean[at].sum())
        run = _Seen(place, off, standard, score - expected, EXPECTED * expected, spread, degree)
        excess = standard - self._bounds[degree]
        moved = [level for level in at.tolist() if level in self._extra]
        given = np.max([0 * excess, *(self._extra[level].extra for level in moved)], axis=0)
        for level in moved:
            self._extra[level].add(excess, given)
            gain = max(1 / (levels.since[level] + 10), GAIN) * spread
            levels.since[level] += 1
            levels.shift[level] += gain * min(max(standard - run.usual, -4.0), 4.0)
        # By rank among all that came while nothing changed; after that by the bound that follows.
        is_late = score > self._usual_late
        if moved:
            is_late = bool(excess[self._place] > given[self._place])
        levels.add(at, score, is_late=is_late)
        signs = {level for level in at.tolist() if levels.evidence[level] >= SIGN}
        before = self._doubted
        self._doubted = (before - set(at.tolist())) | signs
        self.changes += before != self._doubted
        if not moved and not signs and len(usual) < MOST_USUAL:
            insort(usual, standard)
        for level in at.tolist():
            self._lately.setdefault(level, deque(maxlen=REMEMBERED)).append(run)
        for level in at.tolist():
            if levels.evidence[level] >= self._told:
                self._tell(level, run, when)
                return

    def _tell(self, level: int, run: _Seen, when: datetime | None) -> None:
        """Report that a level has changed, move its answers, and begin anew with narrower ones."""
        family, runs = self._levels.told_by(level)
        chance = min(float(self._levels.count[level] / self._levels.evidence[level]), 1.0)
        since = list(self._lately[level])[-min(runs, REMEMBERED) :]
        scores = np.array([one.score for one in since])
        rest = np.array([one.off - one.usual * one.spread for one in since])
        # What was learned as usual meanwhile has moved, too.
        learned = float(self._levels.mean[level] - self._levels.usual[level])
        middle = float(np.median(scores)) + learned
        error = float(scores.std()) / np.sqrt(len(scores))
        if family != MEAN and abs(middle) > max(SURELY * error, 0.5):
            family = MEAN
        elif family == MEAN and abs(middle) < 2 * error:
            family = SPREAD
        spreads = np.array([one.spread for one in since])
        shift = 0.0
        if family == MEAN:
            shift = float(np.median(rest + EXPECTED * learned * spreads))
        moves = self._moves.setdefault(level, [])
        moves += [shift] if family == MEAN else []
        change = _change(family, scores, moves)
        after = np.clip(scores + learned - shift / (EXPECTED * spreads), -3, 3)
        wider = float(np.sqrt(np.mean((rest / spreads) ** 2))) / EXPECTED
        grown = self._levels.move(level, shift, after)
        wider = grown if family == MEAN else wider
        excess = np.array([one.standard - self._bounds[one.degree] for one in since])
        if not self._extra.get(level) or family != MEAN:
            self._extra[level] = Quantiles(self._confidences, excess - (shift / spreads)[:, None])
        kind, name = self._kinds.of_level(level)
        ratio = float(np.exp(self._levels.shift[level]))
        at = None if when is None else when.isoformat()
        where = since[0].place, run.place, len(since), at
        self.drifts.append(Drift(kind, name, change, ratio, max(wider, 1.0), chance, *where))
        self.changes += 1
        if kind in LEVELS[:2]:  # narrower ones begin anew
            last = int(self._first[1 + LEVELS.index(kind)])
            self._levels.forget(slice(last, None))
            self._doubted = {one for one in self._doubted if one < last}
        self._doubted.discard(level)


def _change(
    family: str, scores: np.ndarray, moves: list[float]
) -> Literal["mean", "spread", "share", "period"]:
    """Tell what changed, from normal scores since it did, and from how a level has moved so far."""
    signs = np.sign(moves)
    if family == MEAN:
        return "period" if int((signs[1:] != signs[:-1]).sum()) >= FLIPS else "mean"
    centred = scores - scores.mean()
    alike = float(centred[1:] @ centred[:-1]) / max(float(centred @ centred), 1e-12)
    if alike * np.sqrt(len(scores)) > ALIKE:
        return "period"
    is_wide = family == SPREAD and np.quantile(scores, 0.1) < WIDE
    return "spread" if is_wide else "share"


def in_order(runs: Runs, since: str | None = None) -> Runs:
    """Sort runs by the time of measuring, from a time on."""
    import pyarrow as pa

    require_runs(runs)
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
