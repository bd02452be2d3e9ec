"""Learning without calibration, for studies and checks that hold runs out by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from jostle.methods._contract import Answers, Learner
from jostle.methods._data import Data

if TYPE_CHECKING:
    from jostle.progress import Progress
    from jostle.runs import Runs


AnswersT = TypeVar("AnswersT", bound=Answers)


def learn(
    method: Learner[AnswersT],
    data: Any,
    *,
    validation: Runs | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> AnswersT:
    """Prepare and fit: all runs of the data are learned from, none is held out.

    data: as Data.of takes it. validation: further runs, for the method's own choices.
    """
    prepared = method.prepare(Data.of(data))
    if validation is not None:
        prepared = prepared.with_validation(validation.ok())
    return method.fit(prepared, seed=seed, progress=progress)
