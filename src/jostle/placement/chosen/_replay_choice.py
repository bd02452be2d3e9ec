"""What holds of what is chosen: the choice replayed on the model's own calibration runs.

A bound holds over what was asked about; the least of many is exceeded more often than each by itself, and so
is one that was accepted because it is under a limit. So the choice is replayed: a fleet is some calibration
runs, answered as if they were to come (by what was learned without them), with a limit such as those asked
for; of those whose bound is under it the one with the least is taken, and is late where the run took longer
than its bound. Bounds are then given at the least confidence, from the one asked for on, at which few enough
of those taken are late, where one more fleet counts as late beside as many as fit into the calibration runs
without sharing one (the share of late ones is the mean over many ways to form those: a U-statistic).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.conformal import uncertainty_of
from jostle.models import Model
from jostle.placement.queries._fleet import Node
from jostle.placement.queries._requests import Request
from jostle.placement.sets._set_bounds import SetBounds

# Of the share that may be late, from bold to careful.
CAREFUL = (1.0, 0.75, 0.5, 0.35, 0.25, 0.17, 0.12, 0.08, 0.05, 0.03, 0.02, 0.01)
FLEETS = 600  # that a choice is replayed on, at least
MOST_RUNS = 4_000  # calibration runs that fleets are made of
_REPLAYS: WeakKeyDictionary[Any, Replay | None] = WeakKeyDictionary()


class Replay:
    """Calibration runs, n of them, as they would have been answered. workload, platform: (n,) codes of the
    model's names; log_runtime: (n,) measured; log_predicted: (n,) by what was learned without each."""

    def __init__(self, model: Model) -> None:
        """Prepare the calibration runs of a model that keeps them (see Replay.of)."""
        assert model.kept is not None
        kept, every = model.kept.calibration, model.calibration.runs
        own = every.take(np.flatnonzero(~every.held_out))
        at = np.arange(len(own))
        if len(at) > MOST_RUNS:
            at = np.sort(np.random.default_rng(0).permutation(at)[:MOST_RUNS])
        self._model, self._asked = model, kept.colocations.take(at)
        names = model.predictor.workload_names, model.predictor.platform_names
        self.workload, self.platform, _ = self._asked.recode(*map(tuple, names))
        self._told = uncertainty_of(model.predictor, self._asked)
        self.log_runtime = np.log(kept.runtime_seconds[at])
        self.log_predicted = self.log_runtime - own.residual[at]
        # A fleet is of one workload where that has runs enough; others stand in relative to their own.
        total = np.bincount(self.workload, self.log_predicted)
        usual = total / np.maximum(np.bincount(self.workload), 1)
        self.usual = usual[self.workload]
        self.log_bound = lru_cache(maxsize=None)(self._log_bound)

    @classmethod
    def of(cls, model: Model | None) -> Replay | None:
        """Return None where the model keeps no calibration runs."""
        if model is None:
            return None
        calibration = model.calibration
        if calibration not in _REPLAYS:
            n = int((~calibration.runs.held_out).sum())
            is_whole = model.kept is not None and n == len(model.kept.calibration) and n > 0
            _REPLAYS[calibration] = cls(model.as_fitted) if is_whole else None
        return _REPLAYS[calibration]

    def __len__(self) -> int:
        return len(self.workload)

    def _log_bound(self, confidence: float) -> np.ndarray:
        """Return (n,) what bounds would have been; infinite where none is valid."""
        model = self._model
        bounds = model.calibration.bound(model.predictor, self._asked, confidence, told=self._told)
        with np.errstate(invalid="ignore"):
            width = np.log(bounds.seconds) - self._told.log_runtime
        return np.where(bounds.is_calibrated, self.log_predicted + width, np.inf)

    def level(self, confidence: float, options: int, log_limit: np.ndarray) -> float | None:
        """Return the confidence of bounds of which the least among so many options holds with
        `confidence`; None where calibration runs are too few to tell. log_limit: (draws, n) of each
        run, infinite for none."""
        n = len(self)
        width = min(max(options, 1), n)
        fleets, miss, random = self._fleets(width), 1 - confidence, np.random.default_rng(1)
        limits = log_limit[random.integers(0, len(log_limit), len(fleets))[:, None], fleets]
        for careful in CAREFUL:
            level = confidence if careful == 1 else float(round(1 - miss * careful, 12))
            bound = self.log_bound(level)[fleets]
            relative = np.where(bound <= limits, bound - self.usual[fleets], np.inf)
            best = relative.argmin(axis=1)[:, None]
            is_taken = np.isfinite(np.take_along_axis(relative, best, 1))[:, 0]
            first = np.take_along_axis(fleets, best, 1)[:, 0]
            late = float((self.log_runtime[first] > self.log_bound(level)[first])[is_taken].sum())
            taken = float(is_taken.sum())
            apart = taken / len(fleets) * (n // width)  # that share no run
            if taken and (late / taken * apart + 1) / (apart + 1) <= miss + 1e-9:
                return level
        return None

    def _fleets(self, width: int) -> np.ndarray:
        """Return (fleets, width) runs: of the workload of a run that is drawn, as far as there are, then
        others. They are remembered: it takes longer than all the rest."""
        known = vars(self).setdefault("known_fleets", {})
        if width not in known:
            n, random = len(self), np.random.default_rng(0)
            if width == 1:
                known[1] = np.tile(np.arange(n), -(-FLEETS // n))[:, None]
            else:
                first = random.integers(0, n, FLEETS)
                order = random.random((FLEETS, n)) + (self.workload != self.workload[first, None])
                known[width] = np.argpartition(order, width - 1, axis=1)[:, :width]
        return known[width]


def level_of_chosen(
    sets: SetBounds, requests: Sequence[Request], nodes: Sequence[Node], *, is_least: bool
) -> float | None:
    """Return the confidence at which bounds of these requests on these nodes are to be, so that what is
    chosen holds with the confidence asked for; None where that cannot be told. is_least: the one with
    the least bound is chosen, not any that keeps its limit."""
    replay = Replay.of(sets.model)
    if replay is None or not len(replay):
        return None
    different = {(node.platform, tuple(t.workload for t in node.tenants)) for node in nodes}
    used = np.unique(replay.platform)
    solo = np.full((int(used.max()) + 1, len(sets.workload_names)), np.nan)
    solo[used] = np.log(sets.solo(used))
    ratios = _log_ratios(sets, requests, nodes)
    log_limit = ratios[:, None] + np.nan_to_num(solo[replay.platform, replay.workload], nan=np.inf)
    confidence = float(exact_confidence(sets.standard.confidence))
    return replay.level(confidence, len(different) if is_least else 1, log_limit)


def _log_ratios(sets: SetBounds, requests: Sequence[Request], nodes: Sequence[Node]) -> np.ndarray:
    """Log of limits over times alone, one for each request, on the platform where it is the median; sorted,
    for which of them a fleet draws must not depend on the order of the requests."""
    known = sets.platform_code
    platforms = np.array(sorted({known[n.platform] for n in nodes if n.platform in known}), int)
    ratios = []
    for request in requests:
        code = sets.workload_code.get(request.workload)
        ratio = np.inf if request.slowdown is None else float(request.slowdown)
        if request.deadline_seconds is not None and code is not None and len(platforms):
            alone = float(np.nanmedian(sets.solo(platforms)[:, code]))
            ratio = min(ratio, request.deadline_seconds / alone)
        if ratio > 0:
            ratios.append(ratio)
    return np.log(np.sort(ratios or [np.inf]))
