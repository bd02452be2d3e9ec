"""What is learned from: each period of each window, laid over the runs alone of all who ran in it.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 8 to 17.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.alignment.solo._counters import INSTRUCTIONS, Profile, edges_of
from jostle.alignment.solo._quiet import SEGMENT_PERIODS, quiet_rows
from jostle.alignment.solo._samples import aligned
from jostle.errors import BadData, UnknownName

if TYPE_CHECKING:
    from jostle.traces import Trace, Traces


SHORTEST_STRETCH = 0.5  # of a period alone that a period beside others is laid over


@dataclass(frozen=True)
class Rows:
    """n periods of workloads beside others. own, others: (n, d) aligned counts per second of the run alone,
    those of all others added up. count: (n,) instructions executed in the period; period_seconds: (n,) its
    length. slot, other: (n,) where it ran and the first of the others. group: (n,) equal for all windows of
    the same workloads, whichever is the target: its number in `sets`. run: (n,) number of the run.
    begin_seconds: (n,) where the period begins in the run alone."""

    counters: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    own: np.ndarray
    others: np.ndarray
    count: np.ndarray
    period_seconds: np.ndarray
    slot: np.ndarray
    other: np.ndarray
    group: np.ndarray
    run: np.ndarray
    begin_seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.count)

    @property
    def slowdown(self) -> np.ndarray:
        """(n,) aligned instructions per second alone over those executed per second beside others."""
        return self.own[:, 0] * self.period_seconds / self.count

    @property
    def solo_seconds(self) -> np.ndarray:
        """(n,) how long the same stretch takes alone: what a slowdown is of, and so its weight."""
        return self.count / self.own[:, 0]

    def take(self, index: np.ndarray) -> Rows:
        return Rows(
            self.counters,
            self.sets,
            **{k: v[index] for k, v in vars(self).items() if k not in ("counters", "sets")},
        )

    def columns(self, at: Sequence[int]) -> Rows:
        """The same rows with only the counters at these places, in this order."""
        kept = list(at)
        names = tuple(self.counters[i] for i in kept)
        return replace(self, counters=names, own=self.own[:, kept], others=self.others[:, kept])

    @staticmethod
    def concatenate(parts: Sequence[Rows]) -> Rows:
        names = [k for k in vars(parts[0]) if k not in ("counters", "sets")]
        return Rows(
            parts[0].counters,
            parts[0].sets,
            **{k: np.concatenate([getattr(p, k) for p in parts]) for k in names},
        )


def windows_of(traces: Traces, run_ids: Sequence[str] | None = None) -> dict[str, list[Trace]]:
    """{window_id: its runs, in the order of their slots}; only windows that hold one of run_ids.

    Raises BadData for a run beside others without a window, or whose window lacks a traced co-runner.
    """
    wanted = None if run_ids is None else set(run_ids)
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
    found = {}
    for name, runs in windows.items():
        runs.sort(key=lambda run: (run.core, run.run_id))
        if wanted is not None and not any(run.run_id in wanted for run in runs):
            continue
        if len(runs) != 1 + len(runs[0].corunners):
            raise BadData(
                f"{len(runs)} traced runs, but {runs[0].workload!r} ran beside {len(runs[0].corunners)}",
                where=f"window {name}",
                fix="Trace all that run in a window.",
            )
        found[name] = runs
    return found


def slots_of(runs: Sequence[Trace]) -> list[int]:
    """Their cores where those differ, else 0 for all: who ran where was not told, so it is no feature."""
    cores = [run.core for run in runs]
    return cores if len(set(cores)) == len(cores) else [0] * len(runs)


class Profiles:
    """Profiles by workload, platform and slot; a slot without one takes that of another slot."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self.all = tuple(profiles)
        self._by_name: dict[tuple[str, str], dict[int, Profile]] = {}
        for profile in profiles:
            home = self._by_name.setdefault((profile.platform, profile.workload), {})
            home.setdefault(profile.slot, profile)

    def of(self, workload: str, platform: str, slot: int) -> Profile:
        """Raises UnknownName where the workload has no trace alone on the platform."""
        home = self._by_name.get((platform, workload))
        if home is None:
            known = sorted(name for place, name in self._by_name if place == platform)
            kind = f"workload with a trace alone on {platform!r}:"
            raise UnknownName(kind, workload, known)
        return home.get(slot) or next(iter(home.values()))

    def has(self, workload: str, platform: str) -> bool:
        return (platform, workload) in self._by_name

    def slotted(self, workload: str, platform: str) -> bool:
        """Whether it was traced alone on more than one slot."""
        return len(self._by_name.get((platform, workload), ())) > 1

    @property
    def names(self) -> Mapping[tuple[str, str], Mapping[int, Profile]]:
        return self._by_name


