"""One file that says how good a model is, on what data: it opens in a browser, without a network.

This file and its stub are the room's whole public face.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
