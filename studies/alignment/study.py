"""`python -m studies alignment`: run times side by side of programs that were not learned from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.option_fields import Limits
from jostle._base.progress import Progress
from jostle._base.report import Report, Table
from jostle.errors import UsageError
from studies.contract import document

if TYPE_CHECKING:
    from jostle.data import Traces

RECORDED = Path(__file__).parent / "recorded"
ABOUT = "campaign.json"


@dataclass(frozen=True)
class AlignmentStudy:
    """Predict from traces alone what takes how long beside what, for workloads that are held out.

    Beside it: no interference, the mean and median slowdown, additive effects, and probes of whole runs.
    """

    name: ClassVar[str] = "alignment"

    on: Annotated[
        Literal["simulator", "lru", "queue", "campaign"],
        "simulator, or another law, where the truth is exact; or campaign: recorded traces.",
    ] = "simulator"
    data: Annotated[
        Path | None,
        "With campaign: the dataset, a folder of traces.  [default: what comes with Jostle]",
    ] = None
    programs: Annotated[int, "Simulated programs.", Limits(least=4)] = 32
    windows: Annotated[int, "Simulated windows to learn from.", Limits(least=2)] = 400
    seconds: Annotated[float, "Length of a simulated program.", Limits(least=0.01)] = 0.25
    longest_ms: Annotated[float, "Longest simulated phase."] = 40.0
    probes: Annotated[bool, "Simulated programs are traced beside two stressors too."] = False
    stressors: Annotated[
        tuple[str, ...], "Only traces beside these stressors, by name or pattern."
    ] = ("probe-*",)
    held: Annotated[int, "Workloads held out of a fold.", Limits(least=2)] = 4
    folds: Annotated[int | None, "Folds at most.", Limits(least=1)] = None
    learner: Annotated[
        Literal["auto", "phases", "mixture"],
        "What learns; auto weighs plain rules, probes of whole runs, their mixture and phases.",
    ] = "auto"
    hold_out: Annotated[
        Literal["programs", "pairs"],
        "What is unseen: programs, or pairs of programs known from others.",
    ] = "programs"
    seed: Annotated[int, "Of the programs, the folds and the training."] = 0

    def run(self, *, progress: Progress) -> Report:
        """Evaluate on the campaign. Raises UsageError where the campaign is not clear."""
        from jostle.learn.learners.counters import Alignment
        from studies.alignment.evaluation import (
            by_method,
            errors_of,
            evaluate_fold,
            folds_of_pairs,
            folds_of_programs,
        )

        if self.data is not None and self.on != "campaign":
            raise UsageError("data are of a campaign", fix="Set `on` to campaign.")
        traces, corunners = (
            self._recorded() if self.on == "campaign" else (self._simulated(), "once")
        )
        folds = (
            folds_of_pairs(traces, self.seed)
            if self.hold_out == "pairs"
            else folds_of_programs(traces, self.held, self.seed)
        )[: self.folds]
        method = Alignment(learner=self.learner, corunners=corunners, stressors=self.stressors)
        tested = []
        for number, fold in enumerate(folds):
            predict = by_method(method, traces, self.seed)
            tested += evaluate_fold(traces, fold, predict, self.seed)
            progress(number + 1, len(folds), float("nan"))
        table = errors_of(tested)
        programs = len({one.workload for one in tested})
        content = document(
            self,
            self._data(),
            self.seed,
            folds=[list(fold.held_out) for fold in folds],
            tested=[vars(one) for one in tested],
            errors=_rows_of(table),
        )
        return Report(content, [table, f"\n{len(tested)} run times of {programs} programs"], [])

    def _recorded(self) -> tuple[Traces, Any]:
        """Return the campaign, and whether co-runners looped, as `campaign.json` says."""
        from jostle.data import read_traces
        from jostle.learn.learners.counters import only_stressors

        folder = self.data or RECORDED
        if self.data is None and not (folder / ABOUT).is_file():
            raise UsageError(
                "no recorded campaign comes with this copy",
                fix="Record one (jostle trace --loop --probes), and say --data.",
            )
        told = {}
        if (folder / ABOUT).is_file():
            told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        return only_stressors(read_traces(folder), self.stressors), told.get("corunners", "auto")

    def _simulated(self) -> Traces:
        from studies.worlds.memory_laws import LAWS, stressors
        from studies.worlds.traced_programs import draw_programs, protocol_sets, simulate_campaign

        law = LAWS[self.on]
        drawn = draw_programs(
            self.programs,
            self.seed,
            seconds=self.seconds,
            longest_seconds=self.longest_ms / 1e3,
            machine=law,
        )
        return simulate_campaign(
            drawn,
            law,
            sets=protocol_sets([one.name for one in drawn], self.windows, self.held, self.seed),
            probes=stressors(law, self.seconds) if self.probes else (),
        )

    def _data(self) -> dict[str, Any]:
        """Return what the document says of the traces."""
        if self.on == "campaign":
            return {"on": self.on, "dataset": str(self.data or RECORDED.name)}
        names = ("on", "programs", "windows", "seconds", "longest_ms", "probes")
        return {name: getattr(self, name) for name in names}


def _rows_of(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
