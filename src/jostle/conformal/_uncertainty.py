"""What bounds need of a predictor: its prediction, and how sure it seems to be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Uncertainty(NamedTuple):
    """Predictions of n co-locations, and what may tell how far off they are.

    Parameters
    ----------
    log_runtime : (n,) ndarray
        Log seconds that are predicted; NaN where there is no answer.
    log_widths : (f, n) ndarray
        Signs of a large error, such as the log of a modelled spread; f may be 0, and is the same at every
        call.
    slopes : (f,) ndarray
        By how much the log of an error grows with each of them, before any error is seen.
    seconds : (n,) ndarray, optional
        The prediction, where it is at hand and need not be computed again.
    """

    log_runtime: np.ndarray
    log_widths: np.ndarray
    slopes: np.ndarray
    seconds: np.ndarray | None = None

    @classmethod
    def unknown(cls, seconds: np.ndarray) -> Uncertainty:
        """Return predictions (n,) of which nothing tells how sure they are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(np.asarray(seconds, np.float64))
        return cls(log, np.zeros((0, len(log))), np.zeros(0), seconds)


def uncertainty_of(predictor: Any, asked: Any) -> Uncertainty:
    """Return the predictor's own uncertainty, or its bare prediction."""
    if hasattr(predictor, "uncertainty"):
        return Uncertainty(*predictor.uncertainty(asked))
    return Uncertainty.unknown(predictor.predict(asked))
