"""Methods that learn new runs by being fitted again: to all that the model has learned from, and to these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.learn import (
    Data,
    Fitted,
    KeptRuns,
    Prepared,
    as_fitted,
    method_named,
)

MOST_AGAIN = 50_000  # runs that a model keeps to be fitted to again


@dataclass(frozen=True)
class Again:
    """A method as one that learns online, and what of new runs it cannot hold out."""

    method: Any

    def learned(
        self,
        fitted: Any,
        runs: KeptRuns,
        kept: KeptRuns,
        *,
        seed: int = 0,
        changed: np.ndarray | None = None,
    ) -> Fitted:
        """Fit to both, kept ones first. Raises what a fit raises."""
        if not len(runs):
            return fitted
        return self.method.fit(self.prepared(kept.joined(runs)), seed=seed)

    def folded_again(
        self, fitted: Any, kept: KeptRuns, *, seed: int = 0
    ) -> Sequence[tuple[Fitted, KeptRuns]]:
        """Return None: what is left out is told by fits without it."""
        return ()

    def never_held(self, runs: KeptRuns, kept: KeptRuns) -> np.ndarray:
        """Mark new runs that are inputs of the method, or that answers need, (n,) bool."""
        prepared = self.prepared(kept.joined(runs))
        return (prepared.inputs | prepared.required)[len(kept) :]

    def prepared(self, runs: KeptRuns) -> Prepared:
        """Prepare all runs as the method takes them."""
        return self.method.prepare(Data(runs.as_runs()))


def learner_of(metadata: Mapping[str, Any]) -> Any:
    """Find how a model of a method learns new runs, None if it does not. Raises UsageError if the package
    that brings the method is not installed."""
    kind = method_named(str(metadata["method"]))
    if hasattr(kind, "learned"):
        return kind
    return (
        Again(as_fitted(kind, metadata["settings"])) if getattr(kind, "fits_again", False) else None
    )
