"""Trees on features of a bag, and turns on shared cores, as an expert."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle._tensors import Serializable
from jostle.bag._features import BagFeatures, describe
from jostle.bag._fit import unknown_of, weight_of
from jostle.bag._rules import fit_turns, turns_of
from jostle.bag._settings import GROUPS
from jostle.bag._target import log_slowdown_of, target_of
from jostle.ensemble import CanonicalRuns
from jostle.methods import Restores
from jostle.rules import Boosting, Forest, Ground, Level, SlowdownRows, grow_forest
from jostle.runs import Colocations

TURNS, OVER_TURNS = "turns on shared cores", "trees over turns"
TREES = {"trees of factors": "slowdown", "trees of seconds": "extra"}
MOST_ROWS = 8_000  # that trees are grown on
MOST_COLUMNS = 400  # of features, which trees look at one by one
TREE_SETTINGS = Boosting(trees=200, depth=3, rate=0.05)
BEYOND = 4.0  # times what was seen, to which seconds are believed of shorter and longer workloads


@dataclass(frozen=True)
class TreesMember:
    """target: what the trees say; over turns where is_over."""

    label: str
    target: str
    is_over: bool
    trees: Forest


@dataclass(frozen=True)
class FittedTrees(Serializable):
    """described: what features are made from. columns: (k,) those that trees ask about. unknown: (k,) what
    stands there for an unknown number. turns: how much of the time for which cores are wanted at once is
    waited, None where no run tells who is on a core. limits: (2,) log seconds alone between which seconds are
    believed."""

    described: BagFeatures
    columns: np.ndarray
    unknown: np.ndarray
    members: tuple[TreesMember, ...]
    turns: Level | None
    limits: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        own = tuple(member.label for member in self.members)
        return own if self.turns is None else (*own, TURNS)

    def log_slowdowns(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        """(k, n)."""
        alone, x = self.features(rows)
        turns = np.zeros(len(rows)) if self.turns is None else self.by_turns(rows, ground)
        out = []
        for member in self.members:
            over = alone + turns if member.is_over else alone
            near = np.clip(over, *self.limits) if member.target == "extra" else over
            scale = float(self.described.time_scale)
            more = log_slowdown_of(member.trees.value(x), near, member.target, scale)
            out.append(more + turns if member.is_over else more)
        return np.stack([*out, turns] if self.turns is not None else out)

    def by_turns(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        """(n,) log slowdowns."""
        assert self.turns is not None
        return turns_of(self.turns, rows, ground, np.nan_to_num(self.described.core_share).ravel())

    def features(self, rows: SlowdownRows) -> tuple[np.ndarray, np.ndarray]:
        """((n,) log seconds alone, (n, k))."""
        colocations, codes = _asked(rows, *self.described.log_solo.shape)
        x = self.described.rows(colocations, codes)[:, self.columns]
        alone = self.described.log_solo[codes[1], codes[0]]
        return alone, np.where(np.isnan(x), self.unknown, x)


@dataclass(frozen=True)
class TreesExpert(Restores):
    """Boosted trees on what is known of each application (Moolchandani et al.), and turns on shared cores."""

    name: ClassVar[str] = "trees"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "jostle.bag._expert:FittedTrees"

    def labels(self, campaign: CanonicalRuns) -> tuple[str, ...]:
        described = describe(campaign.runs, campaign.names, campaign.log_alone, None, GROUPS)
        if len(described.columns) > MOST_COLUMNS:
            return ()
        return (*TREES, *((OVER_TURNS, TURNS) if described.has_core_share else ()))

    def fit(
        self, campaign: CanonicalRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedTrees:
        described = describe(campaign.runs, campaign.names, campaign.log_alone, None, GROUPS)
        rows = campaign.rows.drawn(MOST_ROWS, [seed, 19])
        colocations, codes = _asked(rows, *campaign.size)
        every = described.rows(colocations, codes)
        differs = np.array([len(np.unique(c[~np.isnan(c)])) > 1 for c in every.T], bool)
        differs |= np.isnan(every).any(0) & ~np.isnan(every).all(0)
        columns = np.flatnonzero(differs) if differs.any() else np.zeros(1, np.int64)
        unknown = unknown_of(every[:, columns])
        x = np.where(np.isnan(every[:, columns]), unknown, every[:, columns])
        own = described.log_solo[codes[1], codes[0]]
        ground, share = campaign.ground, np.nan_to_num(described.core_share).ravel()
        turns, by_turns = None, np.zeros(len(rows))
        if {OVER_TURNS, TURNS} & set(wanted):
            turns = fit_turns(rows, ground, share)
            by_turns = turns_of(turns, rows, ground, share)
        members = []
        targets = {name: (target, False) for name, target in TREES.items()}
        for label, (target, is_over) in (targets | {OVER_TURNS: ("slowdown", True)}).items():
            if label in wanted:
                log_runtime = own + rows.log_slowdown
                y = target_of(
                    *(log_runtime, own + by_turns if is_over else own),
                    *(target, float(described.time_scale)),
                )
                trees = grow_forest(x, y, weight_of(log_runtime, target), TREE_SETTINGS, seed)
                members.append(TreesMember(label, target, is_over, trees))
        low, high = (own.min(), own.max()) if len(own) else (0.0, 0.0)
        limits = np.array([low - np.log(BEYOND), high + np.log(BEYOND)])
        return FittedTrees(described, columns, unknown, tuple(members), turns, limits)


def _asked(
    rows: SlowdownRows, platforms: int, workloads: int
) -> tuple[Colocations, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows in the campaign's codes as co-locations, with their codes."""
    order = np.argsort(rows.row, kind="stable")
    codes = rows.target % workloads, rows.target // workloads, rows.corunner[order] % workloads
    offsets = np.concatenate([[0], np.cumsum(rows.degree)])
    names = tuple(f"{n:09d}" for n in range(workloads)), tuple(f"{n:09d}" for n in range(platforms))
    return Colocations(*names, codes[0], codes[1], offsets, codes[2]), codes
