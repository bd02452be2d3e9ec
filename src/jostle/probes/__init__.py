"""Runtimes beside others from runs beside stressors alone.

Every program is measured alone and beside a few stressors, which is linear in programs; no pair of
programs has to be measured. Answering needs only NumPy.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
