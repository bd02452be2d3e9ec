"""Latency of applications that share an accelerator, simulated from solo task traces.

Source: Prophet (ASPLOS 2017). The public names are listed in `__init__.pyi` and load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
