"""Runs as base learners learn from them, in an order, in a unit and under names that do not depend on how
they came.

Fits draw random numbers by the place of a row and the code of a name. So that the order of the rows, the unit
of time and the spelling of names change nothing, all of these are settled by what was measured first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from jostle.data import Runs
from jostle.learn.contract._linear_baseline import fit_baseline, rest_of
from jostle.learn.contract._run_counts import mixed_bits
from jostle.learn.rules._cpu_sharing import with_cores
from jostle.learn.rules._design import cell_table_of, design_of
from jostle.learn.rules._set_residuals import members_key
from jostle.learn.rules._slowdown_rows import CellTable, SlowdownRows, error_weight
from jostle.learn.rules._solo_baseline import fill_solo_from_traces, solo_runtimes

USUAL_REST = 0.1  # variance of a log time alone that is guessed, where the data cannot say
# Weights in a design of what a workload has on all platforms, and of what it has on one: which of them counts
# is told by answers about what was left out.
DESIGNS = {"here": (0.3, 0.6), "by name": (1.0, 1.0)}
TIME_BLOCKS = 24  # of a log, that are left out as one
DIGITS = 9  # to which means are told apart, so that the order of a sum does not matter


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """runs: n with status ok, under canonical names and over the usual time. names: (workloads, platforms),
    those of features and of traces alone included. origin: (n,) which of the runs as they came these
    are. place: (n,) ascending, which of the whole campaign. shared: what base learners keep between its
    folds."""

    runs: Runs
    names: tuple[tuple[str, ...], tuple[str, ...]]
    origin: np.ndarray
    place: np.ndarray
    shared: dict[Any, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.runs)

    def take(self, keep: np.ndarray) -> TrainingRuns:
        """Keep the runs where the mask (n,) is true; names stay."""
        return TrainingRuns(
            self.runs.take(keep), self.names, self.origin[keep], self.place[keep], self.shared
        )

    @property
    def size(self) -> tuple[int, int]:
        """(platforms, workloads)."""
        return len(self.names[1]), len(self.names[0])

    @cached_property
    def codes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(workload (n,), platform (n,), co-runners (m,))."""
        workload, platform, corunner = self.runs.colocations.recode(*self.names)
        return workload.astype(np.int64), platform.astype(np.int64), corunner.astype(np.int64)

    @cached_property
    def degree(self) -> np.ndarray:
        """(n,) numbers of co-runners."""
        return np.asarray(self.runs.colocations.number_of_corunners)

    @property
    def is_input(self) -> np.ndarray:
        """(n,) bool: what base learners read as features of workloads, and nobody is asked about."""
        inputs = self.shared.get("inputs")
        return np.zeros(len(self), bool) if inputs is None else inputs[self.place]

    @property
    def beside(self) -> np.ndarray:
        """(n,) bool: beside others, without the inputs."""
        return (self.degree > 0) & ~self.is_input

    @cached_property
    def cell(self) -> np.ndarray:
        """(n,) platform * workloads + workload."""
        return self.codes[1] * self.size[1] + self.codes[0]

    @cached_property
    def all_ran_alone(self) -> bool:
        """Whether every workload ran alone on every platform, or a trace alone tells of it."""
        return bool((self.ran_alone | self.is_traced).all())

    @property
    def asks_elsewhere(self) -> bool:
        """Whether some workload never ran alone on a platform, of which others may tell."""
        return self.size[0] > 1 and not self.all_ran_alone

    @cached_property
    def log_runtime(self) -> np.ndarray:
        return np.log(self.runs.runtime_seconds)

    @cached_property
    def log_solo(self) -> np.ndarray:
        """(platforms, workloads) log seconds alone: measured, or of a trace, or as workload and platform
        suggest; NaN where nothing does."""
        told, is_traced = self._told_by_runs, self.is_traced.reshape(self.size)
        if not is_traced.any():
            return told
        measured = np.where(self.ran_alone.reshape(self.size), told, np.nan)
        filled = fill_solo_from_traces(measured, self.shared["log_traces"])
        return np.where(is_traced, filled, told)

    @cached_property
    def _told_by_runs(self) -> np.ndarray:
        return solo_runtimes(self.runs, self.names)[0]

    @cached_property
    def is_traced(self) -> np.ndarray:
        """(cells,) bool: a trace tells how long the workload takes alone, and no run does. Where nobody ran
        alone on a platform, how traces relate to times is unknown, and what runs suggest goes first."""
        traces = self.shared.get("log_traces", np.full(self.size[1], np.nan))
        ran_alone = self.ran_alone.reshape(self.size)
        related = ran_alone.any(axis=1, keepdims=True) | np.isnan(self._told_by_runs)
        return (np.isfinite(traces) & ~ran_alone & related).ravel()

    @cached_property
    def ran_alone(self) -> np.ndarray:
        """(cells,) bool."""
        out = np.zeros(self.size[0] * self.size[1], bool)
        out[self.cell[self.degree == 0]] = True
        return out

    @cached_property
    def time_block(self) -> np.ndarray | None:
        """(n,) which of TIME_BLOCKS equal parts of its time each run of a log began in; None for runs that
        were measured by choice. In a log who ran beside whom is a matter of when, so that runs of the same
        time tell of each other what a question about later ones cannot know."""
        table = self.runs.table
        if "node" not in table.column_names or table.column("measured_at").null_count:
            return None
        from jostle.data import time_blocks

        return time_blocks(self.runs, TIME_BLOCKS)

    @cached_property
    def error_of_guesses(self) -> float:
        """Standard error of a log time alone that was not measured."""
        (workload, platform, _), alone = self.codes, self.degree == 0
        coded = workload[alone], platform[alone], self.log_runtime[alone]
        rest = rest_of(*coded, fit_baseline(*coded, *self.size[::-1])) if alone.any() else np.nan
        return float(np.sqrt(rest if np.isfinite(rest) else USUAL_REST))

    @cached_property
    def uses_estimated_solo(self) -> bool:
        """Whether what ran beside others where it never ran alone tells more of slowdowns than what did both,
        by how much each counts: one for all parts of a campaign."""
        whole: TrainingRuns = self.shared.get("whole", self)
        if whole is not self:
            return whole.uses_estimated_solo
        measured = self.ran_alone[self.cell[self.beside]]
        if self.time_block is not None:
            return True  # what ran alone in a log did so by chance
        trust = float(error_weight(np.array(self.error_of_guesses)))
        return bool(trust * (~measured).sum() > measured.sum())

    @cached_property
    def is_training_row(self) -> np.ndarray:
        """(n,) bool: beside others, of what is known alone, but no input."""
        known = np.isfinite(self.log_solo.ravel())
        if not self.uses_estimated_solo:
            known &= self.ran_alone | self.is_traced
        return self.beside & known[self.cell]

    @cached_property
    def sets_of_names(self) -> np.ndarray:
        """(workloads,) in how many sets each ran beside others, wherever."""
        workload, _, corunner = self.codes
        beside = self.beside
        row = np.repeat(np.arange(len(self)), self.degree)
        code = np.unique(self.sets(everywhere=True), return_inverse=True)[1].reshape(-1)
        mine = beside[row]
        name = np.concatenate([workload[beside], corunner[mine]])
        pairs = np.unique(np.stack([name, np.concatenate([code[beside], code[row[mine]]])]), axis=1)
        return np.bincount(pairs[0], minlength=self.size[1])

    @cached_property
    def unit_seconds(self) -> float:
        """Extra seconds that 1 stands for: what is usual."""
        alone = self.log_solo.ravel()[self.cell[self.is_training_row]]
        extra = np.abs(np.exp(self.log_runtime[self.is_training_row]) - np.exp(alone))
        return max(float(np.median(extra)), 1e-12) if len(extra) else 1.0

    @cached_property
    def rows(self) -> SlowdownRows:
        """Those that are learned from, their scale what one unit of time is of the time alone."""
        return self.every_row.take(self.is_training_row)

    @cached_property
    def every_row(self) -> SlowdownRows:
        """All runs, those alone too; NaN where the time alone is unknown."""
        return self.rows_over(self.log_solo, self.unit_seconds)

    def rows_over(self, log_solo: np.ndarray, unit_seconds: float) -> SlowdownRows:
        """Make rows of all runs over other log times alone (platforms, workloads), in other units."""
        alone = log_solo.ravel()[self.cell]
        scale = unit_seconds / np.exp(alone)
        guessed = np.where(self.ran_alone, 0.0, self.error_of_guesses)
        return SlowdownRows.coded(
            *(self.codes, self.degree, self.size[1], self.log_runtime - alone, scale),
            error=np.hypot(self.runs.runtime_error_ratio, guessed[self.cell]),
        )

    @property
    def design(self) -> Any:
        """(cells, d) what tells cells apart, in its own units."""
        return self.designs["here"]

    @cached_property
    def designs(self) -> dict[str, Any]:
        """Each of DESIGNS (cells, d), of one platform "here" alone, as there they say the same: one for all
        parts of a campaign."""
        whole: TrainingRuns = self.shared.get("whole", self)
        if whole is not self:
            return whole.designs
        about = self.names, self.log_solo, self.runs.workload_features
        return {
            name: design_of(*about, *weights)
            for name, weights in DESIGNS.items()
            if name == "here" or self.size[0] > 1
        }

    @cached_property
    def cell_table(self) -> CellTable:
        cell_table = cell_table_of(self.design, self.log_solo)
        return with_cores(cell_table, self.runs, self.names, self.rows)

    def sets(self, everywhere: bool) -> np.ndarray:
        """Return (n,) uint64, equal for the same workloads together, whichever was measured: on the same
        platform, or everywhere."""
        workload, platform, corunner = self.codes
        key = members_key(workload, corunner, np.repeat(np.arange(len(self)), self.degree))
        return mixed_bits(key if everywhere else key + mixed_bits(~platform.astype(np.uint64)))


