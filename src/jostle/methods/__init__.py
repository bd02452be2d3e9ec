"""The contract that every method obeys, what methods learn from, and the registry that finds them.

This file and its stub are the room's whole public face. Names load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
