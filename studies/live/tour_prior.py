"""What the sample that comes with Jostle is worth as prior knowledge on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jostle
from jostle.errors import UsageError
from jostle.evaluate import error_measures
from jostle.extend import Positional
from jostle.tour import HELD_OUT, hold_out_sets, prior_for, tour_method
from studies._runner import Measures, TableStudy

SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class TourPrior(TableStudy):
    """What the sample that comes with Jostle is worth as prior knowledge on this machine.

    After `jostle tour FOLDER`: holds a quarter of the sets out, learns from all and from some of the rest,
    with the sample and without, and gives the mean error on what was held out.
    """

    seeds: Annotated[int, "Draws."] = 6
    dataset: Annotated[Path, "FOLDER/dataset of the tour.", Positional()] = Path(
        "jostle-tour/dataset"
    )

    name: ClassVar[str] = "tour_prior"
    places: ClassVar[Sequence[str]] = ("share of the sets",)
    columns: ClassVar[Mapping[str, str]] = {
        "runs": ".0f",
        "without": ".3f",
        "with the sample": ".3f",
        "better in": ".0%",
    }

    def rows(self) -> list[tuple[Any, ...]]:
        return [(share,) for share in SHARES]

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        runs = jostle.read_runs(self.dataset).ok()
        known = prior_for(runs)
        if known is None:
            raise UsageError("the sample has other workloads of the same names")
        held, rest = hold_out_sets(runs, HELD_OUT, seed)
        test, learned = runs.take(held), runs.take(rest)
        if row[0] < 1:
            learned = learned.take(hold_out_sets(learned, 1 - row[0], seed + 100)[1])
        errors = []
        for prior in (None, known):
            model = jostle.fit(learned, tour_method(prior is not None), seed=seed, prior=prior)
            told = error_measures(model.predict(test.colocations), test.runtime_seconds)
            errors.append(told["mape"])
        without, with_prior = errors
        return {
            "runs": len(learned),
            "without": without,
            "with the sample": with_prior,
            "better in": float(with_prior < without),
        }
