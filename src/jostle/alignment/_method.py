"""The method as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from jostle.alignment._settings import AlignmentSettings

if TYPE_CHECKING:
    from jostle.alignment._fitted import FittedAlignment
    from jostle.progress import Progress
    from jostle.traces import Traces


class Alignment(AlignmentSettings):
    """Run time beside others from counter traces alone (Saeed et al., MLCAD 2021)."""

    name: ClassVar[str] = "alignment"

    @classmethod
    def paper(cls, traces: Traces, **changes: Any) -> Alignment:
        """The method as printed: its features, target, slot pairs, and the printed alignment."""
        options: dict[str, Any] = {
            "learner": "ridge",
            "form": "linear",
            "target": "instructions",
            "slots": "pair",
            "alignment": "printed",
        }
        return cls(traces, **(options | changes))

    def fit(
        self, runs: Any, validation: Any, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedAlignment:
        """Learn from the windows of `runs` (jostle.Runs with the run_ids of the traces). `validation`
        chooses the counters. Raises NotEnoughRuns, and MissingExtra where scikit-learn is not
        installed."""
        from jostle.alignment._fit import fit

        return fit(self, runs, validation, seed, progress)
