"""Runtime on a shared accelerator: simulations of solo profiles as base learners (Prophet)."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
