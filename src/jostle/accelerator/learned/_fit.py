"""From runs and applications to what a user holds: times alone, and a stack for each platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.accelerator._device import Device
from jostle.accelerator.applications._application import Application
from jostle.accelerator.learned._alone import idle_seconds, times_alone
from jostle.accelerator.learned._coruns import CoRuns, measured_coruns
from jostle.accelerator.learned._delays import (
    REPEATING,
    Delays,
    Sharing,
    trace_features,
    ways_to_share,
)
from jostle.accelerator.learned._process import drawn_sets
from jostle.accelerator.learned._stack import (
    CoRunStack,
    fit_corun_stack,
    simulation_alone,
)
from jostle.errors import require_known

if TYPE_CHECKING:
    from jostle.runs import Runs

FEWEST_SETS = 12  # of workloads on a platform, from which it has a stack of its own
MOST_ROWS = 2_000  # cells, past which some of the sets are learned from
EVERYWHERE = ""
USUAL_SHARING = "concurrent"  # where nothing says otherwise
ANY_NUMBER = 1_000_000  # of co-runners
MOST_PARTS = 50  # of sets that are left out to tell how far off answers are


@dataclass(frozen=True, eq=False)
class LearnedCoRuns:
    """log_solo: (platforms, workloads). stacks, most: {platform, EVERYWHERE for others: what answers, and
    co-runners in any run}."""

    log_solo: np.ndarray
    stacks: dict[str, CoRunStack]
    most: dict[str, int]
    notes: tuple[str, ...]
    without: tuple[WithoutSets, ...] = ()


@dataclass(frozen=True, eq=False)
class WithoutSets:
    """What a platform's stack is without some sets of workloads. codes: of those, as `together` has them."""

    platform: str
    codes: np.ndarray
    stack: CoRunStack


def learn_coruns(
    runs: Runs,
    applications: dict[str, Application],
    device: Device,
    ways: tuple[str | None, str | None],
    seed: int,
) -> LearnedCoRuns:
    """applications: sorted by name. ways: how kernels and transfers share where that is given. Raises
    UnknownName for a workload of the runs without an application."""
    require_known("workload", runs.colocations.workload_names, applications)
    names = tuple(applications), runs.colocations.platform_names
    trace = np.array([application.solo_seconds for application in applications.values()])
    log_solo, notes = times_alone(runs, names, trace)
    delays = Delays(tuple(applications.values()), device, idle_seconds(log_solo, trace))
    rows = measured_coruns(runs, names, log_solo)
    sharing, bus = ways
    usual = Sharing(sharing or USUAL_SHARING, bus or device.bus, REPEATING)
    stacks = {EVERYWHERE: simulation_alone(usual, len(names[0]))}
    most = {EVERYWHERE: ANY_NUMBER}
    without: list[WithoutSets] = []
    if not len(rows):
        notes = (*notes, "no run beside others: co-runs are as the simulator says")
        return LearnedCoRuns(log_solo, stacks, most, notes)
    possible = delays.affordable(ways_to_share(sharing, bus), rows.target, rows.beside)
    for place, mine in _parts(rows, names[1]).items():
        known = log_solo if place == EVERYWHERE else log_solo[[names[1].index(place)]]
        features = trace_features(delays.applications, np.mean(known, axis=0))
        columns = np.column_stack(list(features.values()))
        sample = mine.take(drawn_sets(mine.together, MOST_ROWS, seed))
        stack, told = fit_corun_stack(sample, delays, possible, columns, seed)
        stacks[place], most[place] = stack, int(sample.degree.max())
        notes = (*notes, *_notes_of(place, (len(sample), len(mine)), stack, told))
        without += _without(place, mine, sample, stack, seed)
    return LearnedCoRuns(log_solo, stacks, most, notes, tuple(without))


def _without(
    place: str, rows: CoRuns, learned: CoRuns, stack: CoRunStack, seed: int
) -> list[WithoutSets]:
    """The stack of the rows learned from without each of some parts of the rows' sets."""
    codes = np.random.default_rng([seed, 13]).permutation(np.unique(rows.together))
    if len(codes) < 2:
        return []
    parts = np.array_split(codes, min(len(codes), MOST_PARTS))
    gone = [np.flatnonzero(np.isin(learned.together, part)) for part in parts]
    return [
        WithoutSets(place, part, stack.without(learned, mine))
        for part, mine in zip(parts, gone, strict=True)
    ]


def _notes_of(place: str, kept: tuple[int, int], stack: CoRunStack, told: str) -> tuple[str, ...]:
    """What its user should know of a platform's stack."""
    where, notes = place or "all platforms", [told]
    if kept[0] < kept[1]:
        notes.insert(0, f"learned from {kept[0]} of {kept[1]} co-runs, whole sets of them")
    if (way := stack.main_way) is not None:
        notes.append(
            f"as if kernels shared {way.sharing}, the bus {way.bus}, co-runners {way.corunners}"
        )
    return tuple(f"{where}: {note}" for note in notes)


def _parts(rows: CoRuns, platforms: Sequence[str]) -> dict[str, CoRuns]:
    """What stacks are learned from: of each platform with enough sets, and of all where one has fewer."""
    parts: dict[str, CoRuns] = {}
    for code, name in enumerate(platforms):
        mine = rows.take(rows.platform == code)
        if len(np.unique(mine.together)) >= FEWEST_SETS:
            parts[name] = mine
    if len(parts) < len(platforms):
        parts[EVERYWHERE] = rows
    return parts
