"""Forecasts against held-out runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from jostle._base.option_fields import Flag, Limits
from jostle._base.progress import Progress
from jostle._base.report import Report
from jostle.errors import UsageError
from studies.contract import report_of

MADE = ("stages-7", "speeds-7", "smooth-7", "heavy-7")
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
        "FAMILY-SNAPSHOTS, nmpc-BETWEEN, or a folder with recorded traces; repeat for more.",
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
        from studies.bridge.tables import reliability_table, score_table

        scores = [score(*self._splits(name), progress) for name in self.data]
        tables = [*(score_table(one) for one in scores), reliability_table(scores)]
        return report_of(self, list(self.data), self.seed, tables)

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
