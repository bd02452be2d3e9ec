"""Confidence as people write it: one default for every command and call, one exact reading of a number."""

from __future__ import annotations

from fractions import Fraction
from numbers import Real

from jostle.errors import UsageError

DEFAULT_CONFIDENCE = 0.9


def exact_confidence(confidence: float) -> Fraction:
    """Read a confidence as the decimal number a person meant: 0.9 is nine tenths, not the nearest binary
    fraction.

    Raises UsageError outside (0, 1), and for another type, such as a text.
    """
    is_real = isinstance(confidence, Real) and not isinstance(confidence, bool)
    value = float(confidence) if is_real else float("nan")
    if not 0.0 < value < 1.0:
        raise UsageError(
            f"confidence {confidence!r} is not between 0 and 1",
            fix="Say 0.99 for a bound that holds 99 times in 100.",
        )
    return Fraction(repr(value))
