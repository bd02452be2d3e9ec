"""Makes conformal bounds for any predictor: scores, categories, exact ranks, covariate shift, tails."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
