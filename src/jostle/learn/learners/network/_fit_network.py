"""From runs to a fitted model: vocabulary, baseline, training rows, members, spread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jostle._base.progress import Progress, share_of
from jostle.data import Colocations, Runs, split_rows
from jostle.errors import NotEnoughRuns
from jostle.learn.contract._run_counts import RunCounts
from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network._network_baseline import baseline_of
from jostle.learn.learners.network._network_settings import FactorizationSettings
from jostle.learn.learners.network._spread import Spread, fit_spread
from jostle.learn.learners.network._spread_effects import SpreadRows
from jostle.learn.learners.network.training._network_members import (
    Parts,
    combine,
    schedule_of,
    shape_of,
    train_member,
)
from jostle.learn.learners.network.training._training_rows import Rows, TrainingData
from jostle.learn.training._encoded_features import Features, encode_features
from jostle.learn.training._linear_baseline import Baseline

HEADS_LIMIT = 50_000_000  # numbers in the quantile heads, past which they are left out
FEWEST_FOR_HEADS = 2_000  # runs under which there are no quantile heads
LEFT_OUT = 0.06  # share of the runs that a member of an ensemble does not train on, more of few
LEFT_OUT_RUNS, LEFT_OUT_MOST = 60, 0.2  # that many of few, and at most that share
SEEN_MOST = 300_000  # runs trained on whose errors are looked at; drawn at random of more

Errors = tuple[SpreadRows, np.ndarray]  # co-locations, and errors in log runtime


def fit(
    method: FactorizationSettings,
    runs: Runs,
    validation: Runs,
    seed: int,
    progress: Progress | None,
    prior: Runs | None = None,
) -> FittedFactorization:
    """See Factorization.fit. With a prior, every second member learns from `runs` alone, so that foreign
    runs cannot carry the average away."""
    counts = RunCounts.of(Runs.concatenate([runs, validation.ok()]))
    validation = validation.ok()
    if len(runs) == 0:
        raise NotEnoughRuns(
            "there is no run with status ok to learn from", fix="Measure or import runs first."
        )
    if _members_leave_out(method, runs):
        runs, validation = Runs.concatenate([runs, validation]), validation.take([])
    mine, own = runs, len(runs)
    if prior is not None:
        runs = Runs.concatenate([runs, prior.ok()])
    names = _names(runs, validation)
    rows, features, baseline, notes = _coded(method, runs, names)
    alone, size = _alone(rows.corunner), len(rows)
    shape = shape_of(method, size, len(names[0]) * len(names[1]))
    quantiles = method.quantiles
    if size < FEWEST_FOR_HEADS or len(quantiles) * len(names[0]) * shape.rank > HEADS_LIMIT:
        quantiles = ()

    if alone.all():
        notes = (*notes, "no run with co-runners: every slowdown is 1")

    def model_of(parts: Parts) -> FittedFactorization:
        heads = quantiles if "head_main" in parts[0] else ()
        fitted = fitted_of(method, names, combine(parts, baseline, shape), counts, heads, notes)
        return fitted.silenced() if alone.all() else fitted

    members, held_out, left_out = [], [], np.zeros(size, bool)
    parts = _folds(method, mine, seed)
    for number, fold in enumerate(parts):
        left = np.delete(np.arange(size), fold)
        if number % 2:
            left = left[left < own]
        learned = rows.take(left)
        member = train_member(
            TrainingData(
                *_parts(learned, alone[left]),
                *features,
                score_on(runs.take(fold) if len(fold) else validation, model_of),
            ),
            shape,
            schedule_of(method, len(learned) if number % 2 else size, shape),
            quantiles,
            seed + 1000 * number,
            share_of(progress, number, len(parts)),
        )
        members.append(member)
        if len(fold):
            held_out.append(errors_of(model_of([member]), mine.take(np.sort(fold))))
            left_out[fold] = True
    fitted = model_of(members)
    if len(validation):
        held_out.append(errors_of(fitted, validation))
    training = drawn_of(np.flatnonzero(~left_out[:own]), seed)
    categories = (features[0].category, features[1].category)
    return with_spread_of(fitted, held_out, errors_of(fitted, mine.take(training)), categories)


def _coded(
    method: FactorizationSettings, runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[Rows, tuple[Features, Features], Baseline, tuple[str, ...]]:
    """Return (rows to train on, features of both kinds of names, the baseline beyond which the network
    learns, notes)."""
    workload, platform, corunner = runs.colocations.recode(*names)
    padded = pad(corunner, runs.colocations.corunner_offsets)
    log_runtime = np.log(runs.runtime_seconds)
    features = features_of_names(method, runs, *names)
    baseline, notes = baseline_of(workload, platform, _alone(padded), log_runtime, *features)
    if not method.baseline:
        level = np.full(len(names[0]), log_runtime.mean())
        baseline = replace(baseline, workload=level, platform=np.zeros(len(names[1])))
    target = log_runtime - baseline.workload[workload] - baseline.platform[platform]
    return Rows(workload, platform, padded, target), features, baseline, notes


def network_of(
    method: FactorizationSettings,
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    sizes: tuple[int, int],
    seed: int,
) -> FittedFactorization:
    """Fit one network to these runs, and nothing beside it. names: all that it is to know. sizes: how many
    runs alone and beside others it trains on, by copies if there are fewer, so that folds of one campaign
    share a compiled program."""
    rows, features, baseline, notes = _coded(method, runs, names)
    alone, parts = _alone(rows.corunner), []
    for mine, size in zip((alone, ~alone), sizes, strict=True):
        index = np.flatnonzero(mine)
        if len(index):
            more = np.random.default_rng([seed, size]).choice(index, max(size - len(index), 0))
            index = np.append(index, more)
        parts.append(index)
    learned = rows.take(np.concatenate(parts))
    shape = shape_of(method, sum(sizes), len(names[0]) * len(names[1]))
    member = train_member(
        TrainingData(*_parts(learned, _alone(learned.corunner)), *features),
        shape,
        schedule_of(method, sum(sizes), shape),
        (),
        seed,
        None,
    )
    counts = RunCounts.of(runs)
    return fitted_of(method, names, combine([member], baseline, shape), counts, (), notes)


def _members_leave_out(method: FactorizationSettings, runs: Runs) -> bool:
    return method.members > 1 and len(runs) >= 50 * method.members


def _folds(method: FactorizationSettings, mine: Runs, seed: int) -> list[np.ndarray]:
    """Draw the runs that each member does not train on, by window, none of a prior's: errors there tell how
    errors spread. A single member trains on everything; so do members of too few runs to do without any."""
    if not _members_leave_out(method, mine):
        return [np.zeros(0, np.int64)] * method.members
    members = method.members
    share = float(np.clip(LEFT_OUT_RUNS / len(mine), LEFT_OUT, LEFT_OUT_MOST))
    share = min(share, 1 / members)
    return split_rows(mine, [*[share] * members, 1 - share * members], seed)[:members]


def fitted_of(
    method: FactorizationSettings,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    embeddings: Embeddings,
    counts: RunCounts,
    quantiles: tuple[float, ...],
    notes: tuple[str, ...],
) -> FittedFactorization:
    nothing = Spread.none(len(names[0]), len(names[1]))
    return FittedFactorization(
        *names, embeddings, counts, nothing, notes, Form(method.form, quantiles, method.leak)
    )


def errors_of(fitted: FittedFactorization, runs: Runs) -> Errors:
    """Compute the errors of the runs that the model has an answer for."""
    rows = fitted.spread_rows(fitted.codes(runs.colocations))
    known = np.isfinite(rows.log_runtime)
    return rows.take(known), (np.log(runs.runtime_seconds) - rows.log_runtime)[known]


def drawn_of(index: np.ndarray, seed: int) -> np.ndarray:
    """Draw at most SEEN_MOST of the indices, in order."""
    if len(index) <= SEEN_MOST:
        return index
    return np.sort(np.random.default_rng([seed, 3]).choice(index, SEEN_MOST, replace=False))


def with_spread_of(
    fitted: FittedFactorization,
    held_out: list[Errors],
    training: Errors,
    categories: tuple[np.ndarray, np.ndarray],
) -> FittedFactorization:
    """Add the spread of errors, learned from all held-out errors, with what the training errors tell of
    it."""
    if not any(len(error) for _, error in held_out):
        return fitted
    spread = fit_spread(_together(held_out), training, *categories)
    return replace(fitted, spread=spread)


def _together(parts: list[Errors]) -> Errors:
    return SpreadRows.concatenate([rows for rows, _ in parts]), np.concatenate(
        [error for _, error in parts]
    )


def pad(corunner: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Pad codes to (n, most co-runners), -1 where a row has fewer."""
    counts = np.diff(offsets)
    padded = np.full((len(counts), int(counts.max(initial=0))), -1, np.int32)
    row = np.repeat(np.arange(len(counts)), counts)
    padded[row, np.arange(len(corunner)) - np.repeat(offsets[:-1], counts)] = corunner
    return padded


