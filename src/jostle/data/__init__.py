"""Runs, traces and GPU profiles as tables, and the folder of Parquet files that holds them."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
