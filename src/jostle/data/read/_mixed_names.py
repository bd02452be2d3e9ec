"""Whether runs of one name look like several programs: groups of times with hardly any between them.

One program beside the same company on the same platform takes times of one peak, whatever its law. Then of
three neighbouring ranges of times, equally wide on a log scale, the middle one has no fewer runs than the
poorer of its neighbours, in the mean. Counted in each company by itself and added up, with m the runs of the
poorer neighbours and b those between, b of m + b are as few as seen at most as often as of fair coins. So
company that is slow for some and not for others does not count as another program, and no law of times need
be known.
"""

from __future__ import annotations

import math

import numpy as np

_WIDTHS = 0.2 * 2.0 ** np.arange(0.0, 4.5, 0.5)  # of ranges of times, on a natural log scale
_SHIFTS = 3  # of each, by parts of its width
_FALSE = 0.01  # of imports with one program under each name, told of several, at most
_FEWEST = 7  # runs of a name, under which nothing is as rare
_MOST = 1_000_000  # runs that are looked at


def groups_apart(
    name: np.ndarray, company: np.ndarray, seconds: np.ndarray, seed: int = 0
) -> list[int]:
    """Return the names that look like several programs. name, company: (n,) codes, no company of two names;
    seconds: (n,) positive."""
    sample = slice(None, None, -(-len(name) // _MOST) or 1)
    name, company, seconds = name[sample], company[sample], seconds[sample]
    often = np.bincount(name)[name] >= _FEWEST
    if not often.any():
        return []
    seconds, company = seconds[often], np.unique(company[often], return_inverse=True)[1]
    names, name = np.unique(name[often], return_inverse=True)
    # Within what a clock shows as the same time, times are drawn: else they would be groups.
    tick = int(np.gcd.reduce(np.round(1e6 * seconds).astype(np.int64))) / 1e6
    low, high = np.log(np.maximum(seconds - tick / 2, seconds / 2)), np.log(seconds + tick / 2)
    at = low + (high - low) * np.random.default_rng(seed).random(len(seconds))
    # In each company, too, from its own shortest run on, which then does not count.
    order = np.lexsort((at, company))
    is_shortest = np.diff(company[order], prepend=-1) != 0
    beyond = at - at[order[is_shortest]][company]
    rest = order[~is_shortest]
    every = [(name, company, at), (name[rest], company[rest], beyond[rest])]
    tests = [
        _counts(*one, width, shift)
        for one in every
        if len(one[0])
        for width in _WIDTHS
        for shift in np.arange(_SHIFTS) / _SHIFTS
    ]
    who, outside, inside = (np.concatenate(one) for one in zip(*tests, strict=True))
    is_told = _log_chance(outside, inside) <= math.log(_FALSE / max(len(who), 1))
    return names[np.unique(who[is_told])].tolist()


def _counts(
    name: np.ndarray, company: np.ndarray, at: np.ndarray, width: float, shift: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the runs in each histogram bin whose two neighbours are occupied by the same set of co-runners.
    Returns per bin: the workload's code, the count of the smaller neighbour, summed over sets, and the bin's
    own count. A nearly empty bin between two full ones suggests two programs under one name."""
    place = np.floor(at / width + shift).astype(np.int64)
    place -= place.min()
    span = int(place.max()) + 3
    key, first, count = np.unique(company * span + place, return_index=True, return_counts=True)
    after = np.searchsorted(key, key + 2)
    is_beside = np.append(key, -1)[after] == key + 2
    poorer = np.where(is_beside, np.minimum(count, np.append(count, 0)[after]), 0)
    within = name * span + place
    outside = np.bincount(within[first], poorer)
    (lower,) = np.nonzero(outside)
    inside = np.bincount(within, minlength=len(outside) + 1)[lower + 1]
    return lower // span, outside[lower], inside


def _log_chance(outside: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return (k,) log of a bound on the chance that of fair coins so few fall inside: the largest term of the
    sum times that of the geometric series that its terms stay under."""
    many, few = outside + inside, inside
    log_factorial = np.vectorize(lambda n: math.lgamma(n + 1), otypes=[float])
    ways = log_factorial(many) - log_factorial(few) - log_factorial(outside)
    with np.errstate(divide="ignore", invalid="ignore"):
        sum_ = np.log((many - few + 1) / (many - 2 * few + 1))
    return np.where(outside > inside, ways - many * math.log(2) + sum_, 0.0)