def _names(runs: Runs, validation: Runs) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List every name that runs, validation or feature tables mention, sorted."""
    parts: list[Colocations] = [runs.colocations, validation.colocations]
    workloads = set().union(*(part.workload_names for part in parts))
    platforms = set().union(*(part.platform_names for part in parts))
    if runs.workload_features is not None:
        workloads |= set(runs.workload_features.column("workload").to_pylist())
    if runs.platform_features is not None:
        platforms |= set(runs.platform_features.column("platform").to_pylist())
    return tuple(sorted(workloads)), tuple(sorted(platforms))


def features_of_names(
    method: FactorizationSettings,
    runs: Runs,
    workload_names: tuple[str, ...],
    platform_names: tuple[str, ...],
) -> tuple[Features, Features]:
    workload = runs.workload_features if method.use_workload_features else None
    platform = runs.platform_features if method.use_platform_features else None
    return (
        encode_features(workload_names, "workload", workload),
        encode_features(platform_names, "platform", platform, weight=0.5),
    )


def _alone(padded: np.ndarray) -> np.ndarray:
    """Mark rows without co-runners, (n,) bool."""
    return np.asarray((padded < 0).all(axis=1))


def _parts(rows: Any, alone: np.ndarray) -> tuple[Any, Any]:
    """Return (rows alone with no co-runner columns, rows with co-runners)."""
    solo = rows.take(np.flatnonzero(alone))
    return replace(solo, corunner=solo.corunner[:, :0]), rows.take(np.flatnonzero(~alone))


def score_on(
    runs: Runs, model_of: Callable[[Parts], FittedFactorization]
) -> Callable[[dict[str, np.ndarray]], float] | None:
    """Return a score of a member's embeddings: the mean relative error on these runs, alone and beside others
    added up; None without runs. model_of: makes the model of some members."""
    if len(runs) == 0:
        return None

    def score(member: dict[str, np.ndarray]) -> float:
        model = model_of([member])
        rows, error = errors_of(model, runs)
        size, beside = np.abs(np.expm1(error)), rows.degree > 0
        return float(sum(size[at].mean() for at in (~beside, beside) if at.any()))

    return score
