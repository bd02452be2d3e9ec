"""How long workloads take beside each other, from counter traces of each alone.

Fitting needs scikit-learn, answering only NumPy. Source: Saeed et al., "Learning based memory interference
prediction for co-running applications on multi-cores", MLCAD 2021.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
