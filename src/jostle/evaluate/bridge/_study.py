"""`jostle evaluate bridge`: solvers against brute force, their speed, and forecasts against held-out runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from jostle._options import Flag, Limits
from jostle._report import Report, Table
from jostle.errors import UsageError
from jostle.evaluate.study._contract import document
from jostle.progress import Progress

MADE = ("phases-1-7", "phases-5-7", "phases-15-7", "drift-7")
PUBLISHED = tuple(f"nmpc-{between}" for between in range(5))


@dataclass(frozen=True)
class BridgeStudy:
    """Forecasts of resource use on runs they have not seen, and the solvers behind them.

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
    clock: Annotated[
        str | None,
        "Of recorded traces: the counter of progress.  none: made data without its marks.",
    ] = None
    clock_kind: Annotated[Literal["work", "beats"], "How the clock tells progress."] = "work"
    clock_marks: Annotated[
        tuple[float, ...],
        "What the clock has reached where a phase begins; repeat for more.",
        Flag("--mark"),
    ] = ()
    clock_period: Annotated[
        int | None, "Of beats: phases after which the program begins anew.", Flag("--period")
    ] = None
    windows: Annotated[
        bool,
        "Of recorded traces: members side by side are the cores of one run; also scores the "
        "multi-core graphs.",
    ] = False
    ended: Annotated[
        float, "The share of runs that may have ended by the last snapshot.", Limits(0, 0.99)
    ] = 0.0
    runs: Annotated[int, "Of made data: runs.", Limits(least=16)] = 400
    splits: Annotated[int, "Of the runs, at random.", Limits(least=1)] = 3
    speed: Annotated[bool, "Also time the solvers."] = True
    figures: Annotated[Path | None, "A folder for the paper's Figures 6, 7, 10 and 11."] = None
    tables: Annotated[bool, "Also the paper's Tables II and III."] = False
    seed: Annotated[int, "Of made data and splits."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Scores of every method on every data set, then the solvers. Raises UsageError for unknown data."""
        from jostle.evaluate.bridge._figures import draw_convergence, draw_predicted
        from jostle.evaluate.bridge._oracle import brute_force_errors
        from jostle.evaluate.bridge._scores import score
        from jostle.evaluate.bridge._speed import speed_metrics
        from jostle.evaluate.bridge._splits import leaks_of_design
        from jostle.evaluate.bridge._tables import (
            accuracy_metrics,
            reliability_table,
            score_document,
            score_table,
            table_three,
            table_two,
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
        metrics["brute_force_max_abs_error"] = max(brute_force_errors(self.seed).values())
        if self.speed:
            metrics |= speed_metrics(seed=self.seed)
        papers: dict[str, Any] = {}
        if self.tables:
            papers["table_3"] = table_three(seed=self.seed)
            if self.published is not None:
                papers["table_2"] = table_two(self.published)
        drawn: list[Path] = []
        if self.figures is not None:
            for draw in (draw_convergence, draw_predicted):
                drawn += draw(self.figures, published=self.published, seed=self.seed)
        found = document(
            self,
            list(self.data),
            self.seed,
            metrics=metrics,
            scores=[score_document(one) for one in scores],
            **papers,
            figures=[str(path) for path in drawn],
        )
        shown: list[Table | str] = [score_table(one) for one in scores]
        shown.append(reliability_table(scores))
        plain = [
            [k, f"{v:.3g}"]
            for k, v in metrics.items()
            if not k.startswith(("w2_", "crps_", "brier_"))
        ]
        shown.append(Table(["metric", "value"], plain, right=(1,)))
        if "table_2" in papers:
            shown += _second(papers["table_2"])
        if "table_3" in papers:
            shown.append(_third(papers["table_3"]))
        return Report(found, shown, drawn)

    def _splits(self, name: str) -> tuple[str, Any]:
        """(name, splits) of one of the data sets."""
        import jostle
        from jostle.evaluate.bridge._splits import made_splits, published_splits, trace_splits
        from jostle.traces import Windows, read_traces

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
            return name, made_splits(name, runs=self.runs, clock=self.clock != "none", **shared)
        method = jostle.Bridge(
            components=self.components or None,
            clock=None if self.clock == "none" else self.clock,
            clock_kind=self.clock_kind,
            clock_marks=self.clock_marks,
            clock_period=self.clock_period,
        )
        traces = read_traces(folder)
        return folder.resolve().name, trace_splits(
            Windows.of(traces) if self.windows else traces,
            self.snapshots,
            method=method,
            graphs=("barycentric", "series_parallel") if self.windows else (),
            **shared,
        )


def _second(table: dict[str, Any]) -> list[Table]:
    columns = ["inside a cycle", *(f"{time:.2f}" for time in table["times_cycles"])]
    return [
        Table(
            columns,
            [
                [str(count), *("=" if value is None else f"{value:.4f}" for value in row)]
                for count, row in zip(table["between"], table[kind], strict=True)
            ],
            right=range(1, len(columns)),
            title=f"Table II, {kind} settings: W2 in the paper's units; = a training snapshot",
        )
        for kind in ("paper", "default")
    ]


def _third(table: dict[str, Any]) -> Table:
    rows = [
        [graph, f"core {core}", *(f"{value:.3f}" for value in row)]
        for graph, cores in table.items()
        for core, row in enumerate(cores)
    ]
    columns = ["graph", "", *(f"time {i + 1}" for i in range(len(rows[0]) - 2))]
    title = "Table III, made four-core traces: W2 in scaled units"
    return Table(columns, rows, range(2, len(columns)), title)
