"""Jostle: how long a workload takes, and at most how long, when it shares hardware with others.

    runs = jostle.read_runs("fleet/")
    model = jostle.fit(runs, jostle.Factorization(), seed=0)
    asked = jostle.Colocations.from_columns(workload=[...], platform=[...], corunners=[[...], ...])
    model.predict(asked)                    # (n,) seconds
    model.bound(asked, confidence=0.99)     # Bounds: .seconds (n,), .outcome (n,)
    model.save("model/"); jostle.load("model/")

Everything loads on first use: `import jostle` itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jostle.bounds import Bounds
    from jostle.errors import JostleError
    from jostle.factorization import Factorization
    from jostle.models import Model, fit, load
    from jostle.runs import Colocations, Dataset, Runs, read_runs

__version__ = "0.1.0"

_HOMES = {
    "Bounds": "bounds",
    "Colocations": "runs",
    "Dataset": "runs",
    "Factorization": "factorization",
    "JostleError": "errors",
    "Model": "models",
    "Runs": "runs",
    "fit": "models",
    "load": "models",
    "read_runs": "runs",
}

__all__ = [
    "Bounds",
    "Colocations",
    "Dataset",
    "Factorization",
    "JostleError",
    "Model",
    "Runs",
    "fit",
    "load",
    "read_runs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"jostle.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
