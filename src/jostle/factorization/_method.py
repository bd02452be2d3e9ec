"""The method: matrix factorization with interference, learned from runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jostle.factorization._settings import FactorizationSettings
from jostle.methods import Data, Prepared, Restores, first_runs_of_names

if TYPE_CHECKING:
    import numpy as np

    from jostle.factorization._fitted import FittedFactorization
    from jostle.methods import KeptRuns
    from jostle.progress import Progress
    from jostle.runs import Colocations, Runs

FEW_UNITS = 8  # windows of a name, of which all might be held out


@dataclass(frozen=True)
class Factorization(FactorizationSettings, Restores):
    """Matrix factorization of log runtime with interference (Pitot, MLSys 2025)."""

    name: ClassVar[str] = "factorization"
    fitted: ClassVar[str] = "jostle.factorization._fitted:FittedFactorization"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    @property
    def offers_choice(self) -> bool:
        """Whether there are quantile heads to choose from; the spread chooses its shape itself."""
        return bool(self.quantiles)

    def prepare(self, data: Data) -> Prepared:
        """The runs of the data; one run of every name that was hardly measured is not held out."""
        return Prepared.of(data, required=first_runs_of_names(data.runs, FEW_UNITS))

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedFactorization:
        """Learn from the runs; validation picks the checkpoint and tells how errors spread.

        Raises NotEnoughRuns.
        """
        return self._fit(prepared, None, seed, progress)

    def fit_with_prior(
        self, prepared: Prepared, prior: Runs, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedFactorization:
        """As fit; prior: runs measured elsewhere. Every second member learns without them."""
        return self._fit(prepared, prior, seed, progress)

    def _fit(
        self, prepared: Prepared, prior: Runs | None, seed: int, progress: Progress | None
    ) -> FittedFactorization:
        from jostle.factorization._fit import fit
        from jostle.factorization.online._few import without_few
        from jostle.methods import KeptRuns

        apart = None if prior is not None else without_few(prepared.runs, prepared.validation)
        if apart is None:
            return fit(self, prepared.runs, prepared.validation, seed, progress, prior)
        runs, validation, few = apart
        fitted = fit(self, runs, validation, seed, progress)
        sample = KeptRuns.of(runs, "window").sampled(seed)
        return self.learned(fitted, KeptRuns.of(few, "window"), sample, seed=seed)

    @staticmethod
    def learned(
        fitted: FittedFactorization,
        runs: KeptRuns,
        kept: KeptRuns,
        *,
        seed: int = 0,
        changed: np.ndarray | None = None,
    ) -> FittedFactorization:
        """See jostle.methods.LearnsOnline."""
        from jostle.factorization.online._learn import learn_online

        return learn_online(fitted, runs, kept, seed, changed)

    @staticmethod
    def folded_again(
        fitted: FittedFactorization, kept: KeptRuns, *, seed: int = 0
    ) -> list[tuple[FittedFactorization, KeptRuns]]:
        """See jostle.methods.LearnsOnline."""
        from jostle.factorization.online._folded import folded_again

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
        """See jostle.methods.SuggestsRuns."""
        from jostle.factorization.online._suggest import suggested

        return suggested(fitted, kept, candidates, asked, most, seed)
