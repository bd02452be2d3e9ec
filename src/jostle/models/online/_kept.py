"""The runs that a model keeps to learn more later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.methods import KeptRuns

if TYPE_CHECKING:
    from jostle.runs import Runs


@dataclass(frozen=True, eq=False)
class Kept:
    """learned: a sample of the runs that a model has learned from, or all of them where `is_whole`, for a
    method that is fitted to them again. calibration: those that its bounds were calibrated on, in the order
    of its scores."""

    learned: KeptRuns
    calibration: KeptRuns
    is_whole: bool = False

    @classmethod
    def of(cls, learned: Runs, calibration: Runs, by: str, seed: int) -> Kept:
        return cls(KeptRuns.of(learned, by).sampled(seed), KeptRuns.of(calibration, by))

    @classmethod
    def all_of(cls, learned: Runs, calibration: Runs, by: str) -> Kept:
        return cls(KeptRuns.of(learned, by), KeptRuns.of(calibration, by), is_whole=True)

    def with_more(self, learned: KeptRuns, calibration: KeptRuns, seed: int, most: int) -> Kept:
        """After an update that learned some runs and calibrated on others, of which the last `most` of each
        number of co-runners stay."""
        more = self.learned.joined(learned)
        more = more if self.is_whole else more.sampled(seed)
        return replace(
            self, learned=more, calibration=_last(self.calibration.joined(calibration), most)
        )

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays, document = {}, {}
        for name in ("learned", "calibration"):
            found, document[name] = getattr(self, name).to_arrays()
            arrays |= {f"{name}.{key}": value for key, value in found.items()}
        # The features of both are the same.
        document["calibration"]["features"] = {"workload": None, "platform": None}
        if self.is_whole:
            document["is_whole"] = True
        return arrays, document

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> Kept:
        def part(name: str) -> KeptRuns:
            mine = {
                key.removeprefix(f"{name}."): value
                for key, value in arrays.items()
                if key.startswith(f"{name}.")
            }
            return KeptRuns.from_arrays(mine, document[name])

        return cls(part("learned"), part("calibration"), bool(document.get("is_whole", False)))


def _last(runs: KeptRuns, most: int) -> KeptRuns:
    """At most so many of each number of co-runners, the last ones, and no part of a unit but the whole."""
    degree, unit = runs.colocations.number_of_corunners, runs.unit
    late = np.zeros(len(runs), bool)
    for d in np.unique(degree).tolist():
        at = np.flatnonzero(degree == d)
        late[at[:-most]] = True
    if not late.any():
        return runs
    return runs.take(np.flatnonzero(~np.isin(unit, unit[late])))
