"""Co-run runtime from solo counter traces, aligned over time (Saeed et al.)."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
