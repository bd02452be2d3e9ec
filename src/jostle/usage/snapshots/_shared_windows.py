"""Which runs of several workloads were recorded side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

FEWEST_WINDOWS = 8  # for what is busy together to be told from them


def common_rows(members: Sequence[tuple[Hashable, Sequence[str | None]]]) -> np.ndarray:
    """Return (windows, members) which run of each member is in each window that all of them share.
    members: what each is, and the windows of its runs; those that are the same take different runs of a
    window."""
    places: list[dict[str, list[int]]] = []
    for _, windows in members:
        own: dict[str, list[int]] = {}
        for row, label in enumerate(windows):
            if label is not None:
                own.setdefault(label, []).append(row)
        places.append(own)
    nth, taken = [], Counter[Hashable]()
    for key, _ in members:
        nth.append(taken[key])
        taken[key] += 1
    rows = [
        [own[label][n] for own, n in zip(places, nth, strict=True)]
        for label in sorted(places[0])
        if all(n < len(own.get(label, ())) for own, n in zip(places, nth, strict=True))
    ]
    return np.array(rows, np.int64).reshape(-1, len(members))
