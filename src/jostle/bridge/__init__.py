"""Distributions of resource use at any time, by graph-structured Schrödinger bridges and what beats them.

    distribution = jostle.forecast(data, jostle.Bridge()).at(1.5, core=0)
    distribution.quantile(0.95)                                     # (d,) per component
    distribution.exceedance_ratio({"instructions": 2e9})            # P(state > budget)

The public names are listed in `__init__.pyi` and load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
