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
package. What only some methods can do is a method of that name, which others lack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    import numpy as np

    from jostle._base.progress import Progress
    from jostle.data import Colocations
    from jostle.learn.contract._data import Data
    from jostle.learn.contract._prepared import Prepared


@runtime_checkable
class Fitted(Protocol):
    """Protocol of what a method has learned. Immutable; it predicts with NumPy alone.

    A model can be made of it, saved and asked for bounds that depend on what was measured if it has, besides:

    workload_names, platform_names : tuple of str
        The names it knows, sorted.
    notes : tuple of str
        Sentences that its user should know.
    evidence(asked)
        An Evidence: counts of the runs learned from that tell of each co-location.
    to_arrays()
        (arrays for safetensors, what goes into JSON); the method's `restore` is the inverse.

    It may have:

    uncertainty(asked)
        How sure it is: see jostle.conformal.Uncertainty.
    explain(asked, runs=None)
        A Report that explains the only co-location asked; runs: to count those that stand behind it. Raises
        UsageError for more or fewer co-locations, UnknownName.
    with_solo(traces)
        The same with programs that it never saw, known by their traces alone. Raises UnknownName, BadData.
    input_platforms : tuple of str
        Platforms whose runs are only inputs: nothing is answered on them beside others.
    """

    def predict(self, asked: Colocations, /) -> np.ndarray:
        """Predict (n,) seconds, aligned with what is asked; NaN without an answer. Raises UnknownName."""
        ...


FittedT = TypeVar("FittedT", bound=Fitted, covariant=True)


@runtime_checkable
class Method(Protocol[FittedT]):
    """Protocol of the settings of one way to learn. needs: of `runs`, `traces` and `profiles`, those that it
    reads.

    What an entry point names also has the class method `restore(arrays, document)`, the inverse of the fitted
    one's `to_arrays`; it raises KeyError or ValueError for anything else. A method may have, besides:

    fit_left_out(prepared, *, seed, progress)
        As `fit`, for a method that is fitted without some runs in turn anyway: (what `fit` returns, a FoldFit
        for each fit without some of the runs and of those for choices, in that order). Bounds then rest on
        all runs.
    fit_with_prior(prepared, prior, *, seed, progress)
        A fit that tells runs measured elsewhere, `prior`, from those it answers about. Methods without it
        learn from both together.
    offers_choice : bool
        False if there is but one way to bound, so that no runs are spent on choosing; True unless given.
    fits_again : bool
        True for a method of runs alone that learns new ones by being fitted to them and to all that it has
        learned from, which its models keep.
    learned(fitted, runs, kept, *, seed, changed=None)
        For a method that learns new runs, and new names, without being fitted again: what has learned these
        KeptRuns on top of what was fitted. Names that only the features of `runs` have become known, too.
        kept: a sample of the runs learned from before. changed: (kept,) bool, runs of names that have
        drifted, given as they would come now; None if there are none. Static, as are the two that follow.
    folded_again(fitted, kept, *, seed)
        With `learned`: (fit, KeptRuns) pairs, refitted with known names taken as new ones, with none or a few
        of their kept runs, and others of their runs, by unit, to compare answers with.
    suggested(fitted, kept, candidates, asked, *, most, seed)
        Candidates to measure: (usual doubt of what is asked, (row of the candidates, that doubt after it) of
        at most `most`, best first). Doubts are standard deviations in log seconds.
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
    ) -> FittedT:
        """Learn. The same prepared data, settings and seed give the same answers. Raises NotEnoughRuns."""
        ...


# What a FoldFit leaves out, those first that a model keeps to learn more: sets of workloads; further runs of
# sets of which it has seen some; all sets of as many as the largest; names.
LEFT_OUT = ("set", "again", "larger", "name")


@dataclass(frozen=True)
class FoldFit:
    """A fit without some runs, which predicts those as it would predict new ones. runs: (t,) numbers of those
    runs. unit: (t,) what was left out as one. left_out: what the runs are left out with, of LEFT_OUT."""

    fitted: Any
    runs: np.ndarray
    unit: np.ndarray
    left_out: str = "set"
