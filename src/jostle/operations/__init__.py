"""Holds one file per operation: query, result, function; commands, routes and client follow."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
