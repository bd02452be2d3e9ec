"""eps of one edge between two snapshots.

Source: Bondar, Gifford, Phan, Halder, Sec. IV-C. On a tree whose nodes are all constrained the joint law
is Markov, its entropy is the sum of the edges' entropies less that of the inner nodes, which is fixed; so
the problem falls apart into its edges, and each may have its own eps.
"""

from __future__ import annotations

from jostle.bridge.problem._clouds import Cloud, median_cost
from jostle.errors import UsageError


def edge_eps(x: Cloud, y: Cloud, eps: float, unit: str = "spread") -> float:
    """eps of one edge in squared units of the atoms.

    unit: `spread` (times the mean squared distance to the centroid, averaged over both ends), `median`
    (times the median cost) or `absolute` (one eps for all edges, as the paper has it). Where both ends
    are single atoms any eps gives the same coupling, and 1 is returned.
    """
    if unit == "absolute":
        return eps
    if unit == "spread":
        scaled = eps * (x.spread + y.spread) / 2
    elif unit == "median":
        scaled = eps * median_cost(x, y)
    else:
        raise UsageError(f"eps_unit {unit!r} is not known", fix="One of spread, median, absolute.")
    return scaled if scaled > 0 else 1.0
