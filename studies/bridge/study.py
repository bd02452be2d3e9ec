"""Studies of the bridge: solvers against brute force, their speed, and forecasts against held-out runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._options import Flag, Limits
from jostle._report import Report, Table
from jostle.errors import UsageError
from jostle.evaluate import document
from jostle.progress import Progress

if TYPE_CHECKING:
    from studies.bridge.paper import BridgePaper

MADE = ("phases-1-7", "phases-5-7", "phases-15-7", "drift-7")
PUBLISHED = tuple(f"nmpc-{between}" for between in range(5))


@dataclass(frozen=True)
class BridgeStudy:
    """Forecasts of resource use on runs they have not seen, and the solvers behind them.

    Half of the runs make snapshots and forecasts, the other half says what was right; the oracle is what
    the first half measured at that time. Times that are also training snapshots are left out as leaks.
    With --paper every table and figure of the paper (Bondar, Gifford, Phan, Halder) instead, on one page.
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
    figures: Annotated[Path | None, "A folder for the paper's figures."] = None
    tables: Annotated[bool, "Also the paper's tables."] = False
    paper: Annotated[
        Path | None,
        "Fill this folder with every table and figure of the paper; open its index.html.",
    ] = None
    seed: Annotated[int, "Of made data and splits."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Scores of every method on every data set, then the solvers. Raises UsageError for unknown data."""
        from studies.bridge.oracle import brute_force_errors
        from studies.bridge.scores import score
        from studies.bridge.speed import speed_metrics
        from studies.bridge.splits import leaks_of_design
        from studies.bridge.tables import (
            accuracy_metrics,
            reliability_table,
            score_document,
            score_table,
        )

        if self.paper is not None:
            return self._run_paper(self.paper, progress)

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
        printed: list[Table] = []
        drawn: list[Path] = []
        if self.tables or self.figures is not None:
            paper = self._paper()
            if self.tables:
                printed, papers = paper.tables()
            if self.figures is not None:
                drawn = paper.draw(self.figures)
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
        return Report(found, [*shown, *printed], drawn)

    def _paper(self) -> BridgePaper:
        """The paper's experiments; profiles and cycle ends from recorded traces where they are the data."""
        from jostle.traces import read_traces
        from studies.bridge.experiments import ASKED, AcrossContexts, MultiCore, SingleCore
        from studies.bridge.paper import BridgePaper

        folders = [name for name in self.data if Path(name).is_dir()]
        if len(folders) > 1:
            raise UsageError(f"{len(folders)} folders of traces", fix="Name one controller's.")
        more: dict[str, Any] = {}
        if folders:
            if self.clock is None:
                raise UsageError(
                    "when control cycles end is told by a counter of phases",
                    fix="Name the counter, `clock`, and how many phases a cycle has, `period`.",
                )
            more = {
                "recorded": read_traces(folders[0]),
                "counter": self.clock,
                "period": self.clock_period or 1,
            }
        return BridgePaper(
            SingleCore.of(self.published, runs=self.runs, seed=self.seed, **more),
            MultiCore.made(self.runs, seed=self.seed),
            tuple(
                AcrossContexts.made(kind, max(self.runs // 2, 8), seed=self.seed) for kind in ASKED
            ),
        )

    def _run_paper(self, folder: Path, progress: Progress) -> Report:
        paper = self._paper()
        printed, papers = paper.tables(progress)
        drawn = paper.draw(folder)
        page = paper.write(folder, printed)
        data = {
            "single": paper.single.source,
            "cycle_ends": paper.single.ends_source,
            "multi": paper.multi.source,
            "contexts": paper.contexts[0].source,
        }
        figures = [str(path) for path in drawn]
        found = document(self, data, self.seed, page=str(page), figures=figures, **papers)
        return Report(
            found,
            [*printed, f"all on one page: {page}"],
            [path for path in drawn if path.suffix == ".png"],
        )

    def _splits(self, name: str) -> tuple[str, Any]:
        """(name, splits) of one of the data sets."""
        import jostle
        from jostle.traces import Windows, read_traces
        from studies.bridge.graphs.clock import ClockSettings
        from studies.bridge.splits import Also, made_splits, published_splits, trace_splits

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
        method = jostle.Bridge(components=self.components or None)
        clock = None
        if self.clock not in (None, "none"):
            clock = ClockSettings(
                str(self.clock), self.clock_kind, self.clock_marks, self.clock_period
            )
        traces = read_traces(folder)
        return folder.resolve().name, trace_splits(
            Windows.of(traces) if self.windows else traces,
            self.snapshots,
            method=method,
            also=Also(("barycentric", "series_parallel") if self.windows else (), clock),
            **shared,
        )
