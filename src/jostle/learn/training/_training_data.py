"""Runs as base learners learn from them: ordered, in one unit, under codes for their names.

Fits draw random numbers by the place of a row and the code of a name. So that the order of the rows, the unit
of time and the spelling of names change nothing, all of these are settled by what was measured first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.data import Runs
from jostle.learn.contract._data import Data
from jostle.learn.contract._run_counts import mixed_bits
from jostle.learn.training._cpu_sharing import with_cores
from jostle.learn.training._design import design_of
from jostle.learn.training._linear_baseline import fit_baseline, rest_of
from jostle.learn.training._set_keys import members_key
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows, error_weight
from jostle.learn.training._solo_baseline import fill_solo_from_traces, solo_runtimes

USUAL_REST = 0.1  # variance of a log time alone that is guessed, where the data cannot say
# Weights in a design of what a workload has on all platforms, and of what it has on one: which of them counts
# is told by answers about what was left out.
DESIGNS = {"here": (0.3, 0.6), "by name": (1.0, 1.0)}
TIME_BLOCKS = 24  # of a log, that are left out as one
DIGITS = 9  # to which means are told apart, so that the order of a sum does not matter


@dataclass(frozen=True, eq=False)
class Common:
    """What all parts of a campaign share.

    Parameters
    ----------
    data : Data
        What was measured beside runs: traces, profiles.
    source : Runs
        Those that the campaign's are of, in seconds.
    usual_seconds : float
        What the campaign's times are multiples of.
    log_traces : (workloads,) ndarray
        Log seconds alone of traces, over the usual; NaN without one.
    inputs : (n,) ndarray of bool, optional
        What base learners read as features of workloads, and nobody is asked about.
    learned : dict
        What base learners keep between folds, under keys of their own.
    """

    data: Data
    source: Runs
    usual_seconds: float
    log_traces: np.ndarray
    learned: dict[Any, Any]
    inputs: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """runs: n with status ok, over the usual time. names: (workloads, platforms) in the order of their codes,
    those of features and of traces alone included. origin: (n,) which of the runs as they came these
    are. place: (n,) ascending, which of the whole campaign. of: the whole; None for itself."""

    runs: Runs
    names: tuple[tuple[str, ...], tuple[str, ...]]
    origin: np.ndarray
    place: np.ndarray
    common: Common
    of: TrainingRuns | None = None

    def __len__(self) -> int:
        return len(self.runs)

    def take(self, keep: np.ndarray) -> TrainingRuns:
        """Keep the runs where the mask (n,) is true; names stay."""
        parts = self.runs.take(keep), self.names, self.origin[keep], self.place[keep]
        return TrainingRuns(*parts, self.common, self.whole)

    @property
    def whole(self) -> TrainingRuns:
        """The campaign that these runs are a part of."""
        return self.of or self

    @property
    def size(self) -> tuple[int, int]:
        """(platforms, workloads)."""
        return len(self.names[1]), len(self.names[0])

    @cached_property
    def codes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(workload (n,), platform (n,), co-runners (m,))."""
        workload, platform, corunner = self.runs.colocations.recode(*self.names)
        row = self.corunner_row
        corunner = corunner[np.lexsort((corunner, row))].astype(np.int64)
        return workload.astype(np.int64), platform.astype(np.int64), corunner

    @cached_property
    def degree(self) -> np.ndarray:
        """(n,) numbers of co-runners."""
        return np.asarray(self.runs.colocations.number_of_corunners)

    @cached_property
    def corunner_row(self) -> np.ndarray:
        """(m,) the row that each co-runner belongs to."""
        return self.runs.colocations.corunner_row

    @property
    def is_input(self) -> np.ndarray:
        """(n,) bool: what base learners read as features of workloads, and nobody is asked about."""
        inputs = self.common.inputs
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
        filled = fill_solo_from_traces(measured, self.common.log_traces)
        return np.where(is_traced, filled, told)

    @cached_property
    def _told_by_runs(self) -> np.ndarray:
        return solo_runtimes(self.runs, self.names)

    @cached_property
    def is_traced(self) -> np.ndarray:
        """(cells,) bool: a trace tells how long the workload takes alone, and no run does. Where nobody ran
        alone on a platform, how traces relate to times is unknown, and what runs suggest goes first."""
        ran_alone = self.ran_alone.reshape(self.size)
        related = ran_alone.any(axis=1, keepdims=True) | np.isnan(self._told_by_runs)
        return (np.isfinite(self.common.log_traces) & ~ran_alone & related).ravel()

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
        if self.whole is not self:
            return self.whole.uses_estimated_solo
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
        row = self.corunner_row
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

    @cached_property
    def designs(self) -> dict[str, Any]:
        """Each of DESIGNS (cells, d), of one platform "here" alone, as there they say the same: one for all
        parts of a campaign."""
        if self.whole is not self:
            return self.whole.designs
        about = self.names, self.log_solo, self.runs.workload_features
        return {
            name: design_of(*about, *weights)
            for name, weights in DESIGNS.items()
            if name == "here" or self.size[0] > 1
        }

    @cached_property
    def cell_table(self) -> CellTable:
        return with_cores(CellTable(*self.size), self.runs, self.names, self.rows)

    def sets(self, everywhere: bool) -> np.ndarray:
        """Return (n,) uint64, equal for the same workloads together, whichever was measured: on the same
        platform, or everywhere."""
        workload, platform, corunner = self.codes
        key = members_key(workload, corunner, self.corunner_row)
        return mixed_bits(key if everywhere else key + mixed_bits(~platform.astype(np.uint64)))


