"""Measuring on this machine: workloads side by side on WebAssembly engines, into a dataset of runs.

    campaign = jostle.measure.Campaign(workloads=["chase-*"], engines=["speed"], sets=100)
    summary = jostle.measure.measure(campaign, "fleet/")

The public names are listed in `__init__.pyi` and load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