def rows_of(
    windows: Mapping[str, Sequence[Trace]],
    profiles: Profiles,
    alignment: str = "section",
    *,
    loop: bool = False,
    quiet: bool = True,
    leave_out: Collection[str] = (),
) -> Rows:
    """The periods in which all members of a window still ran.

    Periods in which less was done than alone in half a period are joined to the next. The rows of a period
    that touches an idle stretch of the target or of a co-runner, or in which nothing was executed, are
    left out: there the instructions do not tell how far the workload is. Where the samples of two members
    do not end together, the co-runner's progress is taken at the target's times. loop: runs began anew
    where they ended before their window. quiet: of three or more windows of the same workloads, each
    stretch only from those that passed it quickly. leave_out: workloads without rows of their own. Raises
    BadData where a run executed over 2% more instructions than alone: it is not the same program.
    """
    parts: list[Rows] = []
    number = 0
    groups: dict[tuple[str, ...], int] = {}
    repeats: dict[tuple[int, str], int] = {}
    same: list[int] = []
    for runs in windows.values():
        key = (runs[0].platform, *sorted(run.workload for run in runs))
        group = groups.setdefault(key, len(groups))
        slots = slots_of(runs)
        solos = [
            profiles.of(run.workload, run.platform, slot)
            for run, slot in zip(runs, slots, strict=True)
        ]
        tracks = [_track(run, solo, loop) for run, solo in zip(runs, solos, strict=True)]
        last = min(edges[-1] for edges, _ in tracks)
        for i, (edges, counted) in enumerate(tracks):
            same.append(repeats.setdefault((group, runs[i].workload), len(repeats)))
            if runs[i].workload in leave_out:
                number += 1
                continue
            whole = edges <= last
            # A last sample that is much shorter than the others says little.
            whole[1:] &= np.diff(edges) >= 0.5 * np.median(np.diff(edges))
            times = edges[: int(np.argmin(whole)) if not whole.all() else len(edges)]
            if len(times) < 2:
                number += 1
                continue
            mine = counted[: len(times)]
            times, mine = _joined(times, mine, solos[i])
            if len(times) < 2:
                number += 1
                continue
            count = np.diff(mine)
            places = [
                solo.seconds_at(np.interp(times, e, c))
                for (e, c), solo in zip(tracks, solos, strict=True)
            ]
            rates, clear = [], count > 0
            for solo, place in zip(solos, places, strict=True):
                spent = np.concatenate([[0.0], np.cumsum(solo.idle)])[:, None]
                clear &= np.diff(solo.at(spent, place)[:, 0]) <= 1e-9
                clear &= np.diff(place) > 0
                executed = np.diff(solo.at(solo.cumulative[:, :1], place)[:, 0])
                rates.append(aligned(alignment, solo, place[:-1], place[1:], count=executed))
            own = rates[i]
            clear &= own[:, 0] > 0
            others = np.sum([r for j, r in enumerate(rates) if j != i], axis=0)
            n = int(clear.sum())
            other = next(slot for j, slot in enumerate(slots) if j != i)
            parts.append(
                Rows(
                    solos[i].counters,
                    (),
                    own[clear],
                    others[clear],
                    count[clear],
                    np.diff(times)[clear],
                    np.full(n, slots[i]),
                    np.full(n, other),
                    np.full(n, group),
                    np.full(n, number),
                    places[i][:-1][clear],
                )
            )
            number += 1
    if not parts:
        raise BadData("no window has a period in which all of its runs ran", where="the traces")
    rows = replace(Rows.concatenate(parts), sets=tuple(key[1:] for key in groups))
    if not quiet or not len(rows):
        return rows
    period = next(iter(profiles.all)).period_seconds
    return quiet_rows(rows, np.array(same), SEGMENT_PERIODS * period)


def _joined(times: np.ndarray, counted: np.ndarray, solo: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Periods in which less was done than alone in half a period, joined to those after them.

    Inside a sample of the run alone instructions are taken as even. Where it holds the end of a phase
    with few instructions, a period beside others may seem to pass next to none of it, and the next one
    too much: together they are right.
    """
    place = solo.seconds_at(counted)
    kept, last, least = [0], float(place[0]), SHORTEST_STRETCH * solo.period_seconds
    for k, at in enumerate(place.tolist()):
        if at - last >= least:
            kept.append(k)
            last = at
    return times[kept], counted[kept]


def _track(run: Trace, solo: Profile, loop: bool) -> tuple[np.ndarray, np.ndarray]:
    """(edges, instructions counted by then)."""
    where = f"the trace of {run.run_id}"
    edges = edges_of(run, where)
    if INSTRUCTIONS not in run.counters:
        raise UnknownName("counter", INSTRUCTIONS, sorted(run.counters), where=where)
    count = run[INSTRUCTIONS]
    if np.isnan(count).any():
        raise BadData(f"{np.isnan(count).sum()} samples have no instructions", where=where)
    counted = np.concatenate([[0.0], np.cumsum(count)])
    over = counted[-1] / solo.instructions
    if over > 1.02 and not loop:
        raise BadData(
            f"it executed {over:.3g} times the instructions of {solo.workload!r} alone",
            where=where,
            fix="Trace the same program with the same input alone and beside others; where runs repeat until "
            "their window ends, say so with corunners='loop'.",
        )
    return edges, counted
