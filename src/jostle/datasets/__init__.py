"""Datasets that come with Jostle: runs to try things on, and to begin with as prior knowledge.

The public names are listed in `__init__.pyi` and load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
