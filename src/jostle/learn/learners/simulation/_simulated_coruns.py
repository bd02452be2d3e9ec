"""What base learners on co-runs learn from: applications, their simulations, and runs beside others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import JostleError
from jostle.gpu import Application, Device
from jostle.learn.learners.simulation._accelerator_settings import AcceleratorSettings
from jostle.learn.learners.simulation._coruns import CoRuns
from jostle.learn.learners.simulation._delays import Delays, Sharing, trace_features, ways_to_share
from jostle.learn.learners.simulation._residual_process import drawn_sets
from jostle.learn.learners.simulation._simulation_members import (
    CoRunMember,
    CoRunRecipe,
    Simulated,
    fit_member,
)

if TYPE_CHECKING:
    from jostle.learn.contract._data import Data
    from jostle.learn.training._training_data import TrainingRuns

FEWEST_SETS = 12  # of workloads on a platform, from which it has members of its own
MOST_ROWS = 2_000  # cells, past which some of the sets are learned from


@dataclass(frozen=True, eq=False)
class CoRunPart:
    """What members are learned from. name: of the platform, empty for several. rows: one of each cell.
    places: which run of the campaign each is, the first of its cell. features: (w, f) of the traces. note:
    what is not learned from, empty for nothing."""

    name: str
    rows: CoRuns
    places: np.ndarray
    features: np.ndarray
    note: str


@dataclass(frozen=True, eq=False)
class CoRunCells:
    """code: (workloads,) the place of each among those with a profile, -1 without. ways: to share, that there
    is time to simulate. parts: of the platforms that part_of (platforms,) gives the same number. known: what
    was learned from them."""

    delays: Delays
    code: np.ndarray
    ways: Sequence[Sharing]
    parts: tuple[CoRunPart, ...]
    part_of: np.ndarray
    known: dict[Any, CoRunMember] = field(default_factory=dict)

    def member(self, part: CoRunPart, recipe: CoRunRecipe, seed: int) -> CoRunMember:
        """Learned from the part, once."""
        key = part.name, recipe, seed
        if key not in self.known:
            ways = set() if recipe.way is None else {recipe.way}
            simulated = Simulated.of(part.rows, self.delays, ways)
            self.known[key] = fit_member(recipe, part.rows, simulated, part.features, seed)
        return self.known[key]

    @property
    def has_rows(self) -> bool:
        """True if any workload ran beside others."""
        return any(len(part.rows) for part in self.parts)

    @property
    def fewest_sets(self) -> int:
        """The smallest number of sets in any part."""
        return min(len(np.unique(part.rows.together)) for part in self.parts)


def hardware_of(
    settings: AcceleratorSettings, data: Data, learned: dict[Any, Any]
) -> tuple[dict[str, Application], Device] | None:
    """Read ({workload: its application}, the device) from the data's profiles, once; None if there are none
    that can be used."""
    key = "hardware", settings
    if key not in learned:
        try:
            profiles = data.profiles
            learned[key] = settings.hardware(profiles) if profiles else None
        except (JostleError, ModuleNotFoundError):
            learned[key] = None
    return learned[key]


def cell_table_of(settings: AcceleratorSettings, campaign: TrainingRuns) -> CoRunCells | None:
    """Make the cells of all of a campaign, once; None without profiles of its workloads."""
    learned = campaign.common.learned
    key = "co-runs", settings
    if key not in learned:
        hardware = hardware_of(settings, campaign.common.data, learned)
        learned[key] = None if hardware is None else _cells_of(settings, campaign.whole, hardware)
    return learned[key]


def _cells_of(
    settings: AcceleratorSettings,
    campaign: TrainingRuns,
    hardware: tuple[dict[str, Application], Device],
) -> CoRunCells | None:
    workloads, platforms = campaign.names
    profiled = [at for at, name in enumerate(workloads) if name in hardware[0]]
    if not profiled:
        return None
    code = np.full(len(workloads), -1)
    code[profiled] = np.arange(len(profiled))
    applications = tuple(hardware[0][workloads[at]] for at in profiled)
    log_solo = log_seconds_alone(campaign)[:, profiled]
    trace = np.array([application.solo_seconds for application in applications])
    # How much longer than its trace a run takes alone, in which it leaves the device idle.
    idle = np.maximum(np.nanmedian(np.exp(log_solo) - trace, axis=0), 0.0)
    delays = Delays(applications, hardware[1], idle)
    rows, places = _learned_from(campaign, code)
    ways = ways_to_share(settings.sharing, settings.bus)
    ways = delays.affordable(ways, rows.target, rows.beside)
    own = [
        number
        for number in range(len(platforms))
        if len(np.unique(rows.together[rows.platform == number])) >= FEWEST_SETS
    ]
    part_of = np.full(len(platforms), len(own))
    part_of[own] = np.arange(len(own))
    parts = [
        _part_of(platforms[p], rows.platform == p, rows, places, log_solo[p], applications)
        for p in own
    ]
    if len(own) < len(platforms):
        every = np.ones(len(rows), bool)
        alone = np.mean(log_solo, axis=0)
        parts.append(_part_of("all platforms", every, rows, places, alone, applications))
    return CoRunCells(delays, code, ways, tuple(parts), part_of)


def _part_of(
    name: str,
    mine: np.ndarray,
    rows: CoRuns,
    places: np.ndarray,
    log_solo: np.ndarray,
    applications: Sequence[Application],
) -> CoRunPart:
    sample = np.flatnonzero(mine)[drawn_sets(rows.together[mine], MOST_ROWS, 0)]
    note = f"{name}: learned from {len(sample)} of {mine.sum()} co-runs, whole sets of them"
    features = trace_features(applications, log_solo)
    note = note if len(sample) < mine.sum() else ""
    return CoRunPart(name, rows.take(sample), places[sample], features, note)


def log_seconds_alone(campaign: TrainingRuns) -> np.ndarray:
    """Return (platforms, workloads) log seconds alone."""
    return campaign.log_solo + np.log(campaign.common.usual_seconds)


def _learned_from(campaign: TrainingRuns, code: np.ndarray) -> tuple[CoRuns, np.ndarray]:
    """Return (one of each cell of the runs beside others whose members all have a profile, their rows)."""
    workloads, every = len(code), campaign.every_row
    is_known = campaign.is_training_row & (code[every.target % workloads] >= 0)
    is_known[every.row[code[every.corunner % workloads] < 0]] = False
    rows, places = every.take(is_known), campaign.place[is_known]
    coruns = CoRuns.coded(rows, code, log_seconds_alone(campaign).ravel())
    seconds = coruns.solo * np.exp(rows.log_slowdown)
    return replace(coruns, seconds=seconds).cells(places)
