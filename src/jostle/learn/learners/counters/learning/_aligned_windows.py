"""From windows of traced runs to aligned rows: each period laid over the runs alone of all who ran in it.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 8 to 17.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, require_known
from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows
from jostle.learn.learners.counters.solo._solo_counters import SoloCounters, Solos
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, edges_of

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

MOST_EXECUTED = 1.02  # times what is executed alone
# At which rates a run counted alone, (s, d) per second, over stretches between these of its seconds, in which
# so many instructions are executed.
Lay = Callable[[SoloCounters, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
SHORTEST_STRETCH = 0.5  # of a period alone that a period beside others is laid over


def traced_windows(
    traces: Traces, run_ids: Collection[str] | None = None
) -> dict[str, list[Trace]]:
    """Group runs to {window_id: its runs, by slot}; only windows that hold one of run_ids.

    Raises BadData for a run beside others without a window, or whose window lacks a traced co-runner.
    """
    windows: dict[str, list[Trace]] = {}
    for trace in traces:
        if not trace.solo:
            if trace.window_id is None:
                raise BadData(
                    "it ran beside others, but no window says with whom",
                    where=f"the trace of {trace.run_id}",
                    fix="Give runs that were traced together one window_id.",
                )
            windows.setdefault(trace.window_id, []).append(trace)
    wanted = None if run_ids is None else set(run_ids)
    by_window = {}
    for name, runs in windows.items():
        runs.sort(key=lambda run: (run.core, *executed_and_took([run]), run.run_id))
        if wanted is not None and wanted.isdisjoint(run.run_id for run in runs):
            continue
        if len(runs) != 1 + len(runs[0].corunners):
            raise BadData(
                f"{len(runs)} traced runs, but {runs[0].workload!r} ran beside {len(runs[0].corunners)}",
                where=f"window {name}",
                fix="Trace all that run in a window.",
            )
        by_window[name] = runs
    return by_window


def aligned_rows(
    windows: Mapping[str, Sequence[Trace]],
    solos: Solos,
    lay: Lay = lambda solo, begin, end, _: solo.section(begin, end),
    *,
    loop: bool = False,
) -> AlignedRows:
    """Return the periods in which all members of a window still ran.

    Periods in which less was done than alone in half a period are joined to the next. The rows of a period
    that touches an idle stretch of any member, or in which nothing was executed, are left out: there the
    instructions do not tell how far the workload is. Where the samples of two members do not end
    together, the co-runner's progress is taken at the other's times. loop: runs began anew where they ended
    before their window. lay: by default the mean over exactly each stretch. Raises BadData where a run
    executed over 2% more instructions than alone: it is not the same program.
    """
    parts: list[AlignedRows] = []
    groups: dict[tuple[str, ...], int] = {}
    members: list[tuple[str, str, tuple[str, ...]]] = []
    for runs in sorted(windows.values(), key=executed_and_took):
        key = (runs[0].platform, *sorted(run.workload for run in runs))
        group = groups.setdefault(key, len(groups))
        tracks = [_track(run, solos, loop) for run in runs]
        for place, run in enumerate(runs):
            members.append((run.platform, run.workload, run.corunners))
            times = _shared_times(tracks, place)
            if len(times) >= 2:
                parts.append(_rows_of_one(tracks, place, times, lay, group, len(members) - 1))
    if not parts:
        raise BadData("no window has a period in which all of its runs ran", where="the traces")
    sets = tuple(key[1:] for key in groups)
    return replace(AlignedRows.concatenate(parts), sets=sets, members=tuple(members))


def executed_and_took(runs: Sequence[Trace]) -> tuple[float, ...]:
    """Return the key that orders windows: what was measured, so that names do not matter."""
    executed = [float(np.nansum(run.counters.get(INSTRUCTIONS, 0.0))) for run in runs]
    return tuple(executed + [float(run.time_seconds.sum()) for run in runs])


def is_looped(windows: Mapping[str, Sequence[Trace]], solos: Solos) -> bool:
    """Tell whether members began anew: more of them executed more than they do alone than stopped at that
    much while others went on. Those that did not get so far, and the last of a window, do not tell."""
    again = 0
    for runs in windows.values():
        last = max(float(run.time_seconds[-1]) for run in runs)
        for run in runs:
            alone = solos.of(run.workload, run.platform).instructions
            executed = float(np.nansum(run.counters.get(INSTRUCTIONS, 0.0))) / alone
            ended = float(run.time_seconds[-1] + 0.5 * run.interval_seconds[-1]) < last
            if executed > MOST_EXECUTED:
                again += 1
            elif ended and executed > 1 / MOST_EXECUTED:
                again -= 1
    return again > 0


@dataclass(frozen=True)
class _MemberTrack:
    """A member of a window: what it counts alone, and (s + 1,) instructions executed by its edges."""

    solo: SoloCounters
    edges_seconds: np.ndarray
    executed: np.ndarray


def _track(run: Trace, solos: Solos, loop: bool) -> _MemberTrack:
    solo = solos.of(run.workload, run.platform)
    where = f"the trace of {run.run_id}"
    edges = edges_of(run, where)
    require_known("counter", INSTRUCTIONS, run.counters, where=where)
    count = run[INSTRUCTIONS]
    if np.isnan(count).any():
        raise BadData(f"{np.isnan(count).sum()} samples have no instructions", where=where)
    executed = np.concatenate([[0.0], np.cumsum(count)])
    over = executed[-1] / solo.instructions
    if over > MOST_EXECUTED and not loop:
        raise BadData(
            f"it executed {over:.3g} times the instructions of {solo.workload!r} alone",
            where=where,
            fix="Trace the same program with the same input alone and beside others; where runs repeat until "
            "their window ends, say so with corunners='loop'.",
        )
    return _MemberTrack(solo, edges, executed)


def _shared_times(tracks: Sequence[_MemberTrack], place: int) -> np.ndarray:
    """Edges of one member's periods in which all others still ran, short stretches joined."""
    track = tracks[place]
    edges = track.edges_seconds
    n = int((edges <= min(one.edges_seconds[-1] for one in tracks)).sum())
    steps = np.diff(edges[:n])
    # A last sample that is much shorter than the others says little.
    if len(steps) and steps[-1] < 0.5 * np.median(steps):
        n -= 1
    return edges[_joined(track.solo, track.executed[:n])]