def campaign_of(
    runs: Runs, trace_seconds: Mapping[str, float] | None = None
) -> tuple[TrainingRuns, tuple[tuple[str, ...], tuple[str, ...]], float]:
    """Return (the campaign of the runs with status ok, the given names of its codes, its usual seconds). Rows
    that all repeat equally often are taken once. trace_seconds: {workload: s} of a trace alone, also of
    workloads that never ran."""
    from jostle.data import all_names  # brings Arrow, which answering does without

    traced = trace_seconds or {}
    names, runs = all_names(runs), runs.ok()
    names = tuple(sorted({*names[0], *traced})), names[1]
    kept = _distinct(runs)
    part = runs.take(kept)
    usual = float(np.median(part.runtime_seconds)) if len(part) else 1.0
    order = _order_of_names(part, names, usual)
    real = tuple(
        tuple(all_of[at] for at in place) for all_of, place in zip(names, order, strict=True)
    )
    renamed = _renamed(part, names, order, usual)
    at = _order_of_rows(renamed)
    canonical = tuple(tuple(_label(n, len(each)) for n in range(len(each))) for each in real)
    campaign = TrainingRuns(
        renamed.take(at), (canonical[0], canonical[1]), kept[at], np.arange(len(at))
    )
    campaign.shared["whole"] = campaign
    if traced:
        seconds = np.array([traced.get(name, np.nan) for name in real[0]])
        campaign.shared["log_traces"] = np.log(seconds / usual)
    return campaign, (real[0], real[1]), usual


