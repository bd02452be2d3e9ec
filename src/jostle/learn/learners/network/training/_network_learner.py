"""The network alone, without rules beside it, as a base learner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.ensemble._folds import is_large
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network._network_method import Factorization
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows
from jostle.learn.training._training_data import TrainingRuns

# SLOWDOWN is over the time alone that was measured; RUNTIME is the network's own, which one run alone that
# scatters does not move.
SLOWDOWN, RUNTIME = "network", "network of runtimes"
# Added to a seed, so that a network starts elsewhere: of very many runs two are averaged.
ANOTHER = 1000


@dataclass(frozen=True, eq=False)
class FittedNetwork(Serializable):
    """networks: in the campaign's names; the answer is the mean of their logs. log_unit: () of the extra time
    that counts as 1. labels: of the answers."""

    networks: tuple[FittedFactorization, ...]
    log_unit: np.ndarray
    labels: tuple[str, ...]

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns."""
        slowdown = np.mean([one.log_slowdown(rows) for one in self.networks], axis=0)
        if RUNTIME not in self.labels:
            return slowdown[None]
        w = cell_table.workloads
        alone = self._alone(rows.target % w, rows.target // w)
        runtime = alone + slowdown - (self.log_unit - np.log(rows.scale))
        told = {SLOWDOWN: slowdown, RUNTIME: np.where(np.isfinite(runtime), runtime, slowdown)}
        return np.stack([told[label] for label in self.labels])

    def log_solo(self) -> np.ndarray:
        """Predict (platforms, workloads) log seconds alone, NaN where runs connect nothing."""
        network = self.networks[0]
        p, w = len(network.platform_names), len(network.workload_names)
        workload, platform = np.tile(np.arange(w), p), np.repeat(np.arange(p), w)
        return self._alone(workload, platform).reshape(p, w)

    def _alone(self, workload: np.ndarray, platform: np.ndarray) -> np.ndarray:
        return np.mean([one.log_solo(workload, platform) for one in self.networks], axis=0)

    def in_unit(self, seconds: float) -> FittedNetwork:
        """Answer rows in which 1 stands for so many extra seconds."""
        return replace(self, log_unit=np.log(np.array(seconds)))


@dataclass(frozen=True)
class NetworkLearner(Restores):
    """Embeddings of names by towers over their features (Pitot, MLSys 2025)."""

    name: ClassVar[str] = "network"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    predicts_solo: ClassVar[bool] = True
    learns_from_all: ClassVar[bool] = True
    fitted: ClassVar[str] = "jostle.learn.learners.network.training._network_learner:FittedNetwork"

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        """Name the answers; none of a log that is not large: random effects tell as much, at once."""
        is_small_log = campaign.time_block is not None and not is_large(campaign)
        return () if is_small_log else (SLOWDOWN, RUNTIME)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedNetwork:
        from jostle.learn.learners.network._fit_network import network_of

        # As many as the whole campaign has, so that its folds share a compiled program.
        whole = campaign.whole
        beside = (whole if 2 * len(campaign) > len(whole) else campaign).degree > 0
        sizes = int((~beside).sum()), int(beside.sum())
        seeds = (seed, seed + ANOTHER) if best and is_large(whole) else (seed,)
        about = campaign.runs, campaign.names, sizes
        networks = tuple(network_of(Factorization(), *about, one) for one in seeds)
        labels = tuple(wanted) or (SLOWDOWN,)
        return FittedNetwork(networks, np.zeros(()), labels).in_unit(campaign.unit_seconds)
