"""Additive effects on the log of an error's size, and the ways in which they are estimated.

Two sizes are modelled, see MOMENTS: the geometric mean of |log error| says where errors are small as a
rule; the root mean square of the errors above 0, the only ones that a bound must cover, sees the platform
that glitches once in twenty runs. Both are fitted by backfitting to the errors of runs that the model was
not trained on, and averaged by name and category (`columns_of`) over those that it was: what a model could
not learn although it saw it is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jostle.learn.training._slowdown_rows import RaggedRows

FLOOR = 0.003  # log units: below this, differences between errors are chance
SHRINKAGE = 10.0  # runs that the errors of a name are shrunken by
SHRINKAGE_SEEN = 5.0  # the same, of errors trained on
BINS = 12  # of a number, by which errors may differ
MOMENTS = (0, 2)  # 0: geometric mean of |error|; q: q-th root of the mean of max(error, 0)^q
SWEEPS = 12  # over all effects in turn
CELLS_PER_ERROR = 4  # cells of a table, at most, for each error that it is averaged from


@dataclass(frozen=True)
class SpreadRows(RaggedRows):
    """n co-locations as a model codes them; corunner, row: (m,) co-runners and the rows they are in;
    log_runtime, log_slowdown: (n,) as predicted."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_runtime: np.ndarray
    log_slowdown: np.ndarray


@dataclass(frozen=True)
class Keys:
    """What else effects are looked up by. runtime_edges, slowdown_edges: (BINS - 1,) of the predictions.
    workload_level (w, c), platform_level (p, d): codes of categories, each column's after the last one's."""

    runtime_edges: np.ndarray
    slowdown_edges: np.ndarray
    workload_level: np.ndarray
    platform_level: np.ndarray

    @classmethod
    def of(
        cls,
        rows: SpreadRows,
        workload_category: np.ndarray,
        platform_category: np.ndarray,
        errors: int,
    ) -> Keys:
        """Choose on each side the categories with the fewest and the most levels; none of so many levels that
        `errors` could not fill a table of them."""
        most = CELLS_PER_ERROR * errors
        return cls(
            _edges(rows.log_runtime),
            _edges(rows.log_slowdown[rows.degree > 0]),
            _levels(workload_category, most / max(len(platform_category), 1)),
            _levels(platform_category, most / max(len(workload_category), 1)),
        )


@dataclass(frozen=True)
class Effects:
    """Effects for k kinds of rows. level (k,), workload (k, w), platform (k, p), corunner (k, w); runtime,
    slowdown (k, BINS) by the predicted value; workload_table (k, w, levels of platforms), platform_table
    and corunner_table (k, p, levels of workloads)."""

    level: np.ndarray
    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    runtime: np.ndarray
    slowdown: np.ndarray
    workload_table: np.ndarray
    platform_table: np.ndarray
    corunner_table: np.ndarray

    @classmethod
    def none(cls, keys: Keys, kinds: int = 1) -> Effects:
        """Make effects that are all 0."""
        w, p = len(keys.workload_level), len(keys.platform_level)
        shapes = {
            "level": (),
            "workload": (w,),
            "platform": (p,),
            "corunner": (w,),
            "runtime": (BINS,),
            "slowdown": (BINS,),
            "workload_table": (w, _size(keys.platform_level)),
            "platform_table": (p, _size(keys.workload_level)),
            "corunner_table": (p, _size(keys.workload_level)),
        }
        return cls(**{name: np.zeros((kinds, *shape)) for name, shape in shapes.items()})

    @classmethod
    def only(cls, keys: Keys, **given: np.ndarray) -> Effects:
        """Make effects of one kind: those given, without the axis of kinds, and 0 else."""
        return replace(cls.none(keys), **{name: value[None] for name, value in given.items()})

    @classmethod
    def sum(cls, parts: Sequence[tuple[np.ndarray, Effects]]) -> Effects:
        """Weights (k,) times effects of one kind, added up: effects of k kinds, in float32."""
        total = {}
        for field in fields(cls):
            values = [(weight, getattr(effects, field.name)[0]) for weight, effects in parts]
            added = sum(np.multiply.outer(weight, value) for weight, value in values)
            total[field.name] = np.asarray(added, np.float32)
        return cls(**total)

    def of(self, keys: Keys, rows: SpreadRows, kind: np.ndarray) -> np.ndarray:
        """Sum the effects (m, n) for rows as if of these kinds (m, n)."""
        w, p = rows.workload, rows.platform
        out = self.level[kind] + self.workload[kind, w].astype(np.float64)
        out += self.platform[kind, p]
        out += self.runtime[kind, np.searchsorted(keys.runtime_edges, rows.log_runtime)]
        for column in keys.platform_level.T:
            out += self.workload_table[kind, w, column[p]]
        for column in keys.workload_level.T:
            out += self.platform_table[kind, p, column[w]]
        if len(rows.corunner):
            degree = rows.degree
            bins = np.searchsorted(keys.slowdown_edges, rows.log_slowdown)
            out += self.slowdown[kind, bins] * (degree > 0)
            c, kind, p = rows.corunner, kind[:, rows.row], p[rows.row]
            each = self.corunner[kind, c]
            for column in keys.workload_level.T:
                each += self.corunner_table[kind, p, column[c]]
            sums = [np.bincount(rows.row, one, len(rows)) for one in each]
            out += np.stack(sums) / np.maximum(degree, 1)
        return out

    def of_one_kind(self, keys: Keys, rows: SpreadRows) -> np.ndarray:
        """Sum the effects (n,) where there is a single kind."""
        return self.of(keys, rows, np.zeros((1, len(rows)), np.int64))[0]


