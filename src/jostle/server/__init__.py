"""Answers the same operations over HTTP, with state, for programs, Kubernetes and Slurm."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
