"""Learns a predictor from data: contract, training data, folds, stacking, explanation."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
