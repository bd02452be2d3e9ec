"""Trees on features of a bag as a base learner: one tree, a forest or boosting, by scikit-learn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.data import Colocations, Runs
from jostle.errors import MissingExtra
from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.bags._bag_features import BagFeatures, describe, fairness_of
from jostle.learn.learners.bags._bag_settings import BagSettings
from jostle.learn.learners.bags._regression_trees import Trees
from jostle.learn.training._cpu_sharing import cpu_sharing_log_slowdown
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows
from jostle.learn.training._training_data import TrainingRuns

LEAST = 0.05  # of the solo runtime: no answer is shorter
FEWEST_IN_LEAF = {"tree": 1, "forest": 2, "boosting": 3}  # of CART: the paper's
# Of boosting: as deep as the leaves of a full tree hold so many rows.
LEAST_DEPTH, MOST_DEPTH, ROWS_IN_LEAF = 3, 5, 16


def target_of(
    log_runtime: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """Convert log seconds to (n,) targets of the trees."""
    if target == "slowdown":
        return log_runtime - log_solo
    seconds = np.exp(log_runtime)
    return (seconds if target == "runtime" else seconds - np.exp(log_solo)) / time_scale


def _log_runtime_of(
    answer: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """Convert the trees' answers to (n,) log seconds; the inverse of target_of."""
    if target == "slowdown":
        return log_solo + answer
    seconds = answer * time_scale
    if target == "extra":
        seconds = np.exp(log_solo) + seconds
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(seconds, LEAST * np.exp(log_solo)))


