"""Kernels of known work, the engines that run them, and exact counts of what a program executes.

Needs `jostle[measure]` (wasmtime) for engines and counts of WebAssembly. `jostle.measure` makes workloads of
what is here; nothing here knows of workloads, windows or campaigns.

The public names are listed in `__init__.pyi` and load on first use.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
