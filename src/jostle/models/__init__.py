"""Fits, predicts, bounds, explains, updates and saves: what a user holds."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
