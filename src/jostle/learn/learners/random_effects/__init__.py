"""Random effects of names on runtimes, as a base learner of the ensemble."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
