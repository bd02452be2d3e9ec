"""The method: every program is to others what a mixture of stressors is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from jostle.errors import UsageError
from jostle.methods import Prepared, Restores, first_solo_runs

if TYPE_CHECKING:
    from jostle.methods import Data
    from jostle.probes._fitted import FittedProbes
    from jostle.progress import Progress


@dataclass(frozen=True)
class Probes(Restores):
    """Slowdown beside anyone from runs beside stressors: a program presses as a mixture of them does."""

    stressors: Annotated[
        tuple[str, ...],
        "Names or patterns of the workloads that are stressors; jostle measure --probes runs probe-….",
    ] = ("probe-*",)
    learn_weights: Annotated[
        bool,
        "Where pairs of programs were measured too, weigh the mixture beside plain rules by them.",
    ] = True

    name: ClassVar[str] = "probes"
    fitted: ClassVar[str] = "jostle.probes._fitted:FittedProbes"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fits_again: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.stressors or not all(name.strip() for name in self.stressors):
            raise UsageError("no stressors", fix="Name them, or a pattern such as 'probe-*'.")

    def prepare(self, data: Data) -> Prepared:
        """Runs beside one stressor, and of stressors beside one workload, are inputs. Of each workload one
        run alone is required. Raises NotEnoughRuns where no workload is a stressor."""
        from jostle.probes._tables import is_probing, stressors_among

        runs = data.runs_in_memory
        stressors = stressors_among(runs, self.stressors)
        return Prepared.of(
            data,
            runs,
            inputs=is_probing(runs, stressors),
            required=first_solo_runs(runs),
            calibrate_by="together",
        )

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedProbes:
        """Learn what each workload is a mixture of; runs of several programs weigh that beside plain rules.

        Raises NotEnoughRuns.
        """
        from jostle.probes._fit import fit_probes
        from jostle.probes._tables import stressors_among

        runs = prepared.together()
        stressors = stressors_among(runs, self.stressors)
        fitted = fit_probes(runs, stressors, learn_weights=self.learn_weights, seed=seed)
        if progress is not None:
            progress(1, 1, float("nan"))
        return fitted