def campaign_of(
    data: Data, runs: Runs, trace_seconds: Mapping[str, float], learned: dict[Any, Any]
) -> TrainingRuns:
    """Make a campaign of the runs with status ok. Rows that all repeat equally often are taken once.
    trace_seconds: {workload: s} of a trace alone, also of workloads that never ran. learned: see Common."""
    import pyarrow as pa  # which answering does without

    from jostle.data import all_names

    runs = runs.ok()
    workloads, platforms = all_names(runs)
    names = tuple(sorted({*workloads, *trace_seconds})), platforms
    kept = _distinct(runs)
    part = runs.take(kept)
    usual = float(np.median(part.runtime_seconds)) if len(part) else 1.0
    # Rounded: a division by another unit differs in the last bits, which a fit may make much of.
    time = np.exp(np.round(np.log(part.runtime_seconds / usual), DIGITS))
    place = part.table.column_names.index("runtime_seconds")
    table = part.table.set_column(place, "runtime_seconds", pa.array(time))
    part = Runs(table, part.workload_features, part.platform_features, checked=True)
    names = _ordered_names(part, names)
    order = _order_of_rows(part, names)
    seconds = np.array([trace_seconds.get(name, np.nan) for name in names[0]])
    common = Common(data, runs, usual, np.log(seconds / usual), learned)
    return TrainingRuns(part.take(order), names, kept[order], np.arange(len(order)), common)


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


def _ordered_names(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Order names (workloads, platforms) by what was measured of them."""
    c = runs.colocations
    workload, platform, corunner = c.recode(*names)
    y = np.log(runs.runtime_seconds)
    row = c.corunner_row

    def ordered(own: tuple[str, ...], *parts: tuple[np.ndarray, np.ndarray]) -> tuple[str, ...]:
        columns = []
        for code, value in parts:
            count = np.bincount(code, minlength=len(own))
            total = np.bincount(code, value, len(own))
            square = np.bincount(code, value**2, len(own))
            columns += [count, np.round(total, DIGITS), np.round(square, DIGITS)]
        return tuple(own[at] for at in np.lexsort(columns[::-1]))

    return (
        ordered(names[0], (workload, y), (corunner, y[row])),
        ordered(names[1], (platform, y)),
    )


def _order_of_rows(runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]) -> np.ndarray:
    """Order rows by platform, workload and co-runners, then by runtime."""
    c = runs.colocations
    workload, platform, corunner = c.recode(*names)
    beside = np.zeros(len(runs), np.uint64)
    row = c.corunner_row
    np.add.at(beside, row, mixed_bits(corunner.astype(np.uint64)))
    keys = (runs.runtime_seconds, beside, c.number_of_corunners, workload, platform)
    return np.lexsort(keys)
