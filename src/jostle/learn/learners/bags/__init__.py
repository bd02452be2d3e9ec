"""Runtime of a bag of GPU applications from features, by trees that explain (Moolchandani et al.)."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
