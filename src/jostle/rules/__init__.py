"""Simple rules for how much co-runners slow a workload down, and how far each is believed.

Methods that answer about co-locations hold these rules inside, weighed by how close they come to runs not
seen, so that none of them is regretted. This file and its stub are the room's whole public face.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
