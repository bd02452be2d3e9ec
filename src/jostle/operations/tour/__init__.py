"""Measures this machine, learns from it and checks the answers; says what works here."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
