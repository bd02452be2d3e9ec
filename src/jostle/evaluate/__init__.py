"""The papers' protocols, tables and figures as commands, and the tour.

This file is the room's whole public face.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._factorization import (
        Evaluation,
        Split,
        evaluate_factorization,
        file_split,
        metrics_of,
        observed_split,
    )
    from ._tour import (
        Tour,
        TourPlan,
        hold_out_sets,
        learn_tour,
        mape,
        measure_tour,
        pick_examples,
        solo_medians,
    )

_HOMES = {
    "Evaluation": "_factorization",
    "Split": "_factorization",
    "Tour": "_tour",
    "TourPlan": "_tour",
    "evaluate_factorization": "_factorization",
    "file_split": "_factorization",
    "hold_out_sets": "_tour",
    "learn_tour": "_tour",
    "measure_tour": "_tour",
    "mape": "_tour",
    "metrics_of": "_factorization",
    "observed_split": "_factorization",
    "pick_examples": "_tour",
    "solo_medians": "_tour",
}

__all__ = [
    "Evaluation",
    "Split",
    "Tour",
    "TourPlan",
    "evaluate_factorization",
    "file_split",
    "hold_out_sets",
    "learn_tour",
    "mape",
    "measure_tour",
    "metrics_of",
    "observed_split",
    "pick_examples",
    "solo_medians",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
