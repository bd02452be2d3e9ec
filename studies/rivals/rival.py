"""What rivals have in common: they learn from runs alone, are fitted and predict, but are never saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from jostle.data import Colocations, Runs
from jostle.errors import NotEnoughRuns
from jostle.learn import Data, Prepared


class Rival:
    """A method that learns from runs and takes none of them as inputs."""

    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data, data.runs)


class RivalAnswers(ABC):
    """What a rival has learned."""

    @abstractmethod
    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where there is no answer."""


def alone(runs: Runs) -> Runs:
    """The runs without co-runners. Raises NotEnoughRuns where there are none."""
    inside = runs.colocations.number_of_corunners == 0
    if not inside.any():
        raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
    return runs.take(inside)