def log_slowdown_of(
    answer: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """Convert the trees' answers to (n,) log slowdowns over the log seconds alone."""
    return _log_runtime_of(answer, log_solo, target, time_scale) - log_solo


def grown(how: BagSettings, x: np.ndarray, y: np.ndarray, weight: np.ndarray, seed: int) -> Trees:
    """Grow the trees. x: (n, k), y, weight: (n,). Raises MissingExtra."""
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
        from sklearn.tree import DecisionTreeRegressor
    except ModuleNotFoundError:
        raise MissingExtra("scikit-learn", "fit") from None
    about: dict[str, Any] = {
        "min_samples_leaf": how.fewest or FEWEST_IN_LEAF[how.learner],
        "random_state": seed,
        "max_depth": how.depth,
    }
    x = x.astype(np.float32)
    if how.learner == "boosting":
        leaves = max(len(y) // ROWS_IN_LEAF, 1)
        depth = how.depth or min(max(leaves.bit_length() - 1, LEAST_DEPTH), MOST_DEPTH)
        about |= {"max_depth": depth, "max_leaf_nodes": None, "early_stopping": False}
        about |= {"max_iter": how.trees, "learning_rate": how.learning_rate}
        boosting = HistGradientBoostingRegressor(**about).fit(x, y, weight)
        return Trees.of_boosting(boosting)
    if how.learner == "tree":
        return Trees.of_forest([DecisionTreeRegressor(**about).fit(x, y, weight).tree_])
    forest = RandomForestRegressor(how.trees, max_features=0.5, n_jobs=1, **about)
    return Trees.of_forest([tree.tree_ for tree in forest.fit(x, y, weight).estimators_])


# What trees learn, and what theirs are called.
TARGETS = {
    "slowdown": "trees of factors",
    "extra": "trees of seconds",
    "runtime": "trees of runtimes",
}
OVER_TURNS = "trees over turns"
MOST_ROWS = 8_000  # that trees are grown on where rules stand beside them
MOST_COLUMNS = 400  # of features, which trees look at one by one
BEYOND = 4.0  # times what was seen, to which seconds are believed of shorter and longer workloads


@dataclass(frozen=True)
class TreesMember:
    """target: what the trees say; over turns on shared cores where is_over."""

    label: str
    target: str
    is_over: bool
    trees: Trees


@dataclass(frozen=True)
class FittedTrees(Serializable):
    """learner: as in the settings. described: what features are made from. columns: (k,) those that trees ask
    about. unknown: (k,) what stands there for an unknown number. limits: (2,) log seconds alone between which
    seconds are believed."""

    learner: str
    described: BagFeatures
    columns: np.ndarray
    unknown: np.ndarray
    members: tuple[TreesMember, ...]
    limits: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(member.label for member in self.members)

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns."""
        x, alone = self.features(rows), self.described.log_solo.ravel()[rows.target]
        turns = np.zeros(len(rows))
        if any(member.is_over for member in self.members):
            turns = cpu_sharing_log_slowdown(rows, cell_table)
        out = np.empty((len(self.members), len(rows)))
        for at, member in enumerate(self.members):
            over = alone + turns if member.is_over else alone
            near = np.clip(over, *self.limits) if member.target == "extra" else over
            scale = float(self.described.time_scale)
            out[at] = log_slowdown_of(member.trees.value(x), near, member.target, scale)
            if member.is_over:
                out[at] += turns
        return out

    def features(self, rows: SlowdownRows) -> np.ndarray:
        """Make the (n, k) features of rows."""
        x = self.described.rows(*_asked(rows, *self.described.log_solo.shape))[:, self.columns]
        return np.where(np.isnan(x), self.unknown, x)


@dataclass(frozen=True)
class TreesLearner(Restores):
    """Trees on what is known of each application (Moolchandani et al.). settings: by default boosting, which
    steps back where there are no features, or very many. company: runs beside others on the CPU platform,
    under their own names and in seconds."""

    settings: BagSettings | None = None
    company: Runs | None = None
    name: ClassVar[str] = "trees"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "jostle.learn.learners.bags._bag_learner:FittedTrees"

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        how = self._how
        if not how.has_rules:
            return (TARGETS[how.target],)
        if self.settings is None and campaign.runs.workload_features is None:
            return ()  # of names alone effects and forms tell more
        if self.settings is None and len(self._described(campaign).columns) > MOST_COLUMNS:
            return ()
        own = [TARGETS[target] for target in ("slowdown", "extra")]
        if how.target == "runtime":
            own.append(TARGETS["runtime"])
        return (*own, *([OVER_TURNS] if campaign.whole.cell_table.takes_turns else []))

    @property
    def _how(self) -> BagSettings:
        return self.settings or BagSettings()

    def _described(self, campaign: TrainingRuns) -> BagFeatures:
        names, alone, cpu, fairness = campaign.names, campaign.log_solo, -1, {}
        if self._how.cpu_platform is not None:
            cpu = names[1].index(self._how.cpu_platform)
        if self.company is not None:
            seconds = alone[cpu] + np.log(campaign.common.usual_seconds)
            fairness = fairness_of(self.company, names, cpu, seconds)
        groups, side = self._how.groups, {"cpu": cpu, "fairness": fairness}
        return describe(campaign.runs, names, alone, groups, **side)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedTrees:
        how, described, rows = self._how, self._described(campaign), campaign.rows
        if how.has_rules:
            rows = rows.drawn(MOST_ROWS, [seed, 19])
        x = described.rows(*_asked(rows, *campaign.size))
        columns = _columns_of(x, described.feature_groups(), how.groups)
        x = x[:, columns]
        unknown = _unknown_of(x)
        x = np.where(np.isnan(x), unknown, x)
        own, scale = described.log_solo.ravel()[rows.target], float(described.time_scale)
        log_runtime, members = own + rows.log_slowdown, []
        plain = [(label, target, False) for target, label in TARGETS.items()]
        for label, target, is_over in [*plain, (OVER_TURNS, "slowdown", True)]:
            if label in wanted:
                over = own + cpu_sharing_log_slowdown(rows, campaign.cell_table) if is_over else own
                y = target_of(log_runtime, over, target, scale)
                trees = grown(how, x, y, _weight_of(log_runtime, target), seed)
                members.append(TreesMember(label, target, is_over, trees))
        low, high = (own.min(), own.max()) if len(own) else (0.0, 0.0)
        limits = np.array([low - np.log(BEYOND), high + np.log(BEYOND)])
        return FittedTrees(how.learner, described, columns, unknown, tuple(members), limits)


def _columns_of(x: np.ndarray, groups: tuple[str, ...], chosen: tuple[str, ...]) -> np.ndarray:
    """Select features of the chosen groups that differ between rows, (k,) int64."""
    is_chosen = np.array([group in (*chosen, "always") for group in groups])
    differs = np.array([len(np.unique(c[~np.isnan(c)])) > 1 for c in x.T], bool)
    differs |= np.isnan(x).any(0) & ~np.isnan(x).all(0)
    places = np.flatnonzero(is_chosen & differs)
    # A tree of nothing to ask about is the mean; one constant column keeps the shapes whole.
    return places if len(places) else np.flatnonzero(is_chosen)[:1]


def _unknown_of(x: np.ndarray) -> np.ndarray:
    """Return a number under all known ones of each feature, (k,)."""
    low = np.nanmin(np.where(np.isnan(x), np.inf, x), axis=0, initial=np.inf)
    low = np.where(np.isfinite(low), low, 0.0)
    return low - 1.0 - np.abs(low)


def _weight_of(log_runtime: np.ndarray, target: str) -> np.ndarray:
    """Weigh rows (n,), of mean 1: errors of seconds by the inverse square of the runtime, since reported
    errors are relative; the paper's own target unweighted, as in the paper."""
    weight = np.exp(-2 * log_runtime) if target == "extra" else np.ones(len(log_runtime))
    return weight / weight.mean() if len(weight) else weight


def _asked(
    rows: SlowdownRows, platforms: int, workloads: int
) -> tuple[Colocations, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Make co-locations of rows in the campaign's codes, with these codes."""
    order = np.argsort(rows.row, kind="stable")
    codes = rows.target % workloads, rows.target // workloads, rows.corunner[order] % workloads
    offsets = np.concatenate([[0], np.cumsum(rows.degree)])
    names = tuple(f"{n:09d}" for n in range(workloads)), tuple(f"{n:09d}" for n in range(platforms))
    return Colocations(*names, codes[0], codes[1], offsets, codes[2]), codes
