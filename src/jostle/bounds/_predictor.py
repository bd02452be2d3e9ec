"""What bounds need of a predictor: predictions, and perhaps several ways to score them."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np


class Predictor(Protocol):
    """Anything that answers co-locations with seconds; NaN where it has no answer."""

    def predict(self, colocations: Any) -> np.ndarray:
        """(n,) seconds, aligned with the input."""
        ...


class Candidates(NamedTuple):
    """h ways to bound n co-locations: bound = exp(centre + scale * offset), the offset calibrated.

    names: h names. centre: (h, n) log seconds, NaN where there is no answer. scale: (h, n) above 0.
    A quantile head has its quantile as centre and scale 1 (conformalised quantile regression,
    Romano et al. 2019); a spread model has the prediction as centre and the spread as scale.
    until: h confidences, 1 where left out. One under 1 says that the candidate speaks up to there and the
    next one from there on: together they are one way to bound, a ladder.
    """

    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray
    until: tuple[float, ...] = ()

    def ladders(self) -> list[tuple[int, ...]]:
        """The ways to bound, each as its candidates in the order of their confidences."""
        found: list[tuple[int, ...]] = []
        rungs: tuple[int, ...] = ()
        for place in range(len(self.names)):
            rungs += (place,)
            if self.ends_at(place) >= 1:
                found.append(rungs)
                rungs = ()
        return found

    def ends_at(self, place: int) -> float:
        """Up to which confidence a candidate speaks."""
        return self.until[place] if self.until else 1.0


@runtime_checkable
class OffersCandidates(Protocol):
    """A predictor with more than its prediction to calibrate."""

    def candidates(self, colocations: Any) -> tuple[Any, ...]:
        """The fields of Candidates; the same names at every call, the plainest first."""
        ...


def candidates_of(predictor: Any, colocations: Any) -> Candidates:
    """The predictor's own candidates, or its prediction with the same offset everywhere."""
    if isinstance(predictor, OffersCandidates):
        return Candidates(*predictor.candidates(colocations))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.log(np.asarray(predictor.predict(colocations), np.float64))
    return Candidates(("prediction",), centre[None], np.ones((1, len(centre))))
