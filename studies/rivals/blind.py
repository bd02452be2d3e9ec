"""Methods kept from seeing co-runners. Source: Pitot (MLSys 2025), Sec. 5.2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle.errors import UsageError
from jostle.learn import learn
from studies.rivals.rival import Rival, alone

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.conformal import Uncertainty
    from jostle.data import Colocations, Runs
    from jostle.learn import Prepared

TREATMENTS = ("discard", "ignore")


@dataclass(frozen=True)
class Blind(Rival):
    """Any method kept from seeing co-runners. treatment: `discard` learns from the runs alone only,
    `ignore` takes every run for one alone. Either answers as if nothing ran beside."""

    method: Any
    treatment: str

    name: ClassVar[str] = "blind"

    def __post_init__(self) -> None:
        if self.treatment not in TREATMENTS:
            raise UsageError(
                f"unknown treatment {self.treatment!r}", fix=f"One of {', '.join(TREATMENTS)}."
            )

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> _BlindAnswers:
        """Raises NotEnoughRuns where `discard` leaves nothing."""
        parts = (prepared.runs, prepared.validation)
        if self.treatment == "discard":
            parts = tuple(alone(part) for part in parts)
        runs, validation = (without_corunners(part) for part in parts)
        return _BlindAnswers(
            learn(self.method, runs, validation=validation, seed=seed, progress=progress)
        )


@dataclass(frozen=True, eq=False)
class _BlindAnswers:
    """Asks what was fitted for the same co-locations without their co-runners."""

    inner: Any

    def predict(self, asked: Colocations) -> np.ndarray:
        return self.inner.predict(asked.alone())

    def uncertainty(self, asked: Colocations) -> Uncertainty:
        from jostle.conformal import uncertainty_of

        return uncertainty_of(self.inner, asked.alone())


def without_corunners(runs: Runs) -> Runs:
    """The same runs with their co-runners taken off the record."""
    import pyarrow as pa

    from jostle.data import Runs

    table = runs.table
    place = table.column_names.index("corunners")
    field = table.schema.field(place)
    empty = pa.array([[]] * len(table), field.type)
    table = table.set_column(place, field, empty)
    return Runs(table, runs.workload_features, runs.platform_features, checked=True)
