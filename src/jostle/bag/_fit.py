"""From runs to a fitted bag model: features of the runs beside others, trees by scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.bag._features import NAME, describe
from jostle.bag._fitted import FittedBag
from jostle.bag._rules import Weighing, fit_beside
from jostle.bag._settings import BagSettings
from jostle.bag._target import log_slowdown_of, second_target, target_of
from jostle.bag._trees import Trees
from jostle.errors import MissingExtra, NotEnoughRuns, UnknownName
from jostle.methods import RunCounts
from jostle.progress import Progress
from jostle.rules import chance_of_shift, design_of_names
from jostle.runs import Runs, all_names, solo_medians

FEWEST_IN_LEAF = {"tree": 1, "forest": 2, "boosting": 3}  # of CART: the paper's
DEPTH_OF_BOOSTING = 3


def fit(method: BagSettings, runs: Runs, seed: int, progress: Progress | None) -> FittedBag:
    """See Bag.fit."""
    names = all_names(runs)
    log_solo = solo_medians(runs, *names)
    cpu = None
    if method.cpu_platform is not None:
        if method.cpu_platform not in runs.colocations.platform_names:
            raise UnknownName("platform", method.cpu_platform, runs.colocations.platform_names)
        cpu = names[1].index(method.cpu_platform)
    described = describe(runs, names, log_solo, cpu, method.groups)
    workload, platform, _ = runs.colocations.recode(*names)
    usable = (runs.colocations.number_of_corunners > 0) & np.isfinite(log_solo[platform, workload])
    if cpu is not None:
        usable &= platform != cpu
    if not usable.any():
        raise NotEnoughRuns(
            "no run with co-runners is of a workload that also ran alone there",
            fix="Measure every application alone and some bags of them.",
        )
    train = runs.take(usable)
    codes = train.colocations.recode(*names)
    rows = described.rows(train.colocations, codes)
    columns = _kept(method, described.feature_groups(), rows)
    rows = rows[:, columns]
    unknown = unknown_of(rows)
    x = np.where(np.isnan(rows), unknown, rows).astype(np.float32)
    own = log_solo[platform[usable], workload[usable]]
    log_runtime = np.log(train.runtime_seconds)
    scale, every = float(described.time_scale), np.ones(len(x), bool)
    learner = TreeGrower(method, x, log_runtime, own, scale, seed)
    second, rules = None, None
    if not method.has_rules:
        trees = learner.learn(every)
    else:
        target = second_target(method.target, described.has_core_share)
        other = replace(method, target=target)
        both = _Both(learner, replace(learner, method=other))
        counts = train.colocations.number_of_corunners
        measured = described.slowdown_rows(codes, counts, log_runtime - own)
        here = np.ones(len(runs), bool) if cpu is None else platform != cpu
        cells = (platform * len(names[0]) + workload)[here]
        beside = runs.colocations.number_of_corunners[here] > 0
        chance = chance_of_shift(cells, np.log(runs.runtime_seconds[here]), beside, seed)
        ground = described.ground()
        size = (ground.workloads, ground.platforms)
        ground = replace(ground, design=design_of_names(*size, ground.level.reshape(size[::-1])))
        share = np.nan_to_num(described.core_share).ravel()
        is_steady = method.target == "slowdown"
        families = described.families()
        weighing = Weighing(measured, ground, share, families, chance, is_steady, seed)
        rules, (trees, second) = fit_beside(weighing, both)
    if progress:
        progress(1, 1, float("nan"))
    notes = _notes(method, described.columns, described.groups, described.has_fairness)
    return FittedBag(
        *(method.learner, method.target, *names),
        *(described, columns, unknown, trees),
        counts=RunCounts.of(runs),
        notes=notes,
        most=int(train.colocations.number_of_corunners.max()),
        rules=rules,
        second=second,
    )


def _kept(method: BagSettings, groups: tuple[str, ...], rows: np.ndarray) -> np.ndarray:
    """(k,) int64: features of the chosen groups that differ between rows."""
    chosen = np.array([group in (*method.groups, "always") for group in groups])
    differs = np.array([len(np.unique(column[~np.isnan(column)])) > 1 for column in rows.T])
    differs |= np.isnan(rows).any(0) & ~np.isnan(rows).all(0)
    places = np.flatnonzero(chosen & differs)
    # A tree of nothing to ask about is the mean; one constant column keeps the shapes whole.
    return places if len(places) else np.flatnonzero(chosen)[:1]


def unknown_of(rows: np.ndarray) -> np.ndarray:
    """(k,) a number under all known ones of each feature."""
    low = np.nanmin(np.where(np.isnan(rows), np.inf, rows), axis=0)
    low = np.where(np.isfinite(low), low, 0.0)
    return low - 1.0 - np.abs(low)


def weight_of(log_runtime: np.ndarray, target: str) -> np.ndarray:
    """(n,) of mean 1. What is reported is relative to the runtime, so errors of seconds weigh by its inverse
    square; the paper's own target is learned as the paper does, unweighted."""
    weight = np.exp(-2 * log_runtime) if target == "extra" else np.ones(len(log_runtime))
    return weight / weight.mean() if len(weight) else weight


