"""Learning from what is left after holding out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jostle._base.progress import Progress
from jostle.data import Runs
from jostle.errors import needing_extras
from jostle.learn import HeldOut, Method, Prepared, halves


@dataclass(frozen=True)
class WayToLearn:
    """Recipe by which a model was fitted. unit: what was drawn whole. prior: runs measured elsewhere."""

    method: Any
    unit: str
    seed: int
    prior: Runs | None = None

    def from_rest(self, held: HeldOut, progress: Progress | None) -> tuple[Any, Runs]:
        """Fit; return (the fit, unseen runs to choose among its ways to bound on)."""
        watched, selection = held.validation, held.validation.take([])
        if getattr(self.method, "offers_choice", True):
            # The scale of errors is learned from runs that the predictor has not seen.
            watched, selection = halves(held.validation, self.seed, self.unit)
        return self._fitted(held.learn.with_validation(watched), progress), selection

    def _fitted(self, learn: Prepared, progress: Progress | None) -> Any:
        method, prior = self.method, None if self.prior is None else self.prior.ok()
        with needing_extras():
            if prior is not None and hasattr(method, "fit_with_prior"):
                return method.fit_with_prior(learn, prior, seed=self.seed, progress=progress)
            joined = learn if prior is None else _joined(method, learn, prior)
            return method.fit(joined, seed=self.seed, progress=progress)


def _joined(method: Method[Any], learn: Prepared, prior: Runs) -> Prepared:
    """Prepared anew from both: a method that does not tell them apart learns from them together."""
    whole = method.prepare(learn.data.with_runs(Runs.concatenate([learn.runs, prior])))
    return whole.with_validation(learn.validation)
