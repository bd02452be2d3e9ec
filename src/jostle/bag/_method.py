"""The method: run time of a bag of applications from features of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jostle.bag._settings import BagSettings
from jostle.methods import Data, Prepared, Restores, first_solo_runs

if TYPE_CHECKING:
    from jostle.bag._fitted import FittedBag
    from jostle.progress import Progress


@dataclass(frozen=True)
class Bag(BagSettings, Restores):
    """Run time of a bag of applications from features of each, by trees (Moolchandani et al.)."""

    name: ClassVar[str] = "bag"
    fitted: ClassVar[str] = "jostle.bag._fitted:FittedBag"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fits_again: ClassVar[bool] = True

    def prepare(self, data: Data) -> Prepared:
        """The runs of the data. Those on the CPU platform are inputs: features are made of them, bounds are
        not. Answers are relative to the runtime alone, so one such run of each is required."""
        runs = data.runs_in_memory
        c = runs.colocations
        inputs = None
        if self.cpu_platform in c.platform_names:
            inputs = c.platform == c.platform_names.index(self.cpu_platform)
        alone = first_solo_runs(runs)
        return Prepared.of(data, runs, inputs=inputs, required=alone, calibrate_by="together")

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedBag:
        """Learn from all runs with co-runners; those alone give the solo times.

        Raises NotEnoughRuns, UnknownName for a cpu_platform without runs, and MissingExtra where
        scikit-learn is not installed.
        """
        from jostle.bag._fit import fit

        return fit(self, prepared.together(), seed, progress)
