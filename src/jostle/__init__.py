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

from typing import TYPE_CHECKING, Any

from jostle._lazy import on_first_use

if TYPE_CHECKING:
    from jostle.accelerator import Accelerator
    from jostle.alignment import Alignment
    from jostle.bag import Bag
    from jostle.bounds import Bounds
    from jostle.bridge import Bridge, forecast
    from jostle.errors import JostleError
    from jostle.factorization import Factorization, Slowdown
    from jostle.models import Model, fit, load
    from jostle.runs import Colocations, Dataset, Runs, StoredRuns, read_runs

__version__ = "0.1.0"

_HOMES = {
    "Accelerator": "accelerator",
    "Alignment": "alignment",
    "Bag": "bag",
    "Bounds": "bounds",
    "Bridge": "bridge",
    "Colocations": "runs",
    "Dataset": "runs",
    "Factorization": "factorization",
    "JostleError": "errors",
    "Model": "models",
    "Runs": "runs",
    "Slowdown": "factorization",
    "StoredRuns": "runs",
    "fit": "models",
    "forecast": "bridge",
    "load": "models",
    "read_runs": "runs",
}

__all__ = [
    "Accelerator",
    "Alignment",
    "Bag",
    "Bounds",
    "Bridge",
    "Colocations",
    "Dataset",
    "Factorization",
    "JostleError",
    "Model",
    "Runs",
    "Slowdown",
    "StoredRuns",
    "fit",
    "forecast",
    "load",
    "read_runs",
]


def __getattr__(name: str) -> Any:
    return on_first_use(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
