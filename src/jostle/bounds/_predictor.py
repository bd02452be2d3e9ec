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
    """

    names: tuple[str, ...]
    centre: np.ndarray
    scale: np.ndarray


@runtime_checkable
class OffersCandidates(Protocol):
    """A predictor with more than its prediction to calibrate."""

    def candidates(self, colocations: Any) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """The fields of Candidates; the same names at every call, the plainest first."""
        ...


def candidates_of(predictor: Any, colocations: Any) -> Candidates:
    """The predictor's own candidates, or its prediction with the same offset everywhere."""
    if isinstance(predictor, OffersCandidates):
        return Candidates(*predictor.candidates(colocations))
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.log(np.asarray(predictor.predict(colocations), np.float64))
    return Candidates(("prediction",), centre[None], np.ones((1, len(centre))))
