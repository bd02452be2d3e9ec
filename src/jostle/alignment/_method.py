"""The method: run time beside others, learned from counter traces and probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.alignment._settings import AlignmentSettings
from jostle.methods import Restores

if TYPE_CHECKING:
    from jostle.alignment._fitted import FittedAlignment
    from jostle.methods import Data, Prepared
    from jostle.progress import Progress
    from jostle.traces import Traces


@dataclass(frozen=True)
class Alignment(AlignmentSettings, Restores):
    """Run time beside others from counter traces alone (Saeed et al., MLCAD 2021), and from probes."""

    name: ClassVar[str] = "alignment"
    fitted: ClassVar[str] = "jostle.alignment._fitted:FittedAlignment"
    needs: ClassVar[frozenset[str]] = frozenset({"traces"})

    def prepare(self, data: Data) -> Prepared:
        """The runs traced beside others, or the runs that were given. Runs alone are inputs: their traces
        become solo counters.

        Raises NotEnoughRuns where none was traced beside others.
        """
        from jostle.alignment.learning._core import traced_runs
        from jostle.alignment.solo._index import solo_run_ids
        from jostle.methods import Prepared

        traces = self._traces(data)
        inputs = solo_run_ids(traces)
        runs = data.runs_in_memory if data.has_given_runs else traced_runs(traces, inputs)
        is_input = np.array([name in inputs for name in runs.table.column("run_id").to_pylist()])
        return Prepared.of(data, runs, inputs=is_input, calibrate_by="together")

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAlignment:
        """Learn from the windows of the runs.

        Raises NotEnoughRuns, BadData.
        """
        from jostle.alignment._fit import fit

        return fit(self, self._traces(prepared.data, probes=False), prepared, seed, progress)

    def _traces(self, data: Data, *, probes: bool = True) -> Traces:
        """As they are learned from; probes: those of programs alone, with what stressors showed. Raises
        NotEnoughRuns where no program ran beside the stressors named."""
        from jostle.alignment.solo._axis import with_instructions
        from jostle.alignment.solo._probed import EVERY_STRESSOR, LOST, with_probes
        from jostle.errors import NotEnoughRuns
        from jostle.traces import all_without_waiting

        traces = with_instructions(data.traces)
        traces = all_without_waiting(traces) if self.own_cores else traces
        if not probes:
            return traces
        probed = with_probes(traces, self.stressors)
        counted = {name for trace in probed for name in trace.counters}
        if self.stressors != EVERY_STRESSOR and not any(n.startswith(LOST) for n in counted):
            raise NotEnoughRuns(
                f"no program was traced beside {', '.join(self.stressors)}",
                fix="Trace beside stressors (`probes` of jostle trace), or leave `stressors` away.",
            )
        return probed
