"""Rolling forward: from counters alone and a learned slowdown to when each workload ends.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 22 to 44, for any number of workloads: who is left
when one ends goes on beside those that are left; a workload may begin anew until the others have ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.alignment._solve import Lane, Slowdown, solve
from jostle.alignment.solo._counters import SoloCounters
from jostle.alignment.solo._samples import aligned, least_executed, printed_rates
from jostle.errors import UsageError

SHORTEST, FIRST, LONGEST = 128, 512, 4096
FIXED_POINT_ROUNDS = 50


@dataclass(frozen=True)
class Roll:
    """end_seconds: (k,) when each workload ended; NaN for those that loop. edges: (s + 1,) seconds, begin
    and end of the stretches rolled. place: (s + 1, k) how far each was by then, in seconds of its run
    alone."""

    end_seconds: np.ndarray
    edges: np.ndarray
    place: np.ndarray

    def instructions(self, number: int, solo: SoloCounters, edges: np.ndarray) -> np.ndarray:
        """(len(edges) - 1,) instructions that one workload executes between these times."""
        place = np.interp(edges, self.edges, self.place[:, number])
        return np.diff(solo.at(solo.cumulative[:, :1], place)[:, 0])


def roll(
    solos: Sequence[SoloCounters],
    slowdown: Slowdown,
    *,
    loop: Sequence[bool] | None = None,
    alignment: str = "section",
    tables: Sequence[np.ndarray] | None = None,
    own: Sequence[np.ndarray] | None = None,
) -> Roll:
    """Run k workloads, all from time 0. loop: which of them begin anew until no other is left.

    tables: (T + 1, d) running counts of each to align, by default all counters; instructions first. own:
    (T, e) what the slowdown is given of each sample's own, by default the rates of the tables. Who is
    left alone goes on as fast as alone; idle samples last as long as alone. Alignments other than
    `section` go period by period as printed, with a fixed point in each but in `printed` itself. Raises
    UsageError.
    """
    k = len(solos)
    loops = np.zeros(k, bool) if loop is None else np.asarray(loop, bool)
    if not k or len(loops) != k or loops.all():
        raise UsageError("there must be workloads, and at least one that does not loop")
    tau = solos[0].period_seconds
    if any(abs(p.period_seconds - tau) > 1e-9 * tau for p in solos):
        raise UsageError("solo counters of different periods cannot be rolled together")
    tables = [p.cumulative for p in solos] if tables is None else tables
    mine = [None] * k if own is None else own
    lanes = [
        Lane(p, t, bool(once), s) for p, t, once, s in zip(solos, tables, loops, mine, strict=True)
    ]
    duration = np.array([p.duration_seconds for p in solos])
    ends = np.full(k, np.nan)
    place, now = np.zeros(k), 0.0
    edges, places = [np.zeros(1)], [np.zeros((1, k))]
    speed = np.ones(k)
    before: list[float | None] = [None] * k
    length = FIRST
    while np.isnan(ends[~loops]).any():
        active = [i for i in range(k) if np.isnan(ends[i])]
        if len(active) == 1:
            (i,) = active
            now = float(now + duration[i] - place[i])
            place[i] = duration[i]
            times, track = np.array([now]), place[None].copy()
        else:
            here = [lanes[i] for i in active]
            if alignment == "section":
                until, reached, at, rounds = solve(
                    here, active, slowdown, now, place[active], speed[active], length
                )
                grow = 2 if rounds <= 5 else 0.5 if rounds > 10 else 1
                length = int(np.clip(length * grow, SHORTEST, LONGEST))
            else:
                until, reached, at = _period(
                    here, active, slowdown, now, place[active], alignment, before
                )
            going = [n for n, i in enumerate(active) if not loops[i]]
            for n in going:
                if reached[n][-1] >= duration[active[n]] * (1 - 1e-12):
                    until = min(until, float(at[n][-1]))
            times = np.unique(
                np.concatenate([one[(one > now) & (one < until)] for one in at] + [[until]])
            )
            track = np.tile(place, (len(times), 1))
            for n, i in enumerate(active):
                track[:, i] = np.interp(times, at[n], reached[n])
            speed[active] = np.clip((track[-1, active] - place[active]) / (until - now), 0.02, 2.0)
            now, place = until, track[-1].copy()
        edges.append(times)
        places.append(track)
        for i in active:
            if not loops[i] and place[i] >= duration[i] * (1 - 1e-12):
                ends[i], place[i] = now, duration[i]
    return Roll(ends, np.concatenate(edges), np.concatenate(places))


def _period(
    lanes: Sequence[Lane],
    numbers: Sequence[int],
    slowdown: Slowdown,
    now: float,
    place: np.ndarray,
    alignment: str,
    before: list[float | None],
) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
    """One period as the paper has it: aligned samples where each is, instructions executed from there.
    before: of all workloads, how many the period before executed, brought up to date."""
    tau = lanes[0].solo.period_seconds
    end = place + tau
    for _ in range(FIXED_POINT_ROUNDS):
        rates = [
            printed_rates(lane.solo, before[i], lane.table)
            if alignment == "printed"
            else aligned(alignment, lane.solo, place[n : n + 1], end[n : n + 1], table=lane.table)
            for n, (i, lane) in enumerate(zip(numbers, lanes, strict=True))
        ]
        new = np.empty(len(lanes))
        for n, (i, lane) in enumerate(zip(numbers, lanes, strict=True)):
            others = np.sum([r for k, r in enumerate(rates) if k != n], axis=0)
            slow = slowdown(i, rates[n], others)
            predicted = float(rates[n][0, 0] / slow[0]) * tau
            if alignment == "printed":
                before[i] = predicted = max(predicted, least_executed(lane.solo))
            new[n] = _advance(lane, float(place[n]), predicted)
        change = np.abs(new - end).max()
        end = new
        if change <= 1e-6 * tau or alignment == "printed":
            break
    times = np.array([now, now + tau])
    own, at = [], []
    for n, lane in enumerate(lanes):
        edge, when = np.array([place[n], end[n]]), times
        if not lane.loop and end[n] >= lane.duration:
            part = (lane.duration - place[n]) / (end[n] - place[n])
            edge, when = np.array([place[n], lane.duration]), np.array([now, now + part * tau])
        own.append(edge)
        at.append(when)
    return now + tau, own, at


def _advance(lane: Lane, place: float, instructions: float) -> float:
    """The place after so many instructions from `place` on; an idle sample passes as fast as alone."""
    solo, tau = lane.solo, lane.solo.period_seconds
    lap = np.floor(place / lane.duration * (1 + 1e-15)) if lane.loop else 0.0
    inside = place - lap * lane.duration
    index = min(int(inside / tau * (1 + 1e-12)), solo.periods - 1)
    if solo.idle[index]:
        return place + tau
    work = solo.work
    begin = work[index] + (inside / tau - index) * (work[index + 1] - work[index])
    whole = float(np.interp(lane.duration, solo.edges, work))
    reached = begin + instructions
    if not lane.loop:
        # Past the end at the last rate, so that the moment of the end is known.
        beyond = max(reached - whole, 0.0) / ((work[-1] - work[-2]) / tau)
        return float(min(np.interp(reached, work, solo.edges), lane.duration)) + beyond
    rounds = np.floor(reached / whole)
    inside = float(np.interp(reached - rounds * whole, work, solo.edges))
    return (lap + rounds) * lane.duration + inside
