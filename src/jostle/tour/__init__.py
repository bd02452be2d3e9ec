"""First steps: the tour (measure this machine, learn, check the answers), and what works on it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
