"""The method: run time beside others, learned from counter traces and probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.counters._alignment_settings import AlignmentSettings

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.learn.contract._data import Data
    from jostle.learn.contract._method_contract import FoldFit
    from jostle.learn.contract._prepared import Prepared
    from jostle.learn.learners.counters._fitted_alignment import FittedAlignment


@dataclass(frozen=True)
class Alignment(AlignmentSettings, Restores):
    """Run time beside others from counter traces alone (Saeed et al., MLCAD 2021), and from probes."""

    name: ClassVar[str] = "alignment"
    fitted: ClassVar[str] = "jostle.learn.learners.counters._fitted_alignment:FittedAlignment"
    needs: ClassVar[frozenset[str]] = frozenset({"traces"})

    def prepare(self, data: Data) -> Prepared:
        """Select the runs traced beside others, or the runs that were given. Runs alone are inputs: their
        traces become solo counters.

        Raises NotEnoughRuns where none was traced beside others.
        """
        from jostle.learn.contract._prepared import Prepared
        from jostle.learn.learners.counters._traced_cells import traces_of
        from jostle.learn.learners.counters.learning._traced_runs import traced_runs

        traces = traces_of(self, data)
        inputs = {trace.run_id for trace in traces if trace.solo}
        runs = data.runs if data.has_given_runs else traced_runs(traces, inputs)
        is_input = np.array([name in inputs for name in runs.table.column("run_id").to_pylist()])
        return Prepared.of(data, runs, inputs=is_input, calibrate_by="together")

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAlignment:
        """Learn from the windows of the runs.

        Raises NotEnoughRuns, BadData, MissingExtra.
        """
        return self.fit_left_out(prepared, seed=seed, progress=progress)[0]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[FittedAlignment, list[FoldFit]]:
        """Fit, and return also what was learned without some of the windows; nothing of one learner alone."""
        from jostle.learn.learners.counters._fit_alignment import fit_all, fit_one

        if self.learner != "auto":
            return fit_one(self, prepared, seed), []
        return fit_all(self, prepared, seed, progress)
