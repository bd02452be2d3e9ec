"""The method: all base learners that the data allow, weighed on what they have not seen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

from jostle._base.option_fields import check_settings
from jostle.errors import MissingExtra, UnknownName, UsageError
from jostle.learn.contract._data import Data
from jostle.learn.contract._method_contract import FoldFit
from jostle.learn.contract._method_registry import Restores
from jostle.learn.contract._prepared import Prepared, first_solo_runs
from jostle.learn.ensemble._base_learner import BaseLearner, learner_named, learner_names

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.learn.ensemble._stacked_model import FittedEnsemble

Fitted = TypeVar("Fitted", bound="FittedEnsemble")


class StackedMethod(Restores, ABC, Generic[Fitted]):
    """A method that is a list of base learners, each weighed by what it says of runs that it has not seen.

    Weights are those of greedy selection with replacement (Caruana et al., ICML 2004) over what was left out
    as a user would leave it out: sets of workloads everywhere or on one platform, and names (stacking:
    Wolpert 1992).
    """

    fitted: ClassVar[str] = "jostle.learn.ensemble._stacked_model:FittedEnsemble"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})

    @abstractmethod
    def chosen_learners(self) -> list[BaseLearner]:
        """Return the base learners that are weighed."""

    def prepare(self, data: Data) -> Prepared:
        """Prepare the runs; answers are relative to the time alone, so one such run of each pair is
        required."""
        runs = data.runs
        required = first_solo_runs(runs)
        return Prepared.of(
            data, runs, required=required, calibrate_by="together", keep_unknown=True
        )

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None) -> Fitted:
        """Learn from the runs and those for its own choices together.

        Raises NotEnoughRuns, and MissingExtra where what base learners need is not installed.
        """
        return self.fit_left_out(prepared, seed=seed, progress=progress)[0]

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[Fitted, list[FoldFit]]:
        """Fit as `fit` does, and without some of the runs in turn, by which answers can be calibrated."""
        return self._learned(self.chosen_learners(), prepared, seed, progress)

    def _learned(
        self,
        learners: list[BaseLearner],
        prepared: Prepared,
        seed: int,
        progress: Progress | None,
        is_alone: bool = False,
    ) -> tuple[Any, list[FoldFit]]:
        """is_alone: whether a base learner with one answer is to be learned without a trial."""
        try:
            from jostle.learn.ensemble._fit_ensemble import fit

            return fit(learners, prepared.data, prepared.together(), seed, progress, is_alone)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("jostle"):
                raise
            raise MissingExtra(error.name, "fit") from None


@dataclass(frozen=True)
class Ensemble(StackedMethod):
    """All base learners that the data allow, each weighed by what it says of runs that it has not seen."""

    learners: Annotated[
        tuple[str, ...], "The base learners that are asked; by default all that are installed."
    ] = ()
    name: ClassVar[str] = "ensemble"
    fits_again: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self)
        known = learner_names()
        for name in self.learners:
            if name not in known:
                raise UnknownName("learner", name, known)

    def chosen_learners(self) -> list[BaseLearner]:
        names = self.learners or learner_names()
        if not names:
            raise UsageError(
                "no base learner is installed",
                fix="Install Jostle as a package: its entry points name the base learners.",
            )
        return [learner_named(name)() for name in names]
