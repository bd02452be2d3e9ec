"""One model of all that the data allow: experts, weighed on what they have not seen.

An expert is one idea of how co-runners slow a workload down. Rooms offer theirs by an entry point of the
group `jostle.experts`; this one knows them by name alone. This file and its stub are the room's whole public
face.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
