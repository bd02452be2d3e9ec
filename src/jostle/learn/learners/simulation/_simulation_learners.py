"""Base learners on co-runs of profiled workloads: processes over their traces, and simulations of these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jostle._base.tensors import UNSAVED, Serializable
from jostle.gpu import USUAL_SHARING, Application, Device
from jostle.learn.contract._method_registry import Restores
from jostle.learn.learners.simulation._accelerator_settings import AcceleratorSettings
from jostle.learn.learners.simulation._coruns import CoRuns
from jostle.learn.learners.simulation._delays import REPEATING, Delays, Sharing
from jostle.learn.learners.simulation._sharing_selection import (
    CAN_TELL,
    KEPT_OF_FEW,
    KEPT_WAYS,
    best_ways,
)
from jostle.learn.learners.simulation._simulated_coruns import (
    CoRunCells,
    CoRunPart,
    cell_table_of,
    hardware_of,
    log_seconds_alone,
)
from jostle.learn.learners.simulation._simulation_members import (
    LEVEL,
    LOG,
    NOTHING,
    PROCESS,
    SCALES,
    SECONDS,
    CoRunMember,
    CoRunRecipe,
    Simulated,
)
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

if TYPE_CHECKING:
    from jostle.learn.contract._data import Data
    from jostle.learn.training._training_data import TrainingRuns

ROWS_AT_ONCE = 4_000  # that are answered in one step
LEAST_DELAY = 0.05  # of the time alone, for each set that is simulated, besides its delay
MOST_OF_SUM = 3.0  # times what smaller sets add, at most
ANY_NUMBER = 1_000_000  # of co-runners
SIMULATION = "simulation"


@dataclass(frozen=True, eq=False)
class FittedCoRuns(Serializable):
    """applications: those that are simulated, none where nothing is. code: (workloads,) the place of each
    among those with a profile, -1 without. log_solo: (cells,) log seconds. idle_seconds: as Delays has them.
    parts: what answers by each label, of the platforms that part_of (platforms,) gives the same number; most:
    (parts,) co-runners in any run that it learned from. learned: what each part learned from."""

    labels: tuple[str, ...]
    applications: tuple[Application, ...]
    device: Device
    code: np.ndarray
    log_solo: np.ndarray
    idle_seconds: np.ndarray
    parts: tuple[tuple[CoRunMember, ...], ...]
    part_of: np.ndarray
    most: np.ndarray
    notes: tuple[str, ...]
    learned: tuple[CoRunPart, ...] = field(default=(), metadata=UNSAVED)

    def members_of(self, platform: int) -> dict[str, CoRunMember]:
        """Return the platform's members by label."""
        return dict(zip(self.labels, self.parts[int(self.part_of[platform])], strict=True))

    def log_slowdowns(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        """Predict (k, n) log slowdowns; NaN for workloads without a profile."""
        w, out = cell_table.workloads, np.full((len(self.labels), len(rows)), np.nan)
        is_known = self.code[rows.target % w] >= 0
        is_known[rows.row[self.code[rows.corunner % w] < 0]] = False
        part = self.part_of[rows.target // w]
        for number, members in enumerate(self.parts):
            mine = np.flatnonzero(is_known & (part == number))
            for start in range(0, len(mine), ROWS_AT_ONCE):
                some = np.zeros(len(rows), bool)
                some[mine[start : start + ROWS_AT_ONCE]] = True
                coruns = CoRuns.coded(rows.take(some), self.code, self.log_solo)
                out[:, some] = self._answers(members, coruns, int(self.most[number]))
        return out

    def _answers(self, members: tuple[CoRunMember, ...], rows: CoRuns, most: int) -> np.ndarray:
        """Predict (k, n). For more co-runners than any run had, add up what smaller sets add, as far as the
        simulation adds up, but never less than one of them."""
        delays = Delays(self.applications, self.device, self.idle_seconds)
        simulated = Simulated.of(rows, delays, _ways_of(members))
        out = [member.log_slowdown(rows, simulated) for member in members]
        more = rows.degree > most
        if not more.any():
            return np.reshape(out, (len(members), len(rows)))
        larger = rows.take(more)
        sets, of = larger.smaller(most)
        parts = Simulated.of(sets, delays, _ways_of(members))
        for answer, member in zip(out, members, strict=True):
            extra = np.expm1(member.log_slowdown(sets, parts))
            total, top = np.bincount(of, extra) / most, np.full(len(larger), -np.inf)
            np.maximum.at(top, of, extra)
            if member.recipe.way is not None:
                least = LEAST_DELAY * simulated.alone[member.recipe.way][more]
                whole = simulated.delay[member.recipe.way][more] + least
                summed = np.bincount(of, parts.delay[member.recipe.way] + least[of]) / most
                total = total * np.clip(whole / summed, most / larger.degree, MOST_OF_SUM)
            answer[more] = np.log1p(np.maximum(total, top))
        return np.stack(out)

    def without(self, part: TrainingRuns, wanted: Collection[str]) -> FittedCoRuns:
        """Refit the wanted answers on this part of the campaign alone, at the same strengths."""
        kept = [at for at, label in enumerate(self.labels) if label in wanted]
        parts, most = [], []
        for own, members in zip(self.learned, self.parts, strict=True):
            gone = ~np.isin(own.places, part.place)
            parts.append(tuple(members[at].without(np.flatnonzero(gone)) for at in kept))
            most.append(_most(own.rows.take(~gone)))
        return replace(
            self,
            labels=tuple(self.labels[at] for at in kept),
            parts=tuple(parts),
            most=np.array(most),
            log_solo=log_seconds_alone(part).ravel(),
        )


@dataclass(frozen=True)
class _CoRunLearner(Restores, ABC):
    """settings: of the device. Learns from co-runs of workloads that all have a profile."""

    settings: AcceleratorSettings = field(default_factory=AcceleratorSettings)
    fitted: ClassVar[str] = "jostle.learn.learners.simulation._simulation_learners:FittedCoRuns"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "profiles"})
    leaves_out: ClassVar[bool] = True
    simulates: ClassVar[bool] = True  # and adds up what smaller sets of more co-runners cost

    def trace_seconds(self, data: Data, learned: dict[Any, Any]) -> Mapping[str, float]:
        """Return {workload: seconds alone} by the profiles."""
        hardware = hardware_of(self.settings, data, learned)
        return {} if hardware is None else {n: a.solo_seconds for n, a in hardware[0].items()}

    @abstractmethod
    def recipes(self, cell_table: CoRunCells, part: CoRunPart, seed: int) -> dict[str, CoRunRecipe]:
        """Return the recipe behind each label."""

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedCoRuns:
        cell_table = cell_table_of(self.settings, campaign)
        assert cell_table is not None  # or there are no labels
        labels, parts, notes, applications = (), [], [], ()
        for part in cell_table.parts:
            every = self.recipes(cell_table, part, seed)
            recipes = {label: every[label] for label in every if label in wanted}
            labels = tuple(recipes)
            parts.append(tuple(cell_table.member(part, one, seed) for one in recipes.values()))
            notes += [part.note] * bool(part.note)
            way = next((recipe.way for recipe in recipes.values() if recipe.way is not None), None)
            if way is not None:
                applications = tuple(cell_table.delays.applications)
                how = f"kernels shared {way.sharing}, the bus {way.bus}, co-runners {way.corunners}"
                notes.append(f"{part.name}: as if {how}")
        return FittedCoRuns(
            labels,
            applications,
            cell_table.delays.device,
            cell_table.code,
            log_seconds_alone(campaign).ravel(),
            np.asarray(cell_table.delays.idle_seconds),
            tuple(parts),
            cell_table.part_of,
            np.array([_most(part.rows) for part in cell_table.parts]),
            (*notes, *(f"{a.name}: {note}" for a in applications for note in a.notes)),
            cell_table.parts,
        )


