"""The network set beside measured times and simple rules, and what that leaves of its errors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.factorization._codes import Codes
from jostle.factorization._fitted import FittedFactorization
from jostle.factorization._spread_effects import SpreadRows
from jostle.factorization.beside._fit_rules import fit_rules
from jostle.factorization.beside._members import CodedRuns, LeftOutRuns
from jostle.factorization.beside._rules import BesideNetwork
from jostle.runs import Runs

MOST_CELLS = 2_000_000  # of workload and platform, past which the network stands alone
NO_SLOWDOWN = "no run with co-runners: every slowdown is 1"

Errors = tuple[SpreadRows, np.ndarray]


@dataclass(frozen=True)
class Seen:
    """Runs as a model codes them; log_runtime: (n,)."""

    codes: Codes
    log_runtime: np.ndarray

    @classmethod
    def of(cls, fitted: FittedFactorization, runs: Runs) -> Seen:
        return cls(fitted.codes(runs.colocations), np.log(runs.runtime_seconds))


def with_rules_of(
    fitted: FittedFactorization, seen: Seen, folds: list[LeftOutRuns], seed: int, taught: bool
) -> tuple[FittedFactorization, list[Errors]]:
    """(the network beside rules, co-locations of each fold with the errors there of what was not learned from
    them). taught: whether the network has learned from any run with co-runners."""
    size = len(fitted.platform_names), len(fitted.workload_names)
    many = size[0] * size[1] > MOST_CELLS
    codes, log_runtime = seen.codes, seen.log_runtime
    if many or (taught and not len(codes.corunner)):
        held = [fold.network.spread_rows(codes.take(fold.held)) for fold in folds]
        if not taught:
            silent = BesideNetwork.silent(np.zeros(0), size[0])
            fitted = fitted.with_rules(silent, (NO_SLOWDOWN,))
        answered = [rows.log_runtime for rows in held]
    else:
        cell = codes.platform.astype(np.int64) * size[1] + codes.workload
        beside = codes.platform[codes.row].astype(np.int64) * size[1] + codes.corunner
        coded = CodedRuns(cell, beside, codes.row, log_runtime)
        rules, answered, notes = fit_rules(coded, folds, fitted, size, seed)
        held = [fold.network.spread_rows(codes.take(fold.held)) for fold in folds]
        fitted = fitted.with_rules(rules, notes)
    errors = []
    for fold, rows, answer in zip(folds, held, answered, strict=True):
        known = np.isfinite(answer)
        left = log_runtime[fold.held] - answer
        errors.append((replace(rows, log_runtime=answer).take(known), left[known]))
    return fitted, errors