@dataclass(frozen=True)
class TreeGrower:
    """x: (n, k), log_runtime: (n,) what trees learn from; own: (n,) log seconds alone."""

    method: BagSettings
    x: np.ndarray
    log_runtime: np.ndarray
    own: np.ndarray
    time_scale: float
    seed: int

    def log_slowdown(self, trees: Trees, asked: np.ndarray) -> np.ndarray:
        """What they say of those rows, by number."""
        log_ratio = trees.predict(self.x[asked])
        return log_slowdown_of(log_ratio, self.own[asked], self.method.target, self.time_scale)

    def learn(self, kept: np.ndarray) -> Trees:
        """From the rows (n,) bool. Raises MissingExtra."""
        try:
            from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
            from sklearn.tree import DecisionTreeRegressor
        except ModuleNotFoundError:
            raise MissingExtra("scikit-learn", "fit") from None
        method, x, log_runtime = self.method, self.x[kept], self.log_runtime[kept]
        y = target_of(log_runtime, self.own[kept], method.target, self.time_scale)
        weight = weight_of(log_runtime, method.target)
        fewest = method.fewest or FEWEST_IN_LEAF[method.learner]
        shared: dict[str, Any] = {"min_samples_leaf": fewest, "random_state": self.seed}
        if method.learner == "tree":
            tree = DecisionTreeRegressor(max_depth=method.depth, **shared).fit(x, y, weight)
            return Trees.of([tree.tree_], 1.0, 0.0)
        if method.learner == "forest":
            forest = RandomForestRegressor(
                method.trees, max_depth=method.depth, max_features=0.5, n_jobs=1, **shared
            ).fit(x, y, weight)
            return Trees.of([tree.tree_ for tree in forest.estimators_], 1.0 / method.trees, 0.0)
        boosted = GradientBoostingRegressor(
            learning_rate=method.learning_rate,
            n_estimators=method.trees,
            max_depth=method.depth or DEPTH_OF_BOOSTING,
            subsample=0.7 if len(y) > 1 else 1.0,
            max_features=0.5,
            **shared,
        ).fit(x, y, weight)
        base = float(np.average(y, weights=weight))
        every = [tree.tree_ for tree in boosted.estimators_[:, 0]]
        return Trees.of(every, method.learning_rate, base)


@dataclass(frozen=True)
class _Both:
    """Trees of the target that is asked for, and second ones of another."""

    first: TreeGrower
    second: TreeGrower

    def learn(self, kept: np.ndarray, turns: np.ndarray) -> tuple[Trees, Trees]:
        return self.first.learn(kept), _over(self.second, turns).learn(kept)

    def log_slowdown(
        self,
        trees: tuple[Trees, Trees],
        asked: np.ndarray,
        turns: np.ndarray,
        beyond: np.ndarray,
    ) -> np.ndarray:
        """(2, n)"""
        first, second = trees
        near = self.first
        if near.method.target == "extra":
            near = _over(near, beyond)
        return np.stack(
            [
                near.log_slowdown(first, asked),
                _over(self.second, turns + beyond).log_slowdown(second, asked),
            ]
        )


def _over(learner: TreeGrower, more: np.ndarray) -> TreeGrower:
    """One to which runs take so much longer alone, (n,) log seconds."""
    return replace(learner, own=learner.own + more)


def _notes(
    method: BagSettings, columns: tuple[str, ...], groups: tuple[str, ...], has_fairness: bool
) -> tuple[str, ...]:
    """Which groups were asked for and are not in the data."""
    there = {"solo", *groups, *(["fairness"] if has_fairness else [])}
    lost = [group for group in method.groups if group not in there]
    notes = [f"the data has no features of the groups {', '.join(lost)}"] if lost else []
    if any(name.startswith(NAME) for name in columns):
        notes.append("the workloads have no features: their names stand for them")
    if method.cpu_platform is not None:
        notes.append(f"on {method.cpu_platform}, the CPU side, nothing beside others is answered")
    return tuple(notes)