def columns_of(
    keys: Keys, rows: SpreadRows, error: np.ndarray, sizes: tuple[int, int]
) -> list[Effects]:
    """Estimate one effect a name, and one a name and category of the other side, for both sizes: shrunken
    means of errors (n,), of all rows and of those alone. sizes: numbers of workloads and platforms."""
    size = np.minimum(np.abs(error) + FLOOR, 1.0)
    over = np.minimum(np.maximum(error, 0.0) + FLOOR, 1.0) ** 2
    log_size, degree = np.log(size), rows.degree
    for pool in (degree == 0, degree > 0):
        if pool.any():
            log_size[pool] -= log_size[pool].mean()
            over[pool] /= over[pool].mean()
    every, w, p = np.arange(len(rows)), rows.workload, rows.platform
    at, c = rows.row, rows.corunner
    workloads, platforms = sizes
    groups: list[tuple[str, np.ndarray, np.ndarray, tuple[int, ...]]] = [
        ("workload", w, every, (workloads,)),
        ("platform", p, every, (platforms,)),
        ("corunner", c, at, (workloads,)),
    ]
    for column in keys.platform_level.T:
        shape = (workloads, _size(keys.platform_level))
        groups.append(("workload_table", w * shape[1] + column[p], every, shape))
    for column in keys.workload_level.T:
        shape = (platforms, _size(keys.workload_level))
        groups.append(("platform_table", p * shape[1] + column[w], every, shape))
        groups.append(("corunner_table", p[at] * shape[1] + column[c], at, shape))
    effects = []
    for name, code, row, shape in groups:
        cells = int(np.prod(shape))
        for used in (slice(None), degree[row] == 0):
            count = np.bincount(code[used], minlength=cells) + SHRINKAGE_SEEN
            mean = np.bincount(code[used], log_size[row[used]], cells) / count
            square = np.bincount(code[used], over[row[used]], cells) + SHRINKAGE_SEEN
            square = np.log(square / count) / 2
            effects += [Effects.only(keys, **{name: x.reshape(shape)}) for x in (mean, square)]
            if name.startswith("corunner"):
                break
    return effects


def backfitted(
    keys: Keys,
    rows: SpreadRows,
    error: np.ndarray,
    workload_category: np.ndarray,
    platform_category: np.ndarray,
) -> list[Effects]:
    """Fit for each of MOMENTS effects of names, categories and bins given each other, each shrunken towards
    none."""
    n_workloads, n_platforms = len(workload_category), len(platform_category)
    degree = rows.degree
    workload_class = finest(workload_category)
    # Of the platform's categories one that has a table, into which the effect of both classes goes.
    platform_class = keys.platform_level[:, :1].sum(1)
    pairs = (int(workload_class.max(initial=0)) + 1, max(_size(keys.platform_level), 1))
    w, p, every = rows.workload, rows.platform, np.arange(len(rows))
    share = 1.0 / np.maximum(degree, 1)
    bins = np.searchsorted(keys.slowdown_edges, rows.log_slowdown)
    beside = degree > 0
    groups = [_Group(w, every, n_workloads), _Group(p, every, n_platforms)]
    groups.append(_Group(rows.corunner, rows.row, n_workloads, share[rows.row]))
    groups.append(_Group(np.searchsorted(keys.runtime_edges, rows.log_runtime), every, BINS))
    groups.append(_Group(bins[beside], every[beside], BINS))
    code = workload_class[w] * pairs[1] + platform_class[p]
    groups.append(_Group(code, every, pairs[0] * pairs[1]))
    fixed = len(groups)
    groups += [_Group(column[w], every, int(column.max()) + 1) for column in workload_category.T]
    groups += [_Group(column[p], every, int(column.max()) + 1) for column in platform_category.T]
    fitted = []
    for moment in MOMENTS:
        effects = _backfit(error, degree, groups, moment)
        # What categories share is folded into the names that have them.
        split = fixed + workload_category.shape[1]
        for effect, column in zip(effects[fixed:split], workload_category.T, strict=True):
            effects[0] = effects[0] + effect[column]
        for effect, column in zip(effects[split:], platform_category.T, strict=True):
            effects[1] = effects[1] + effect[column]
        workload, platform, corunner, runtime, slowdown, pair = effects[:fixed]
        pair = pair.reshape(pairs)[workload_class]
        tables: dict[str, Any] = {"workload_table": pair}
        if keys.platform_level.shape[1] == 0:
            workload, tables = workload + pair[:, 0], {}
        fitted.append(
            Effects.only(
                keys,
                workload=workload,
                platform=platform,
                corunner=corunner,
                runtime=runtime,
                slowdown=slowdown,
                **tables,
            )
        )
    return fitted


