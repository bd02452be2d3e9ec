"""Bounds for any predictor: conformal, with the exact rank, infinite where there is no evidence.

This file is the room's whole public face.
"""

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle.bounds._bounds import OUTCOMES, Bounds, coverage, margin
from jostle.bounds._conformal import LEVELS, Calibration, Pool, pool_of
from jostle.bounds._predictor import Candidates, OffersCandidates, Predictor, candidates_of
from jostle.bounds._rank import conformal_rank

__all__ = [
    "DEFAULT_CONFIDENCE",
    "LEVELS",
    "OUTCOMES",
    "Bounds",
    "Calibration",
    "Candidates",
    "OffersCandidates",
    "Pool",
    "Predictor",
    "candidates_of",
    "conformal_rank",
    "coverage",
    "exact_confidence",
    "margin",
    "pool_of",
]
