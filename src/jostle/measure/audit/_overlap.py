"""Proof of overlap: of windows measured anew, whether all members repeated all the time, from their beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.measure.campaign._campaign import PlannedWindow
from jostle.measure.campaign._slot_pool import SlotPool
from jostle.measure.slots._beats import beat_times
from jostle.measure.window._assess import Observed
from jostle.measure.window._estimate import Tolerance


@dataclass(frozen=True)
class Overlap:
    """set_name: engine and members. common_ratio: the part of the interval that counts in which everyone was
    between its first and its last beat; longest_beat_ratio: the longest beat of anyone, as a share of the
    interval, which is how long nothing was heard of it. spread_seconds: between the first and the last to
    start. counts: whether a campaign would take it, or repeat it since somebody started too late."""

    set_name: str
    common_ratio: float
    longest_beat_ratio: float
    spread_seconds: float
    counts: bool


def overlap_of(set_name: str, observed: Observed) -> Overlap:
    """From the beats of all members of a window."""
    beats = [beat_times(answer) for answer in observed.answers]
    begin, end = observed.begin_ns, observed.end_ns
    first = max(begin, *(int(times[0]) for times in beats))
    last = min(end, *(int(times[-1]) for times in beats))
    inside = [times[(times >= begin) & (times <= end)] for times in beats]
    longest = max(float(np.diff(np.concatenate([[begin], times, [end]])).max()) for times in inside)
    starts = [int(times[0]) for times in beats]
    whole = end - begin
    allowed_ns = min(Tolerance().lateness_seconds * 1e9, begin - observed.start_ns)
    return Overlap(
        set_name,
        max(0, last - first) / whole,
        longest / whole,
        (max(starts) - min(starts)) * 1e-9,
        max(starts) - observed.start_ns <= allowed_ns,
    )


def overlaps(
    pool: SlotPool, planned: Sequence[PlannedWindow], window_seconds: float
) -> list[Overlap]:
    """Measure these windows, and look at their beats; those with a failure are left out."""
    found: list[Overlap] = []
    for one in planned:

        def look(observed: Observed, name: str = one.set_name) -> None:
            found.append(overlap_of(name, observed))

        pool.measure(one, window_seconds, look)
    return found
