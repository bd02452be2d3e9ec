"""`jostle evaluate pairs`: sets of workloads never measured together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jostle._report import Report, Table, percent
from jostle.evaluate._fields import (
    DatasetFolder,
    FirstSeed,
    Methods,
    Seeds,
    listed,
)
from jostle.progress import Progress, no_progress


@dataclass(frozen=True)
class PairsStudy:
    """Error of the slowdown of sets never measured together, for every method that fits.

    Both sides of a pair and all its repeats are held out together; all runs alone are known.
    """

    name: ClassVar[str] = "pairs"

    dataset: DatasetFolder
    observed: Annotated[float, "Share of the sets of workloads to learn from."]
    platform: Annotated[
        str | None, "Only sets on this platform are drawn; the others are all observed."
    ] = None
    target: Annotated[str, "slowdown for steady work, extra for finite jobs."] = "slowdown"
    methods: Methods = None
    bounds: Annotated[bool, "Fit once more to measure coverage."] = True
    seeds: Seeds = 5
    seed: FirstSeed = 0

    def run(self, *, progress: Progress = no_progress) -> Report:
        """Raises UsageError, UnknownName, NotEnoughRuns and what reading raises."""
        from jostle.evaluate._contract import document
        from jostle.evaluate._sets import evaluate_pairs, pair_methods
        from jostle.runs import Dataset, read_runs

        chosen = pair_methods(self.target, listed(self.methods))
        runs = read_runs(self.dataset)
        version = Dataset(self.dataset).version()
        evaluation = evaluate_pairs(
            runs,
            self.observed,
            chosen,
            seeds=range(self.seed, self.seed + self.seeds),
            platform=self.platform,
            bounds=self.bounds,
            progress=progress,
        )
        data = {
            "dataset": str(self.dataset),
            "version": version,
            "observed": self.observed,
            "platform": self.platform,
            "origins": [vars(origin) for origin in runs.origins],
        }
        return Report(
            document(
                self,
                data,
                self.seed,
                settings={"target": self.target, "seeds": self.seeds},
                metrics=evaluation.metrics,
                notes=evaluation.notes,
            ),
            [self._table(evaluation.metrics, list(chosen), runs.colocations.platform_names)],
            notes=[f"left out: {note}" for note in evaluation.notes],
        )

    def _table(self, m: dict[str, float], methods: list[str], platforms: tuple[str, ...]) -> Table:
        columns = {"MAPE": "slowdown_mape_{}_ratio", "± draws": "slowdown_mape_sd_{}_ratio"}
        if self.platform is None and len(platforms) > 1:
            columns |= {place: f"slowdown_mape_{{}}_{place}_ratio" for place in platforms}
        if self.bounds:
            columns |= {
                "coverage 90": "coverage_90_{}_ratio",
                "± s.e.": "coverage_90_standard_error_{}_ratio",
                "margin 90": "margin_90_{}_ratio",
            }
        rows = [
            [name, *(percent(m.get(key.format(name), float("nan"))) for key in columns.values())]
            for name in methods
            if f"slowdown_mape_{name}_ratio" in m
        ]
        return Table(["", *columns], rows, range(1, len(columns) + 1))
