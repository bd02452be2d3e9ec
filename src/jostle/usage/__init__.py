"""Forecasts resource use over time by Schrödinger bridges, and limits that runs keep."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
