"""Learning from what is left after holding out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.errors import missing_extra
from jostle.methods import HeldOut, Learner, OffersChoice, Prepared, TakesPrior, halves
from jostle.runs import Runs

if TYPE_CHECKING:
    from jostle.progress import Progress


def learned(
    method: Learner[Any],
    held: HeldOut,
    *,
    by: str,
    seed: int,
    prior: Runs | None = None,
    progress: Progress | None = None,
) -> tuple[Any, Runs]:
    """(what the method has learned, runs to choose among its ways to bound on, which it did not see).

    by: the unit that was drawn whole. prior: runs measured elsewhere.
    """
    watched, selection = held.validation, held.validation.take([])
    if not isinstance(method, OffersChoice) or method.offers_choice:
        # What bounds a pool is chosen on runs that the candidates were not learned from.
        watched, selection = halves(held.validation, seed, by)
    learn = held.learn.with_validation(watched)
    try:
        if prior is not None and isinstance(method, TakesPrior):
            return method.fit_with_prior(learn, prior.ok(), seed=seed, progress=progress), selection
        joined = learn if prior is None else _joined(method, learn, prior.ok())
        return method.fit(joined, seed=seed, progress=progress), selection
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from None


def _joined(method: Learner[Any], learn: Prepared, prior: Runs) -> Prepared:
    """Prepared anew from both: a method that does not tell them apart learns from them together."""
    whole = method.prepare(learn.data.with_runs(Runs.concatenate([learn.in_memory, prior])))
    return whole.with_validation(learn.validation)
