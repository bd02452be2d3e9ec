"""The method: matrix factorization with interference, learned from runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.learn.contract._data import Data
from jostle.learn.contract._method_registry import Restores
from jostle.learn.contract._prepared import Prepared
from jostle.learn.learners.network._network_settings import FactorizationSettings

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Colocations, Runs
    from jostle.learn.contract._coded_runs import KeptRuns
    from jostle.learn.learners.network._fitted_network import FittedFactorization

FEW_UNITS = 8  # windows of a name, of which all might be held out


@dataclass(frozen=True)
class Factorization(FactorizationSettings, Restores):
    """Matrix factorization of log runtime with interference (Pitot, MLSys 2025)."""

    name: ClassVar[str] = "factorization"
    fitted: ClassVar[str] = "jostle.learn.learners.network._fitted_network:FittedFactorization"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    @property
    def offers_choice(self) -> bool:
        """True if there are quantile heads to choose from; the spread chooses its shape itself."""
        return bool(self.quantiles)

    def prepare(self, data: Data) -> Prepared:
        """Prepare the runs; one run of every name that was hardly measured is not held out."""
        return Prepared.of(data, required=_first_runs_of_names(data.runs))

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedFactorization:
        """Learn from the runs; validation picks the checkpoint and tells how errors spread.

        Raises NotEnoughRuns.
        """
        from jostle.learn.learners.network._fit_network import fit

        return fit(self, prepared.runs, prepared.validation, seed, progress)

    def fit_with_prior(
        self, prepared: Prepared, prior: Runs, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedFactorization:
        """Fit to runs from elsewhere as well.

        prior: runs measured elsewhere. Every second member learns without them.
        """
        from jostle.learn.learners.network._fit_network import fit

        return fit(self, prepared.runs, prepared.validation, seed, progress, prior)

    @staticmethod
    def learned(
        fitted: FittedFactorization,
        runs: KeptRuns,
        kept: KeptRuns,
        *,
        seed: int = 0,
        changed: np.ndarray | None = None,
    ) -> FittedFactorization:
        """See jostle.learn.Method."""
        from jostle.learn.learners.network.online._learn_names import learn_online

        return learn_online(fitted, runs, kept, seed, changed)

    @staticmethod
    def folded_again(
        fitted: FittedFactorization, kept: KeptRuns, *, seed: int = 0
    ) -> list[tuple[FittedFactorization, KeptRuns]]:
        """See jostle.learn.Method."""
        from jostle.learn.learners.network.online._folded import folded_again

        return folded_again(fitted, kept, seed)

    @staticmethod
    def suggested(
        fitted: FittedFactorization,
        kept: KeptRuns,
        candidates: Colocations,
        asked: Colocations,
        *,
        most: int,
        seed: int = 0,
    ) -> tuple[float, list[tuple[int, float]]]:
        """See jostle.learn.Method."""
        from jostle.learn.learners.network.online._greedy_design import suggested

        return suggested(fitted, kept, candidates, asked, most, seed)


def _first_runs_of_names(runs: Runs) -> np.ndarray:
    """Mark, (n,) bool, one run of each workload and platform whose runs are in fewer than FEW_UNITS windows:
    the first alone, or the first, without which nothing could be answered."""
    c, marked = runs.colocations, np.zeros(len(runs), bool)
    ok = np.flatnonzero(runs.is_ok)
    first_alone = ok[np.argsort(c.number_of_corunners[ok] > 0, kind="stable")]
    unit = runs.units("window")
    for codes in (c.workload, c.platform):
        names = np.unique(np.stack([codes[ok], unit[ok]]), axis=1)[0]
        seldom = np.flatnonzero(np.bincount(names) < FEW_UNITS)
        mine = first_alone[np.isin(codes[first_alone], seldom)]
        marked[mine[np.unique(codes[mine], return_index=True)[1]]] = True
    return marked