def _distinct(runs: Runs) -> np.ndarray:
    """Drop copies if all rows repeat equally often; returns row numbers. If only some repeat, these are runs
    that took equally long, as in logs of whole seconds."""
    if not len(runs):
        return np.zeros(0, np.int64)
    labels = [name or "" for name in runs.table.column("campaign").to_pylist()]
    campaign = np.unique(labels, return_inverse=True)[1].reshape(-1)
    time = np.asarray(runs.runtime_seconds).view(np.int64)
    key = np.stack([runs.colocations.group, time, campaign])
    _, at, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    at = at.reshape(-1)
    order = np.argsort(at, kind="stable")
    turn = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    return np.sort(order[turn < (count // np.gcd.reduce(count))[at[order]]])


def _order_of_names(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], usual: float
) -> tuple[np.ndarray, np.ndarray]:
    """Order names by what was measured of them. Returns the order of (workloads, platforms)."""
    c = runs.colocations
    workload, platform, corunner = c.recode(*names)
    y = np.log(runs.runtime_seconds / usual)
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)

    def ordered(size: int, *parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        columns = []
        for code, value in parts:
            count = np.bincount(code, minlength=size)
            total = np.bincount(code, value, size)
            square = np.bincount(code, value**2, size)
            columns += [count, np.round(total, DIGITS), np.round(square, DIGITS)]
        return np.lexsort(columns[::-1])

    return (
        ordered(len(names[0]), (workload, y), (corunner, y[row])),
        ordered(len(names[1]), (platform, y)),
    )


def _label(number: int, count: int) -> str:
    return f"{number:0{len(str(count))}d}"


def _renamed(
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    order: tuple[np.ndarray, np.ndarray],
    usual: float,
) -> Runs:
    """Replace names by numbers, and seconds by multiples of the usual time."""
    import pyarrow as pa
    import pyarrow.compute

    pc: Any = pyarrow.compute  # whose functions are made at run time

    workload, platform, corunner = runs.colocations.recode(*names)
    label = []
    for place in order:
        mine = np.empty(len(place), object)
        mine[place] = [_label(number, len(place)) for number in range(len(place))]
        label.append(mine)
    offsets = pa.array(runs.colocations.corunner_offsets.astype(np.int32))
    place = np.empty(len(order[0]), np.int64)
    place[order[0]] = np.arange(len(order[0]))
    row = np.repeat(np.arange(len(runs)), runs.colocations.number_of_corunners)
    corunner = corunner[np.lexsort((place[corunner], row))]
    values = pa.array(label[0][corunner].tolist(), pa.string())
    columns = {
        "workload": pa.array(label[0][workload].tolist(), pa.string()),
        "platform": pa.array(label[1][platform].tolist(), pa.string()),
        "corunners": pa.ListArray.from_arrays(offsets, values),
        # Rounded: a division by another unit differs in the last bits, which a fit may make much of.
        "runtime_seconds": pa.array(np.exp(np.round(np.log(runs.runtime_seconds / usual), DIGITS))),
    }
    table = runs.table
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, column)
    for name in ("cpu_seconds", "window_seconds"):
        if name in table.column_names and pa.types.is_floating(table.column(name).type):
            scaled = pc.divide(table.column(name), usual)
            table = table.set_column(table.column_names.index(name), name, scaled)
    features = []
    for key, mine, known in zip(("workload", "platform"), label, names, strict=True):
        own = getattr(runs, f"{key}_features")
        if own is not None:
            of = dict(zip(known, mine.tolist(), strict=True))
            column = pa.array([of[name] for name in own.column(key).to_pylist()], pa.string())
            own = own.set_column(own.column_names.index(key), key, column)
            own = own.sort_by(key)
        features.append(own)
    return Runs(table, *features, checked=True)


def _order_of_rows(runs: Runs) -> np.ndarray:
    """Order rows by platform, workload and co-runners, then by runtime."""
    c = runs.colocations
    beside = np.zeros(len(runs), np.uint64)
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
    np.add.at(beside, row, mixed_bits(c.corunner.astype(np.uint64)))
    keys = (runs.runtime_seconds, beside, c.number_of_corunners, c.workload, c.platform)
    return np.lexsort(keys)