def _joined(solo: SoloCounters, executed: np.ndarray) -> list[int]:
    """Join periods in which less was done than alone in half a period to those after them. Returns the edges
    left.

    Inside a sample of the run alone instructions are taken as even. Where it holds the end of a phase
    with few instructions, a period beside others may seem to pass next to none of it, and the next one
    too much: together they are right.
    """
    at = solo.seconds_at(executed)
    cuts, last, least = [0], float(at[0]), SHORTEST_STRETCH * solo.period_seconds
    for k, now in enumerate(at.tolist()):
        if now - last >= least:
            cuts.append(k)
            last = now
    return cuts


def _rows_of_one(
    tracks: Sequence[_MemberTrack],
    place: int,
    times: np.ndarray,
    lay: Lay,
    group: int,
    number: int,
) -> AlignedRows:
    """Make the rows of one member, between these times."""
    mine = tracks[place]
    count = np.diff(np.interp(times, mine.edges_seconds, mine.executed))
    clear = count > 0
    inside = np.ones(len(count), bool)
    rates, begins = [], []
    for track in tracks:
        solo = track.solo
        at = solo.seconds_at(np.interp(times, track.edges_seconds, track.executed))
        idle = np.concatenate([[0.0], np.cumsum(solo.idle)])[:, None]
        clear &= np.diff(solo.at(idle, at)[:, 0]) <= 1e-9
        clear &= np.diff(at) > 0
        executed = np.diff(solo.at(solo.cumulative[:, :1], at)[:, 0])
        rates.append(lay(solo, at[:-1], at[1:], executed))
        begins.append(at[:-1])
        inside &= solo.inside_phase(at[:-1], at[1:])
    own = rates[place]
    clear &= own[:, 0] > 0
    others = np.sum([rate for k, rate in enumerate(rates) if k != place], axis=0)
    n = int(clear.sum())
    return AlignedRows(
        counters=mine.solo.counters,
        sets=(),
        own=own[clear],
        others=others[clear],
        count=count[clear],
        period_seconds=np.diff(times)[clear],
        group=np.full(n, group),
        run=np.full(n, number),
        begin_seconds=begins[place][clear],
        inside=inside[clear],
    )
