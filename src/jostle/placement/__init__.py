"""Says where workloads can go so that nobody misses a deadline: fleets, requests, sets, assignment."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
