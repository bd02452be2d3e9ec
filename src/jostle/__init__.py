"""Jostle: how long a workload takes, and at most how long, when it shares hardware with others.

    data = jostle.read("fleet/")            # or jostle.read_runs("fleet/") for the runs alone
    model = jostle.fit(data, seed=0)        # or with a method: jostle.Slowdown(), or "slowdown"
    query = jostle.Colocations.from_columns(workload=[...], platform=[...], corunners=[[...], ...])
    model.predict(query)                    # (n,) seconds
    model.bound(query, confidence=0.99)     # Bounds: .seconds (n,), .outcome (n,)
    model.save("model/"); jostle.load("model/")

Everything loads on first use: `import jostle` itself costs nothing.
"""

import lazy_loader as _lazy

from jostle._base.version import VERSION as __version__  # noqa: F401

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
