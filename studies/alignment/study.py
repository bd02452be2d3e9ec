"""`python -m studies alignment`: run times side by side of programs that were not learned from."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.option_fields import Flag, Limits, Short
from jostle._base.progress import Progress
from jostle._base.report import Report
from jostle.errors import UsageError
from studies.contract import document

if TYPE_CHECKING:
    from jostle.data import Traces


RECORDED = Path(__file__).parent / "recorded"
ABOUT = "campaign.json"
PROGRAMS, WINDOWS = 32, 400  # simulated by default
PAPERS_PROGRAMS = 6


@dataclass(frozen=True)
class AlignmentStudy:
    """Predict from traces alone what takes how long beside what, for workloads that are held out.

    Training and test workloads are disjoint. Beside it: no interference, the mean slowdown, factorization,
    and the same method under other alignments, the printed one among them. With --paper every table and
    figure of the paper (Saeed et al., MLCAD 2021) instead, by its own learner and features, on one page.
    """

    name: ClassVar[str] = "alignment"

    on: Annotated[
        Literal["simulator", "lru", "queue", "smt", "campaign"],
        "simulator, or another law (see docs), where the truth is exact; or campaign: recorded traces.",
    ] = "simulator"
    data: Annotated[
        Path | None,
        "With campaign: the dataset, a folder of traces.  [default: what comes with Jostle]",
    ] = None
    output: Annotated[Path | None, "Folder for figures and tables.", Short("-o")] = None
    programs: Annotated[
        int | None, "Simulated programs.  [default: 32, with --paper 6]", Limits(least=4)
    ] = None
    windows: Annotated[
        int | None,
        "Simulated windows to learn from, at most all pairs.  [default: 400]",
        Limits(least=2),
    ] = None
    seconds: Annotated[float, "Length of a simulated program.", Limits(least=0.01)] = 0.25
    shortest_ms: Annotated[float, "Shortest simulated phase."] = 0.3
    longest_ms: Annotated[float, "Longest simulated phase."] = 40.0
    period_ms: Annotated[float, "Simulated sampling period."] = 1.0
    probes: Annotated[bool, "Simulated programs are traced beside three stressors too."] = False
    stressors: Annotated[
        tuple[str, ...], "Only traces beside these stressors, by name or pattern."
    ] = ("probe-*",)
    noise_ratio: Annotated[float, "Noise of simulated counters, a ratio.", Flag("--noise")] = 0.0
    held: Annotated[
        int | None,
        "Workloads held out of a fold.  [default: 4, of a campaign 2]",
        Limits(least=2),
    ] = None
    folds: Annotated[int | None, "Folds at most.", Limits(least=1)] = None
    learner: Annotated[
        Literal["auto", "ridge", "phases", "mixture"],
        "What learns; auto weighs plain rules, probes of whole runs, their mixture and phases; ridge is "
        "the paper's.",
    ] = "auto"
    corunners: Annotated[
        Literal["once", "loop"], "Whether co-runners run once, or loop until the workload ends."
    ] = "once"
    own_cores: Annotated[
        bool,
        "With campaign: every member had a core of its own, so what it waited for it was taken by other "
        "processes (the recorder among them) and is left out.",
    ] = False
    compare: Annotated[bool, "Also as printed, and the paper's learners."] = True
    hold_out: Annotated[
        Literal["programs", "pairs"],
        "What is unseen: programs, or pairs of programs known from others.",
    ] = "programs"
    bounds: Annotated[
        bool,
        "Also how often runs stay under 90% bounds; fits again, for unseen programs many times.",
    ] = False
    factorization: Annotated[bool, "Also factorization, for comparison."] = True
    paper: Annotated[
        Path | None,
        "Fill this folder with every table and figure of the paper; open its index.html.",
    ] = None
    seed: Annotated[int, "Of the programs, the folds and the training."] = 0
    seeds: Annotated[
        int,
        "Fit the first fold with so many seeds, and under other names: how much do answers change?",
        Limits(least=1),
    ] = 1

    def run(self, *, progress: Progress) -> Report:
        """Evaluate on the campaign. Raises UsageError where the campaign is not clear."""
        from jostle.learn.learners.counters import Alignment
        from studies.alignment.evaluation import evaluate_alignment
        from studies.alignment.figures import draw_alignment
        from studies.alignment.paper.method import RidgeAlignment
        from studies.alignment.tables import run_times, shown

        if self.data is not None and self.on != "campaign":
            raise UsageError("data are of a campaign", fix="Set `on` to campaign.")
        asked = self._as_recorded()
        if asked is not self:
            return asked.run(progress=progress)
        if self.paper is not None:
            return self._run_paper(self.paper, progress)
        traces = self._simulated() if self.data is None else self._recorded(self.data)
        how: dict[str, Any] = {"corunners": self.corunners, "stressors": self.stressors}
        method = (
            RidgeAlignment(**how)
            if self.learner == "ridge"
            else Alignment(learner=self.learner, **how)
        )
        results = evaluate_alignment(
            traces,
            method,
            held=None if self.hold_out == "pairs" else self._held,
            folds=self.folds,
            also=[
                name
                for name, wanted in (
                    ("alignments", self.compare),
                    ("factorization", self.factorization),
                    ("bounds", self.bounds),
                )
                if wanted
            ],
            seed=self.seed,
            seeds=self.seeds,
            progress=progress,
        )
        drawn = [] if self.output is None else draw_alignment(results, self.output)
        table = run_times(results)
        content = document(
            self,
            self._data(),
            self.seed,
            settings=vars(method),
            metrics=results.metrics,
            folds=[list(fold) for fold in results.folds],
            unsteady=list(results.unsteady),
            selection=None if results.selection is None else results.selection.document(),
            table=[dict(zip(table.columns, row, strict=True)) for row in table.rows],
            figures=[str(path) for path in drawn],
        )
        return Report(content, shown(results), drawn)

    def _run_paper(self, folder: Path, progress: Progress) -> Report:
        """On recorded traces with the counters that they have, on simulated ones with as many as the paper
        measured."""
        from studies.alignment.paper.events import EVENTS, with_events
        from studies.alignment.paper.paper import HELD, evaluate_paper, write_paper

        if self.held not in (None, HELD):
            raise UsageError(f"the paper holds {HELD} applications out", fix="Leave `held` away.")
        asked = replace(self, held=HELD, programs=self.programs or PAPERS_PROGRAMS)
        if self.data is None:
            traces = with_events(asked._simulated(), seed=self.seed)
            about = (
                f"{asked.programs} simulated programs (law: {self.on}) stand for the applications, whose "
                f"traces were never published. Of {EVENTS} events of each core, some are counted by the "
                "simulator and the others made of these, 13 of them always zero."
            )
        else:
            traces = asked._recorded(self.data)
            about = f"Traces of {self.data}, with the counters that they have."
        results = evaluate_paper(traces, folds=self.folds, seed=self.seed, progress=progress)
        drawn = write_paper(results, folder, about)
        page = folder / "index.html"
        content = document(
            self,
            asked._data(),
            self.seed,
            page=str(page),
            **results.document(),
            figures=[str(path) for path in drawn],
        )
        lines: list[Any] = []
        for table in results.tables:
            lines += [table, ""]
        return Report(content, [*lines, about, f"all on one page: {page}"], drawn)

    def _as_recorded(self) -> AlignmentStudy:
        """With a campaign, as it was recorded (`campaign.json`); without a folder, the one that comes with
        Jostle."""
        if self.on != "campaign":
            return self
        folder = self.data or RECORDED
        about = folder / ABOUT
        if self.data is None and not about.is_file():
            raise UsageError(
                "no recorded campaign comes with this copy",
                fix="Record one (jostle trace --loop --probes), and say --data.",
            )
        if not about.is_file():
            return self
        told = json.loads(about.read_text(encoding="utf-8"))
        corunners, own = str(told.get("corunners", "once")), bool(told.get("own_cores", False))
        more: dict[str, Any] = {"data": folder, "own_cores": own or self.own_cores}
        if corunners == "loop":
            more["corunners"] = corunners
        if self.data is None:
            more |= {"held": self.held or 4, "bounds": self.bounds or self.hold_out == "pairs"}
        results = replace(self, **more)
        return self if results == self else results

    @property
    def _held(self) -> int:
        return self.held or (4 if self.data is None else 2)

    def _recorded(self, folder: Path) -> Traces:
        from jostle.data import all_without_waiting, read_traces

        traces = read_traces(folder)
        return all_without_waiting(traces) if self.own_cores else traces

    def _simulated(self) -> Traces:
        from studies.alignment.folds import protocol_sets
        from studies.alignment.laws import LAWS, stressors
        from studies.alignment.simulated import draw_programs, simulate_campaign

        law = LAWS[self.on]
        drawn = draw_programs(
            self.programs or PROGRAMS,
            self.seed,
            seconds=self.seconds,
            shortest_seconds=self.shortest_ms / 1e3,
            longest_seconds=self.longest_ms / 1e3,
            machine=law,
        )
        names = [program.name for program in drawn]
        return simulate_campaign(
            drawn,
            law,
            period_seconds=self.period_ms / 1e3,
            sets=protocol_sets(names, self.windows or WINDOWS, self._held, self.seed),
            loop=self.corunners == "loop",
            noise_ratio=self.noise_ratio,
            seed=self.seed,
            probes=stressors(law, self.seconds) if self.probes else (),
        )

    def _data(self) -> dict[str, Any]:
        """What the document says of the traces."""
        if self.data is not None:
            return {"on": self.on, "dataset": str(self.data), "own_cores": self.own_cores}
        names = ("on", "programs", "windows", "seconds")
        names += ("shortest_ms", "longest_ms", "period_ms", "noise_ratio", "probes")
        usual = {"programs": PROGRAMS, "windows": WINDOWS}
        return {name: getattr(self, name) or usual.get(name, 0) for name in names}
