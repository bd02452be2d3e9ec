"""A bag of applications on one GPU: its run time from features, by trees that can be explained.

Fitting needs scikit-learn, answering only NumPy. The public names are listed in `__init__.pyi` and load on
first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
