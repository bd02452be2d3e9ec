"""Which core each member of a set runs on, and when, whatever the order they are named in.

Up to as many members as cores: each has a core of its own. More: cores are shared, and who shares
with whom matters, so every balanced way of sharing gets an equal part of the window, one phase each
(three for three or four members on two cores). Left to itself the kernel's balancer moves too
rarely for a short window: one member would keep a core while two others halve theirs, and the
answer would depend on luck.
"""

from __future__ import annotations

import random
from functools import cache

# So many phases a window can have; larger sets get a random choice of the ways to share.
_MOST_PHASES = 12


@cache
def balanced_groups(members: int, cores: int) -> tuple[tuple[int, ...], ...]:
    """Return all ways to share cores evenly: for each the group of every member, groups by appearance.

    Group sizes differ by at most one.
    """
    small, larger = divmod(members, cores)
    ways: list[tuple[int, ...]] = []

    def extend(groups: list[int], sizes: list[int]) -> None:
        if len(groups) == members:
            if sorted(sizes) == [small] * (cores - larger) + [small + 1] * larger:
                ways.append(tuple(groups))
            return
        full = small + (larger > 0)
        for group in range(min(len(sizes) + 1, cores)):
            new = group == len(sizes)
            if not new and sizes[group] >= full:
                continue
            extend(
                [*groups, group],
                [*sizes, 1] if new else [*sizes[:group], sizes[group] + 1, *sizes[group + 1 :]],
            )

    extend([], [])
    return tuple(ways)


def phases(members: int, cores: tuple[int, ...], key: str) -> tuple[tuple[int, ...], ...]:
    """Return one core per member for each phase of a window, the phases of equal length.

    key: what cores are dealt by, so that no core is favoured, yet the same window is placed the
    same again.
    """
    deal = random.Random(f"jostle-placement/{key}")
    dealt = list(cores)
    deal.shuffle(dealt)
    if members <= len(cores):
        return (tuple(dealt[:members]),)
    ways = list(_ways(members, len(cores), deal))
    # Cores are dealt anew in each phase: a difference between cores falls on all members alike.
    return tuple(
        tuple(dealt[(group + turn) % len(dealt)] for group in way) for turn, way in enumerate(ways)
    )


def _ways(members: int, cores: int, deal: random.Random) -> list[tuple[int, ...]]:
    if members <= 8:
        ways = list(balanced_groups(members, cores))
        return ways if len(ways) <= _MOST_PHASES else deal.sample(ways, _MOST_PHASES)
    ways = []
    for _ in range(_MOST_PHASES):
        order = list(range(members))
        deal.shuffle(order)
        ways.append(tuple(place % cores for place in order))
    return ways
