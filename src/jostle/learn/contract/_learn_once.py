"""Learning without calibration, for studies and checks that hold runs out by themselves."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from jostle.learn.contract._data import Data
from jostle.learn.contract._method_contract import Fitted, Method

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Runs


FittedT = TypeVar("FittedT", bound=Fitted)


@contextmanager
def one_thread() -> Generator[None]:
    """Linear algebra by one thread, as a context or around a function: what is learned takes many small
    products, and threads would wait for each other longer than they work, many times as long where others
    want the processors, too. What XLA compiled has threads of its own."""
    try:
        import scipy.linalg  # with a library of its own, which is limited only once it is here
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        yield
        return
    assert scipy.linalg
    with threadpool_limits(1):
        yield


@one_thread()
def learn(
    method: Method[FittedT],
    data: Any,
    *,
    validation: Runs | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> FittedT:
    """Prepare and fit: all runs of the data are learned from, none is held out.

    data: as Data.of takes it. validation: further runs, for the method's own choices.
    """
    prepared = method.prepare(Data.of(data))
    if validation is not None:
        prepared = prepared.with_validation(validation.ok())
    return method.fit(prepared, seed=seed, progress=progress)
