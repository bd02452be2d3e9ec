"""What learning online rests on, found once from a sample of the runs that were learned from."""

from __future__ import annotations

import numpy as np

from jostle.learn.contract._coded_runs import KeptRuns, features_joined
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network.online._prior import Groundwork, Side, prior_of
from jostle.learn.learners.network.online._slopes import (
    PLATFORM,
    WORKLOAD,
    rows_of_names,
    slopes_of,
)
from jostle.learn.learners.network.online._steps import weights_of
from jostle.learn.training._encoded_features import encode_features

KINDS = (WORKLOAD, PLATFORM)
LEAST_ERROR = 1e-3  # log seconds: no clock and no program repeats better
PULL = 10.0  # runs that the usual error of a name is shrunken by
NOISE = 2.0  # times as large as usual: errors of new runs are not those that were trained on
MOST_SLOPES = 8_000  # runs from which it is found what differences between names are worth


def groundwork_of(
    fitted: FittedFactorization, kept: KeptRuns, more: KeptRuns, seed: int
) -> Groundwork:
    """kept: a sample of the runs that were learned from. more: new runs, with their features."""
    codes = fitted.codes(kept.colocations)
    error = np.log(kept.runtime_seconds) - fitted.predict_log(codes)
    names = {WORKLOAD: fitted.workload_names, PLATFORM: fitted.platform_names}
    coded = {WORKLOAD: codes.workload, PLATFORM: codes.platform}
    usual = {k: _usual_errors(error, coded[k], len(names[k])) for k in KINDS}
    runs = runs_of_names(fitted)
    some = np.zeros(len(codes), bool)
    drawn = np.random.default_rng([seed, 29]).permutation(len(codes))[:MOST_SLOPES]
    some[drawn] = True
    part = codes.take(some)
    sides = {}
    for kind, other in zip(KINDS, reversed(KINDS), strict=True):
        rows = rows_of_names(fitted.embeddings, kind)
        every = np.eye(rows.shape[1])
        slopes = slopes_of(fitted.embeddings, fitted.reading, part, kind, every).slopes
        metric = slopes.T @ slopes / max(len(slopes), 1)
        table = features_joined(kind, kept, more)
        size = 1.0 if kind == WORKLOAD else 0.5
        features = encode_features(names[kind], kind, table, weight=size)
        rated = set() if table is None else set(table.column(kind).to_pylist())
        has_runs = np.array([name in rated for name in names[kind]], bool)
        prior = prior_of(rows, features, runs[kind] > 0, metric, seed)
        there = NOISE * usual[other][coded[other][some]]
        inside = weights_of(error[some], there)
        gradient = slopes_of(fitted.embeddings, fitted.reading, part, kind, prior.basis)
        heavy = gradient.slopes * inside[gradient.row, None]
        information = heavy.T @ gradient.slopes / max(len(gradient.slopes), 1)
        far = float(np.sqrt(max(np.einsum("qd,de,qe->", prior.basis, metric, prior.basis), 0.0)))
        middle = np.where(runs[kind] > 0, usual[kind], max(far, LEAST_ERROR))
        sides[kind] = Side(prior, runs[kind], information, has_runs, middle, max(far, LEAST_ERROR))
    return Groundwork(sides)


def runs_of_names(fitted: FittedFactorization) -> dict[str, np.ndarray]:
    """Count the runs of each name, by kind, (names,); for a workload also those as a co-runner."""
    counts = fitted.counts
    as_corunner = counts.together_runs - counts.beside_runs
    by_name = {}
    for kind, names, known, runs in (
        (
            WORKLOAD,
            fitted.workload_names,
            counts.workload_names,
            counts.workload_runs + as_corunner,
        ),
        (PLATFORM, fitted.platform_names, counts.platform_names, counts.platform_runs),
    ):
        of = dict(zip(known, runs.tolist(), strict=True))
        by_name[kind] = np.array([of.get(name, 0) for name in names], np.float64)
    return by_name


def _usual_errors(error: np.ndarray, code: np.ndarray, names: int) -> np.ndarray:
    """Estimate the error of each name's runs in log seconds, shrunk to that of all. Returns (names,)."""
    good = np.isfinite(error)
    error, code = error[good], code[good]
    middle = 1.4826 * float(np.median(np.abs(error))) if len(error) else 0.1
    middle = max(middle, LEAST_ERROR)
    size = np.minimum(np.abs(error), 5 * middle) ** 2
    count = np.bincount(code, minlength=names)
    total = np.bincount(code, size, names)
    return np.sqrt((total + PULL * middle**2) / (count + PULL))
