"""What the trees learn, from runtimes and back to them."""

from __future__ import annotations

import numpy as np

LEAST = 0.05  # of the solo runtime: no answer is shorter


def target_of(
    log_runtime: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """(n,) what the trees learn, from log seconds."""
    if target == "slowdown":
        return log_runtime - log_solo
    seconds = np.exp(log_runtime)
    return (seconds if target == "runtime" else seconds - np.exp(log_solo)) / time_scale


def _log_runtime_of(
    answer: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """(n,) log seconds from what the trees answer; the inverse of target_of."""
    if target == "slowdown":
        return log_solo + answer
    seconds = answer * time_scale
    if target == "extra":
        seconds = np.exp(log_solo) + seconds
    with np.errstate(invalid="ignore"):
        return np.log(np.maximum(seconds, LEAST * np.exp(log_solo)))


def log_slowdown_of(
    answer: np.ndarray, log_solo: np.ndarray, target: str, time_scale: float
) -> np.ndarray:
    """(n,) log slowdowns over the log seconds alone from what the trees answer."""
    return _log_runtime_of(answer, log_solo, target, time_scale) - log_solo
