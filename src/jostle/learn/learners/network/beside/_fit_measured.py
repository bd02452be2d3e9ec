"""How far times measured alone are believed, whether runs show interference at all, and what answers about
sets larger than any known: by runs that the network had not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.data import Runs
from jostle.learn.learners.network._codes import Codes, slowdown_rows
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network._spread_effects import SpreadRows
from jostle.learn.learners.network.beside._measured_solo import MeasuredAlone
from jostle.learn.rules._degree_extrapolation import Answer, LargerSets, fit_extrapolation
from jostle.learn.rules._interference_tests import chance_of_shift, is_noise
from jostle.learn.rules._set_residuals import variance_of_repeats
from jostle.learn.rules._shrunk_weights import plainly_another_time, relative_error

MOST_CELLS = 2_000_000  # of workload and platform, past which the network stands alone
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of what was measured alone
NO_RUN = "no run with co-runners"
FEWEST = 12  # runs, or sets, left out that tell anything

Errors = tuple[SpreadRows, np.ndarray]


@dataclass(frozen=True, eq=False)
class LeftOutRuns:
    """held: (n,) bool, the runs that the network has not learned from."""

    held: np.ndarray
    network: FittedFactorization


@dataclass(frozen=True)
class Seen:
    """Runs as a model codes them; log_runtime: (n,)."""

    codes: Codes
    log_runtime: np.ndarray

    @classmethod
    def of(cls, fitted: FittedFactorization, runs: Runs) -> Seen:
        return cls(fitted.codes(runs.colocations), np.log(runs.runtime_seconds))

    def take(self, keep: np.ndarray) -> Seen:
        """Those where the mask (n,) is true."""
        return Seen(self.codes.take(keep), self.log_runtime[keep])

    def measured(self, network: FittedFactorization) -> MeasuredAlone:
        """What these runs alone took beyond what a network says."""
        alone = self.take(self.codes.degree == 0)
        cell = network.cells(alone.codes.workload, alone.codes.platform)
        return MeasuredAlone.medians(cell, alone.log_runtime - network.predict_log(alone.codes))


def errors_of(fitted: FittedFactorization, seen: Seen) -> Errors:
    """(co-locations, errors in log runtime) of the runs that the model has an answer for."""
    rows = fitted.spread_rows(seen.codes)
    known = np.isfinite(rows.log_runtime)
    return rows.take(known), (seen.log_runtime - rows.log_runtime)[known]


def with_measured(
    fitted: FittedFactorization, seen: Seen, folds: Sequence[LeftOutRuns], seed: int, taught: bool
) -> tuple[FittedFactorization, list[Errors]]:
    """(the network with all that stands beside it, of each fold co-locations and errors of the runs that
    neither has learned from). taught: whether the network has learned from any run with co-runners."""
    if len(fitted.workload_names) * len(fitted.platform_names) > MOST_CELLS:
        without = [fold.network for fold in folds]
        if not taught:
            fitted, *without = (_silenced(one, NO_RUN) for one in (fitted, *without))
        return fitted, _errors(seen, folds, without)
    share, reason = _share(fitted, seen, folds), ""
    finished = replace(fitted, measured=seen.measured(fitted).times(share))
    without = [
        replace(fold.network, measured=seen.take(~fold.held).measured(fold.network).times(share))
        for fold in folds
    ]
    if not taught:
        reason = NO_RUN
    elif len(seen.codes.corunner) and _is_noise(finished, seen, folds, without, seed):
        reason = "no evidence of interference"
    if reason:
        finished, *without = (_silenced(one, reason) for one in (finished, *without))
    elif len(seen.codes.corunner):
        finished = replace(finished, more=_larger_sets(finished, seen, folds, without))
    return finished, _errors(seen, folds, without)


def _silenced(fitted: FittedFactorization, reason: str) -> FittedFactorization:
    fitted = fitted.silenced()
    return replace(fitted, notes=(*fitted.notes, f"{reason}: every slowdown is 1"))


def _errors(
    seen: Seen, folds: Sequence[LeftOutRuns], without: Sequence[FittedFactorization]
) -> list[Errors]:
    """Of each fold what is left of what it held out."""
    pairs = zip(folds, without, strict=True)
    return [errors_of(one, seen.take(fold.held)) for fold, one in pairs]


def _share(whole: FittedFactorization, seen: Seen, folds: Sequence[LeftOutRuns]) -> float:
    """How far what was measured alone stands for the network, by the error on runs held out where it was
    measured; where those are too few, what the means of repeated runs vary beyond the noise of these."""
    cost, count = np.zeros(len(SHARES)), 0
    for fold in folds:
        network, codes = fold.network, seen.codes
        beyond = (
            seen.take(~fold.held)
            .measured(network)
            .of(network.cells(codes.workload, codes.platform))
        )
        at = fold.held & (beyond != 0)
        part = seen.take(at)
        left = part.log_runtime - network.predict_log(part.codes)
        count += int(np.isfinite(left).sum())
        cost += [np.nansum(relative_error(share * beyond[at] - left)) for share in SHARES]
    if count >= FEWEST:
        return SHARES[int(np.argmin(cost))]
    network, noise = folds[0].network if folds else whole, _noise(seen, whole)
    measured, alone = seen.measured(network), seen.codes.degree == 0
    _, repeats = np.unique(_cells(whole, seen)[alone], return_counts=True)
    variance = float((measured.beyond**2).mean()) if len(measured.beyond) else 0.0
    if np.isnan(noise) or variance <= 0:
        return 1.0
    return float(np.clip(1 - noise * float((1 / repeats).mean()) / variance, 0.0, 1.0))


def _is_noise(
    fitted: FittedFactorization,
    seen: Seen,
    folds: Sequence[LeftOutRuns],
    without: Sequence[FittedFactorization],
    seed: int,
) -> bool:
    """Whether what is answered of slowdowns is no closer than none by more than chance."""
    cell, beside = _cells(fitted, seen), seen.codes.degree > 0
    chance = chance_of_shift(cell, seen.log_runtime, beside, seed)
    sets = np.zeros(len(beside), np.int64)
    sets[beside] = slowdown_rows(seen.codes.take(beside), len(fitted.workload_names)).sets()
    gains, places = [np.zeros(0)], [np.zeros(0, np.int64)]
    for fold, one in zip(folds, without, strict=True):
        part, place = seen.take(fold.held & beside), sets[fold.held & beside]
        none, answered = one.log_solo(part.codes), one.predict_log(part.codes)
        gain = relative_error(none - part.log_runtime) - relative_error(answered - part.log_runtime)
        gains.append(gain[np.isfinite(gain)])
        places.append(place[np.isfinite(gain)])
    gain, place = np.concatenate(gains), np.concatenate(places)
    if not len(gain):  # what was not tried is no closer
        gain, place = np.full(1, -1.0), np.zeros(1, np.int64)
    noise = is_noise(chance, gain, place)
    if len(np.unique(place)) >= FEWEST:
        return noise
    part = seen.take(beside)
    return noise and not plainly_another_time(
        part.log_runtime - fitted.log_solo(part.codes), cell[beside]
    )


def _larger_sets(
    fitted: FittedFactorization,
    seen: Seen,
    folds: Sequence[LeftOutRuns],
    without: Sequence[FittedFactorization],
) -> LargerSets:
    """From what the network says of sets no larger than known."""
    total, count = np.zeros(len(seen.log_runtime)), np.zeros(len(seen.log_runtime))
    for fold, one in zip(folds, without, strict=True):
        total[fold.held] += one.predict_log(seen.codes.take(fold.held))
        count[fold.held] += 1
    beside = seen.codes.degree > 0
    part = seen.take(beside)
    alone = fitted.log_solo(part.codes)
    y = part.log_runtime - alone
    with np.errstate(invalid="ignore"):
        within = (total / count)[beside] - alone
    known = np.isfinite(y)
    rows = replace(slowdown_rows(part.codes, len(fitted.workload_names)), log_slowdown=y).take(
        known
    )
    answer: Answer = fitted.log_slowdown
    more, _ = fit_extrapolation(
        *(rows, fitted.ground, answer, within[known], lambda keep: (answer, None)),
        _noise(seen, fitted),
    )
    return more


def _noise(seen: Seen, fitted: FittedFactorization) -> float:
    """Variance of repeated runs alone, NaN where too few are."""
    alone = seen.codes.degree == 0
    return variance_of_repeats(_cells(fitted, seen)[alone], seen.log_runtime[alone])


def _cells(fitted: FittedFactorization, seen: Seen) -> np.ndarray:
    return fitted.cells(seen.codes.workload, seen.codes.platform)
