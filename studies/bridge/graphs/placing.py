"""At which times snapshots catch the most phases, where there can be few."""

from __future__ import annotations

import numpy as np

from jostle.bridge import Snapshots
from jostle.errors import UsageError
from studies.bridge.graphs.clock import clock_of

ENOUGH = 0.05  # of the runs: fewer more in a phase are not worth a snapshot


def place(snapshots: Snapshots, count: int, core: int = 0) -> list[int]:
    """The numbers of `count` of the snapshots, first and last among them, that catch the most phases.

    The clock is known all the time, so it tells beforehand at which times a snapshot would catch phases that
    the others miss: each next one is where it catches most of what runs do and is not caught yet, and when
    all is caught, in the middle of the widest gap. Raises UsageError without a clock that counts beats.
    """
    clock, s = clock_of(snapshots), len(snapshots)
    if clock is None or clock.kind != "beats":
        raise UsageError("snapshots can be placed by a clock that counts beats only")
    if count < 2:
        raise UsageError(f"{count} snapshots cannot be placed")
    if count >= s:
        return list(range(s))
    where = np.array([clock.at(core, float(t))[0] for t in snapshots.times_seconds])  # (s, R)
    phases = np.unique(where[np.isfinite(where)])
    share = np.stack([(where == phase).mean(axis=1) for phase in phases], axis=1)  # (s, phases)
    lasting = share.sum(axis=0)
    chosen = [0, s - 1]
    while len(chosen) < count:
        caught = share[chosen].max(axis=0)
        worth = np.maximum(share - caught, 0) @ lasting
        worth[chosen] = -1.0
        if worth.max() < ENOUGH * lasting.sum() / len(phases):
            done = sorted(chosen)
            wide = int(np.argmax(np.diff(done)))
            chosen.append((done[wide] + done[wide + 1]) // 2)
        else:
            # Of equally good times the middle one: runs that are early or late are in the phase as well.
            best = np.flatnonzero(worth > worth.max() * (1 - 1e-9))
            chosen.append(int(best[len(best) // 2]))
    return sorted(set(chosen))