@dataclass(frozen=True)
class _Group:
    """One effect: code (k,) of each entry, the row (k,) it acts on, how many codes, its weight (k,)."""

    code: np.ndarray
    row: np.ndarray
    count: int
    weight: np.ndarray | None = None

    def add_to(self, total: np.ndarray, effect: np.ndarray, sign: float) -> None:
        value = effect[self.code] * (sign if self.weight is None else sign * self.weight)
        total += np.bincount(self.row, value, len(total))

    def sums(self, values: np.ndarray) -> np.ndarray:
        each = values[self.row] if self.weight is None else values[self.row] * self.weight
        return np.bincount(self.code, each, self.count)


def _backfit(
    error: np.ndarray, degree: np.ndarray, groups: Sequence[_Group], moment: int
) -> list[np.ndarray]:
    """Fit each effect in turn, given the others, as if SHRINKAGE more runs had none."""
    size = np.abs(error) + FLOOR if moment == 0 else (np.maximum(error, 0.0) + FLOOR) ** moment
    size = np.minimum(size, 1.0)
    target = np.log(size)
    for d in np.unique(degree):  # pools calibrate their own level
        inside = degree == d
        level = target[inside].mean() if moment == 0 else np.log(size[inside].mean())
        target[inside] -= level
    total = np.zeros(len(size))
    effects = [np.zeros(group.count) for group in groups]
    ones = np.ones(len(size))
    for _ in range(SWEEPS):
        for number, group in enumerate(groups):
            group.add_to(total, effects[number], -1.0)
            count = group.sums(ones)
            if moment == 0:
                effects[number] = group.sums(target - total) / (count + SHRINKAGE)
            else:
                ratio = np.exp(np.minimum(target - total, 12.0))
                effects[number] = np.log((group.sums(ratio) + SHRINKAGE) / (count + SHRINKAGE))
            group.add_to(total, effects[number], 1.0)
    return [effect / max(moment, 1) for effect in effects]


def _edges(values: np.ndarray) -> np.ndarray:
    """Compute (BINS - 1,) quantiles; +inf without values, so that everything falls into the first bin."""
    if len(values) == 0:
        return np.full(BINS - 1, np.inf)
    return np.quantile(values, np.arange(1, BINS) / BINS)


def _size(level: np.ndarray) -> int:
    """Count the levels of all columns together."""
    return int(level.max(initial=-1)) + 1


def finest(category: np.ndarray) -> np.ndarray:
    """Return the categorical column with the most levels; one class if there is none."""
    if category.shape[1] == 0:
        return np.zeros(len(category), np.int64)
    levels = [len(np.unique(column)) for column in category.T]
    return category[:, int(np.argmax(levels))].astype(np.int64)


def _levels(category: np.ndarray, most: float) -> np.ndarray:
    """Select columns (names, at most 2) with the fewest and the most levels, of those with 2 to `most`."""
    sizes = category.max(axis=0, initial=0) + 1
    usable = [j for j in np.argsort(sizes, kind="stable") if 2 <= sizes[j] <= most]
    levels = sorted({*usable[:1], *usable[-1:]}, key=lambda j: (sizes[j], j))
    level = np.zeros((len(category), len(levels)), np.int64)
    start = 0
    for place, j in enumerate(levels):
        level[:, place] = category[:, j] + start
        start += int(sizes[j])
    return level
