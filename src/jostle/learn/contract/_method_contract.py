"""What every method is: frozen settings that learn from data, and what was learned, which answers.

A method is a frozen dataclass; each of its fields says what it means in its annotation, so that commands,
documentation and saved models read the same sentence:

    @dataclass(frozen=True)
    class Constant:
        "One factor for every co-location."
        factor: Annotated[float, "How many times longer than alone."] = 1.5
        name: ClassVar[str] = "constant"
        needs: ClassVar[frozenset[str]] = frozenset({"runs"})

It is found by an entry point in the group `jostle.methods`, whether it comes with Jostle or in another
package. What only some methods can do is a protocol of its own, asked for with isinstance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from jostle._base.progress import Progress
    from jostle._base.report import Report
    from jostle.data import Colocations, Runs, Traces
    from jostle.learn.contract._coded_runs import KeptRuns
    from jostle.learn.contract._data import Data
    from jostle.learn.contract._prepared import Prepared
    from jostle.learn.contract._run_counts import Evidence


@runtime_checkable
class Answers(Protocol):
    """Protocol of whatever predicts runtimes, as far as studies and bounds need it. Immutable; answers with
    NumPy alone. It may have `uncertainty(asked)`, see jostle.conformal.Uncertainty."""

    def predict(self, asked: Colocations, /) -> np.ndarray:
        """Predict (n,) seconds, aligned with what is asked; NaN without an answer. Raises UnknownName."""
        ...


@runtime_checkable
class Fitted(Answers, Protocol):
    """Protocol of a fitted method: it predicts, counts the runs behind an answer, and can be saved.

    workload_names, platform_names: the names it knows, sorted. notes: what its user should know.
    """

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Names of the workloads it knows, sorted."""
        ...

    @property
    def platform_names(self) -> tuple[str, ...]:
        """Names of the platforms it knows, sorted."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that its user should know."""
        ...

    def evidence(self, asked: Colocations, /) -> Evidence:
        """Count the runs learned from that tell of each co-location."""
        ...

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return (arrays for safetensors, what goes into JSON); the method's `restore` is the inverse."""
        ...


AnswersT = TypeVar("AnswersT", bound=Answers, covariant=True)
FittedT = TypeVar("FittedT", bound=Fitted, covariant=True)


@runtime_checkable
class Learner(Protocol[AnswersT]):
    """Settings of one way to learn, such as a rival that a study measures beside others.

    needs: of `runs`, `traces` and `profiles`, those that it reads.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]

    def prepare(self, data: Data) -> Prepared:
        """Select the runs to learn from and to answer about, and which of them are inputs of the method.

        Raises NotEnoughRuns, BadData.
        """
        ...

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> AnswersT:
        """Learn. The same prepared data, settings and seed give the same answers. Raises NotEnoughRuns."""
        ...


@runtime_checkable
class Method(Learner[FittedT], Protocol[FittedT]):
    """A way to learn whose result can be kept: what an entry point of `jostle.methods` names."""

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> Fitted:
        """Restore what `to_arrays` of a fitted one gave. Raises KeyError, ValueError for anything else."""
        ...


@runtime_checkable
class LearnsOnline(Protocol):
    """A method whose result learns new runs, and new names, without being fitted again."""

    @staticmethod
    def learned(
        fitted: Any,
        runs: KeptRuns,
        kept: KeptRuns,
        *,
        seed: int = 0,
        changed: np.ndarray | None = None,
    ) -> Fitted:
        """Learn these runs on top of what was fitted. Names that only the features of `runs` have become
        known, too. kept: a sample of the runs learned from before. changed: (kept,) bool, runs of names that
        have drifted, given as they would come now, not as they were learned; None if there are none."""
        ...

    @staticmethod
    def folded_again(
        fitted: Any, kept: KeptRuns, *, seed: int = 0
    ) -> Sequence[tuple[Fitted, KeptRuns]]:
        """Refit with known names taken as new ones, with none or a few of their kept runs, and others of
        their runs, by unit, to compare answers with."""
        ...


@runtime_checkable
class FitsAgain(Protocol):
    """A method that learns new runs by being fitted to them and to all that it has learned from, which takes
    it as long as a fit. It needs runs alone, and its models keep them."""

    fits_again: ClassVar[bool]


@runtime_checkable
class LeavesOut(Protocol):
    """A method that is fitted without some runs in turn anyway, so that bounds can rest on all of them."""

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> tuple[Fitted, Sequence[FoldFit]]:
        """Return (as `fit`, what was learned without some of the runs and of those for choices, in that
        order)."""
        ...


@dataclass(frozen=True)
class FoldFit:
    """A fit without some runs, which predicts those as it would predict new ones. runs: (t,) numbers of those
    runs. unit: (t,) what was left out as one. is_of_names: whether names were left out, not sets. is_larger:
    whether all sets of as many were, the largest that there are. is_again: whether other runs of the same
    sets were learned from."""

    fitted: Any
    runs: np.ndarray
    unit: np.ndarray
    is_of_names: bool
    is_larger: bool = False
    is_again: bool = False


@runtime_checkable
class SuggestsRuns(Protocol):
    """A method that says which runs would tell most of what is asked."""

    @staticmethod
    def suggested(
        fitted: Any,
        kept: KeptRuns,
        candidates: Colocations,
        asked: Colocations,
        *,
        most: int,
        seed: int = 0,
    ) -> tuple[float, Sequence[tuple[int, float]]]:
        """Rank candidates to measure. Returns (usual doubt of what is asked, (row of the candidates, that
        doubt after it) of at most `most`, best first). Doubts are standard deviations in log seconds."""
        ...


@runtime_checkable
class TakesPrior(Protocol):
    """A method that tells runs measured elsewhere from those it answers about.

    Methods without it learn from both together.
    """

    def fit_with_prior(
        self, prepared: Prepared, prior: Runs, *, seed: int = 0, progress: Progress | None = None
    ) -> Fitted:
        """Fit to runs from elsewhere as well.

        prior: runs measured elsewhere. Raises NotEnoughRuns.
        """
        ...


@runtime_checkable
class OffersChoice(Protocol):
    """A method that knows before it learns whether there are several ways to bound to choose from.

    Where there is but one, no runs are spent on choosing. Methods without it are taken to offer a choice.
    """

    @property
    def offers_choice(self) -> bool:
        """True if there are several ways to bound."""
        ...


@runtime_checkable
class Explains(Protocol):
    """Protocol of a fitted method that explains its predictions."""

    def explain(self, asked: Colocations, /, *, runs: Runs | None = None) -> Report:
        """Explain the only co-location that is asked; runs: to count those that stand behind it.

        Raises UsageError for more or fewer co-locations, UnknownName.
        """
        ...


@runtime_checkable
class TakesSoloTraces(Protocol):
    """Protocol of a fitted method that predicts programs it never saw, from their traces alone."""

    def with_solo(self, traces: Traces) -> Fitted:
        """Add the programs traced alone to the known ones. Raises UnknownName, BadData."""
        ...


@runtime_checkable
class HasInputPlatforms(Protocol):
    """Protocol of a fitted method with platforms that are only inputs: nothing is answered on them beside
    others."""

    @property
    def input_platforms(self) -> tuple[str, ...]:
        """Platforms whose runs are inputs."""
        ...
