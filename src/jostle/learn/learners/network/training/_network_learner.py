"""The network alone, without rules beside it, as a base learner."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.contract._method_registry import Restores
from jostle.learn.ensemble._folds import is_large
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network._network_method import Factorization
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows
from jostle.learn.training._training_data import TrainingRuns

LABEL = "network"


@dataclass(frozen=True, eq=False)
class FittedNetwork(Serializable):
    """network: in the campaign's names."""

    network: FittedFactorization
    labels: tuple[str, ...] = (LABEL,)

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (1, n) log slowdowns."""
        return self.network.log_slowdown(rows)[None]

    def log_solo(self) -> np.ndarray:
        """Predict (platforms, workloads) log seconds alone, NaN where runs connect nothing."""
        p, w = len(self.network.platform_names), len(self.network.workload_names)
        workload, platform = np.tile(np.arange(w), p), np.repeat(np.arange(p), w)
        return self.network.log_solo(workload, platform).reshape(p, w)


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
        return () if is_small_log else (LABEL,)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedNetwork:
        from jostle.learn.learners.network._fit_network import network_of

        # As many as the whole campaign has, so that its folds share a compiled program.
        whole = campaign.whole
        beside = (whole if 2 * len(campaign) > len(whole) else campaign).degree > 0
        sizes = int((~beside).sum()), int(beside.sum())
        return FittedNetwork(
            network_of(Factorization(), campaign.runs, campaign.names, sizes, seed)
        )
