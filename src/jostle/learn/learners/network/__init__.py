"""Pitot's matrix factorization with interference: a network trained in JAX, answered by NumPy."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
