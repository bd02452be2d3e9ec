"""Measured runtimes: what ran where, beside what, and how long it took.

This file and its stub are the room's whole public face. Names load on first use, so that importing the
room costs nothing and :class:`Colocations` never needs more than NumPy.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
