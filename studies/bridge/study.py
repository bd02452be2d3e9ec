"""Forecasts against held-out runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from jostle._base.option_fields import Flag, Limits
from jostle._base.progress import Progress
from jostle._base.report import Report, Table
from jostle.errors import UsageError
from studies.contract import document

MADE = ("phases-1-7", "phases-5-7", "phases-15-7", "drift-7")
PUBLISHED = tuple(f"nmpc-{between}" for between in range(5))


@dataclass(frozen=True)
class BridgeStudy:
    """Forecasts of resource use on runs they have not seen.

    Half of the runs make snapshots and forecasts, the other half says what was right; the oracle is what
    the first half measured at that time. Times that are also training snapshots are left out as leaks.
    """

    name: ClassVar[str] = "bridge"

    data: Annotated[
        tuple[str, ...],
        "phases-JITTER-SNAPSHOTS (jitter in percent), drift-SNAPSHOTS, FAMILY-SNAPSHOTS, nmpc-BETWEEN, or a "
        "folder with recorded traces; repeat for more.",
    ] = MADE
    published: Annotated[Path | None, "The folder of the published snapshots, for nmpc-…."] = None
    snapshots: Annotated[int, "Of recorded traces: times to learn from.", Limits(least=2)] = 7
    components: Annotated[
        tuple[str, ...], "Of recorded traces: a counter of the state.", Flag("--component")
    ] = ()
    ended: Annotated[
        float, "The share of runs that may have ended by the last snapshot.", Limits(0, 0.99)
    ] = 0.0
    runs: Annotated[int, "Of made data: runs.", Limits(least=16)] = 400
    splits: Annotated[int, "Of the runs, at random.", Limits(least=1)] = 3
    seed: Annotated[int, "Of made data and splits."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Scores of every method on every data set. Raises UsageError for unknown data."""
        from studies.bridge.scores import score
        from studies.bridge.splits import leaks_of_design
        from studies.bridge.tables import (
            accuracy_metrics,
            reliability_table,
            score_document,
            score_table,
        )

        metrics: dict[str, Any] = {}
        scores = []
        for name in self.data:
            label, splits = self._splits(name)
            scores.append(score(label, splits, progress))
            if self.published is not None and name in PUBLISHED:
                leaks = leaks_of_design(self.published, int(name[5:]))
                metrics[f"leaks_of_design_{name.replace('-', '_')}"] = float(len(leaks))
        metrics |= accuracy_metrics(scores)
        documents = [score_document(one) for one in scores]
        found = document(self, list(self.data), self.seed, metrics=metrics, scores=documents)
        shown: list[Table | str] = [score_table(one) for one in scores]
        return Report(found, [*shown, reliability_table(scores)])

    def _splits(self, name: str) -> tuple[str, Any]:
        """(name, splits) of one of the data sets."""
        import jostle
        from jostle.data import read_traces
        from studies.bridge.splits import made_splits, published_splits, trace_splits

        if name.startswith("nmpc-"):
            if self.published is None:
                raise UsageError(
                    "nmpc data needs the published snapshots", fix="Say where their folder is."
                )
            if name not in PUBLISHED:
                raise UsageError(f"unknown data {name!r}", fix=f"One of {', '.join(PUBLISHED)}.")
            return name, published_splits(
                self.published, int(name[5:]), splits=self.splits, seed=self.seed
            )
        shared = {"splits": self.splits, "ended": self.ended, "seed": self.seed}
        folder = Path(name)
        if not folder.is_dir():
            return name, made_splits(name, runs=self.runs, **shared)
        method = jostle.Bridge(components=self.components or None)
        traces = read_traces(folder)
        return folder.resolve().name, trace_splits(traces, self.snapshots, method=method, **shared)