class TraceProcessLearner(_CoRunLearner):
    """Gaussian processes over names and over what traces are like."""

    name: ClassVar[str] = "traces"

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        cell_table = cell_table_of(self.settings, campaign)
        return () if cell_table is None or not cell_table.has_rows else tuple(_PROCESSES)

    def recipes(self, cell_table: CoRunCells, part: CoRunPart, seed: int) -> dict[str, CoRunRecipe]:
        return _PROCESSES


class SimulationLearner(_CoRunLearner):
    """Solo profiles simulated side by side, in the ways to share that fit best, and what these leave over."""

    name: ClassVar[str] = "simulation"
    usual: ClassVar[dict[str, int]] = {SIMULATION: 0}

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        cell_table = cell_table_of(self.settings, campaign)
        if cell_table is None:
            return ()
        if not cell_table.has_rows:
            return (SIMULATION,)
        return tuple(label for scale in SCALES for label in _of_ways(cell_table, scale, []))

    def recipes(self, cell_table: CoRunCells, part: CoRunPart, seed: int) -> dict[str, CoRunRecipe]:
        sharing, bus = self.settings.sharing or USUAL_SHARING, cell_table.delays.device.bus
        if not cell_table.has_rows:
            return {SIMULATION: CoRunRecipe(NOTHING, LOG, Sharing(sharing, bus, REPEATING))}
        simulated = Simulated.of(part.rows, cell_table.delays, set(cell_table.ways))
        recipes = {}
        for scale in SCALES:
            best = best_ways(part.rows, simulated, cell_table.ways, scale, seed)
            recipes |= _of_ways(cell_table, scale, best)
        return recipes


def _label(what: str, scale: str) -> str:
    return what if scale == LOG else f"{what} of {scale}"


_PROCESSES = {_label("process of traces", scale): CoRunRecipe(PROCESS, scale) for scale in SCALES}


def _of_ways(cell_table: CoRunCells, scale: str, ways: Sequence[Sharing]) -> dict[str, CoRunRecipe]:
    """Return {label: recipe} on ways to share by rank, the best first; of a missing rank, the last."""
    few = cell_table.fewest_sets < CAN_TELL
    ranks = KEPT_OF_FEW if few and scale == SECONDS else KEPT_WAYS[scale]
    by_rank = [ways[min(rank, len(ways) - 1)] if ways else None for rank in range(ranks)]
    recipes = {
        _label(SIMULATION, scale): CoRunRecipe(NOTHING, scale, by_rank[0]),
        _label(f"{SIMULATION} and level", scale): CoRunRecipe(LEVEL, scale, by_rank[0]),
    }
    what = _label(f"{SIMULATION} and process", scale)
    recipes |= {
        f"{what} {rank}": CoRunRecipe(PROCESS, scale, way) for rank, way in enumerate(by_rank)
    }
    if few:
        # Few sets say little of what counts at all, so what is expected of it is tried in two ways.
        wide = CoRunRecipe(PROCESS, scale, by_rank[0], is_wide=True)
        recipes[_label(f"{SIMULATION} and wide process", scale)] = wide
    return recipes


def _most(rows: CoRuns) -> int:
    """Co-runners; any number where no row tells of their effects."""
    return int(rows.degree.max(initial=0)) or ANY_NUMBER


def _ways_of(members: Sequence[CoRunMember]) -> set[Sharing]:
    return {member.recipe.way for member in members if member.recipe.way is not None}
