"""The papers' protocols, tables and figures as commands.

This file, with the names in the stub beside it, is the room's whole public face.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
