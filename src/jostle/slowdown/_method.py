"""The method: slowdown, or extra time, by susceptibility and pressure, learned from pairs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from jostle.errors import MissingExtra
from jostle.methods import Data, Prepared, Restores, first_solo_runs
from jostle.slowdown._settings import SlowdownSettings

if TYPE_CHECKING:
    from jostle.progress import Progress
    from jostle.slowdown._fitted import FittedSlowdown


@dataclass(frozen=True)
class Slowdown(SlowdownSettings, Restores):
    """Slowdown, or extra time, beside others by susceptibility and pressure, from pairs alone."""

    name: ClassVar[str] = "slowdown"
    fitted: ClassVar[str] = "jostle.slowdown._fitted:FittedSlowdown"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fits_again: ClassVar[bool] = True

    def prepare(self, data: Data) -> Prepared:
        """The runs of the data; answers are relative to the runtime alone, so one of each is required."""
        runs = data.runs_in_memory
        return Prepared.of(data, runs, required=first_solo_runs(runs), calibrate_by="together")

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedSlowdown:
        """Learn from the runs and those for its own choices together, of which some must be alone.

        Raises MissingExtra where SciPy is not installed.
        """
        try:
            import scipy.optimize  # noqa: F401  (an extra)
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "fit") from None
        from jostle.slowdown._fit import fit

        return fit(self, prepared.together(), seed, progress)
