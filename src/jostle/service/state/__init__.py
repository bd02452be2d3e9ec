"""What changes while serving: the model, the fleet, placements and observed runs.

This file and its stub are what the rest of the service asks.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
