"""One run without the disturbances of many: repeats of a program, the quiet stretches of each put together.

Unseen neighbours of a shared machine slow a core for a tenth of a second or for many, any time, and never
speed it up. As instructions do not depend on it, every repeat of a program passes the same stretches of
instructions, and each stretch can be taken from a repeat that passed it quickly: not the very quickest, which
would be the one with the luckiest clock, but the one at a low quantile (as `jostle.collect` takes a low
quantile of beats). What it counted on the way comes with it.

The quickest of ten repeats is quicker than the quickest of three. Where times are compared, each is what it
is expected to be with the same number of repeats (`equal_repeats`): the mean of the quantile over all ways to
draw so many of them, which is a weighted sum of the times in order (David and Nagaraja, Order Statistics, 3rd
ed., Sec. 2.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, Track, place_of, track_of

if TYPE_CHECKING:
    from jostle.data import Trace

QUIET_QUANTILE = 0.15
SEGMENT_PERIODS = 10  # long enough that the edges of samples do not matter, shorter than a burst
MOST_DIFFERENCE = 0.02  # between the instructions of two runs of one program


FEW_SETS = 0.1  # share of sets of workloads that may have been repeated less often than all are taken to be


def equal_repeats(traces: Iterable[Trace]) -> int:
    """The number of repeats that times are compared at: nine in ten programs alone, and nine in ten sets of
    workloads, have so many or more."""
    alone = Counter((t.workload, t.platform, t.core) for t in traces if t.solo)
    beside = Counter((t.workload, t.platform, t.core, t.corunners) for t in traces if not t.solo)
    return min(
        int(np.quantile(list(count.values()), FEW_SETS, method="lower"))
        for count in (alone, beside)
        if count
    )


@cache
def quiet_weights(repeats: int, drawn: int | None = None) -> np.ndarray:
    """(repeats,) of sum 1, of times in order, the least first: of the low quantile of `drawn` of them, on
    the mean over all ways to draw; drawn: by default, and at most, all."""
    k = repeats if drawn is None else min(drawn, repeats)
    rank = round(QUIET_QUANTILE * (k - 1))
    ways = [comb(i, rank) * comb(repeats - 1 - i, k - 1 - rank) for i in range(repeats)]
    return np.array(ways, np.float64) / comb(repeats, k)


def quiet_seconds(
    traces: Sequence[Trace], period_seconds: float, repeats: int | None = None
) -> float:
    """How long the program takes, alone or beside others, by the quiet stretches of its repeats; one
    repeat counts as it is. repeats: compared at so many, by default all."""
    if len(traces) == 1:
        return float(traces[0].runtime_seconds)
    tracks = [track_of(trace, (INSTRUCTIONS,)) for trace in traces]
    where = f"the runs of {traces[0].workload!r}"
    times, _ = quiet_track(tracks, SEGMENT_PERIODS * period_seconds, where, repeats)
    return float(times[-1])


def quiet_track(
    tracks: Sequence[Track],
    segment_seconds: float,
    where: str,
    repeats: int | None = None,
) -> Track:
    """One track from those of several repeats, see `quiet_weights`: each stretch takes as long as they say,
    and goes as in the repeat that is nearest to that. Raises BadData where they executed over 2% apart."""
    totals = np.array([counted[-1, 0] for _, counted in tracks])
    if totals.max() > (1 + MOST_DIFFERENCE) * totals.min():
        raise BadData(
            f"they executed from {totals.min():.6g} to {totals.max():.6g} instructions",
            where=where,
            fix="Repeats are of the same program with the same input.",
        )
    middle = int(np.argsort([times[-1] for times, _ in tracks], kind="stable")[len(tracks) // 2])
    times, counted = tracks[middle]
    n = max(1, int(times[-1] / segment_seconds))
    marks = np.interp(np.linspace(0, times[-1], n + 1), times, counted[:, 0]) / totals[middle]
    marks = np.unique(np.clip(marks, 0.0, 1.0))
    marks[0], marks[-1] = 0.0, 1.0
    reached = np.stack([_times_at(t, c[:, 0], marks) for t, c in tracks])
    took = np.diff(reached, axis=1)
    wanted = quiet_weights(len(tracks), repeats) @ np.sort(took, axis=0)
    taken = np.argmin(np.abs(took - wanted), axis=0)
    track_times, track_counts = [np.zeros(1)], [np.zeros((1, counted.shape[1]))]
    now, done = 0.0, np.zeros(counted.shape[1])
    for k, repeat in enumerate(taken.tolist()):
        t, c = tracks[repeat]
        begin, end = reached[repeat, k], reached[repeat, k + 1]
        inside = t[(t > begin) & (t < end)]
        at = np.append(inside, end)
        rise = np.stack([np.interp(at, t, column) - np.interp(begin, t, column) for column in c.T])
        rise[0] *= totals[middle] / totals[repeat]
        stretch = wanted[k] / (end - begin) if end > begin else 1.0
        track_times.append(now + (at - begin) * stretch)
        track_counts.append(done + rise.T)
        now, done = float(track_times[-1][-1]), track_counts[-1][-1]
    return np.concatenate(track_times), np.concatenate(track_counts)


def _times_at(times: np.ndarray, counted: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """(m,) seconds by which so much of all was counted; where it idles there, the end of that."""
    at, part = place_of(marks * counted[-1], counted)
    seconds = times[at] + part * (times[at + 1] - times[at])
    seconds[0], seconds[-1] = 0.0, times[-1]
    return seconds
