"""Runtime of any workload on any platform beside any co-runners, learned from sparse runs (Pitot).

This file is the room's whole public face; fitting needs JAX, answering only NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from ._baseline import Baseline, fit_baseline
    from ._explain import CorunnerShare, Explanation, Neighbour, evidence, explain
    from ._fitted import FittedFactorization
    from ._settings import Factorization
    from ._slowdown import Slowdown
    from ._slowdown_fitted import FittedSlowdown

_HOMES = {
    "Baseline": "_baseline",
    "CorunnerShare": "_explain",
    "Explanation": "_explain",
    "Factorization": "_settings",
    "FittedFactorization": "_fitted",
    "FittedSlowdown": "_slowdown_fitted",
    "Neighbour": "_explain",
    "Slowdown": "_slowdown",
    "evidence": "_explain",
    "explain": "_explain",
    "fit_baseline": "_baseline",
}

__all__ = [
    "Baseline",
    "CorunnerShare",
    "Explanation",
    "Factorization",
    "FittedFactorization",
    "FittedSlowdown",
    "Neighbour",
    "Slowdown",
    "evidence",
    "explain",
    "fit_baseline",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted(__all__)
