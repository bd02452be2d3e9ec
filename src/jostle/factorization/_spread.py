"""How far measured runtimes stray from the prediction, per workload, platform, co-runner and size.

A bound that is as wide everywhere is too wide where runs repeat well and too narrow where they do not.
The size of the error is modelled as a product of effects, each shrunken towards none, from runs that the
predicting model was not trained on (the residuals of training runs are too small to tell). Calibration
corrects the level, so only the ratios between co-locations matter here.

Two sizes are modelled, see MOMENTS: the geometric mean of |log error| says where errors are small as a
rule; the root mean square of the errors above 0, the only ones that a bound must cover, sees the platform
that glitches once in twenty runs. How much of either makes the tightest bounds is chosen on runs that
the sizes were not learned from, apart for workloads alone and beside others, and apart for each of LEVELS:
the one run in a hundred strays elsewhere than the one in ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

FLOOR = 0.003  # log units: below this, differences between errors are chance
SHRINKAGE = 10.0
BINS = 12
MOMENTS = (0, 2)  # 0: geometric mean of |error|; q: q-th root of the mean of max(error, 0)^q
KINDS = len(MOMENTS)
MIXTURES = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))  # shares of the kinds
POWERS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
CAPS = (0.4, 0.7, 1.2, 2.0, 3.0)  # log units above the typical size
LEVELS = (0.9, 0.95, 0.99)  # confidences at which margins are compared
UNTIL = (0.925, 0.97, 1.0)  # up to which confidence each of them speaks
FEWEST_TO_CHOOSE = 100
FEWEST_BEYOND = 20  # errors past a level, to choose for this level alone


@dataclass(frozen=True)
class SpreadRows:
    """n co-locations as a model codes them; corunner, row: (m,) co-runners and the rows they are in;
    log_runtime, log_slowdown: (n,) as predicted."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_runtime: np.ndarray
    log_slowdown: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)

    def take(self, mask: np.ndarray) -> SpreadRows:
        """The rows where the mask (n,) is true."""
        kept = mask[self.row]
        return SpreadRows(
            self.workload[mask],
            self.platform[mask],
            self.corunner[kept],
            (np.cumsum(mask) - 1)[self.row[kept]],
            self.log_runtime[mask],
            self.log_slowdown[mask],
        )


@dataclass(frozen=True)
class Spread:
    """Effects on the log of the error's size, one row for each of the KINDS.

    workload (kinds, w), platform (kinds, p), corunner (kinds, w); runtime and slowdown (kinds, BINS) by
    the predicted value among its edges (BINS - 1,); pair (kinds, a, b) by workload_class (w,) and
    platform_class (p,). shape (levels, 2, kinds + 1): what is made of them for each of LEVELS, alone and
    beside others: the share of each kind times a power, and the cap of the sum.
    """

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    runtime: np.ndarray
    runtime_edges: np.ndarray
    slowdown: np.ndarray
    slowdown_edges: np.ndarray
    pair: np.ndarray
    workload_class: np.ndarray
    platform_class: np.ndarray
    shape: np.ndarray

    @classmethod
    def none(cls, workloads: int, platforms: int) -> Spread:
        """The same spread everywhere."""
        bins, edges = np.zeros((KINDS, BINS)), np.full(BINS - 1, np.inf)
        return cls(
            np.zeros((KINDS, workloads)),
            np.zeros((KINDS, platforms)),
            np.zeros((KINDS, workloads)),
            *(bins, edges, bins, edges),
            np.zeros((KINDS, 1, 1)),
            np.zeros(workloads, np.int64),
            np.zeros(platforms, np.int64),
            np.zeros((len(LEVELS), 2, KINDS + 1)),
        )

    def log_scales(self, rows: SpreadRows) -> np.ndarray:
        """(levels, n) log of the width of a bound for each of LEVELS, relative to others of the same
        number of co-runners."""
        beside = (np.bincount(rows.row, minlength=len(rows)) > 0).astype(int)
        sizes = self.log_sizes(rows)
        return np.stack([_shaped(sizes, shape[beside]) for shape in self.shape])

    def log_sizes(self, rows: SpreadRows) -> np.ndarray:
        """(kinds, n) log of the relative size of the error."""
        w, p = rows.workload, rows.platform
        out = self.workload[:, w] + self.platform[:, p]
        out += self.runtime[:, np.searchsorted(self.runtime_edges, rows.log_runtime)]
        out += self.pair[:, self.workload_class[w], self.platform_class[p]]
        if len(rows.corunner):
            degree = np.bincount(rows.row, minlength=len(rows))
            beside = degree > 0
            bins = np.searchsorted(self.slowdown_edges, rows.log_slowdown[beside])
            out[:, beside] += self.slowdown[:, bins]
            for kind in range(KINDS):
                total = np.bincount(rows.row, self.corunner[kind, rows.corunner], len(rows))
                out[kind] += total / np.maximum(degree, 1)
        return out


def fit_spread(
    rows: SpreadRows,
    error: np.ndarray,
    workload_category: np.ndarray,
    platform_category: np.ndarray,
    seed: int = 0,
) -> Spread:
    """error: (n,) log runtime minus predicted, of runs not trained on. workload_category (w, c),
    platform_category (p, d): codes of their categorical features; they share effects among names."""
    categories = (workload_category, platform_category)
    fold = np.random.default_rng(seed).permutation(len(rows)) % 2
    sizes = np.zeros((KINDS, len(rows)))
    for part in (0, 1):
        learned = _fit_sizes(rows.take(fold != part), error[fold != part], *categories)
        sizes[:, fold == part] = learned.log_sizes(rows.take(fold == part))
    beside = np.bincount(rows.row, minlength=len(rows)) > 0
    shape = np.stack([_choose(sizes[:, at], error[at]) for at in (~beside, beside)], axis=1)
    return replace(_fit_sizes(rows, error, *categories), shape=shape)


def _shaped(log_sizes: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """log_sizes (kinds, n), shape (n, kinds + 1) or (kinds + 1,): (n,)."""
    mixed = (np.moveaxis(log_sizes, 0, -1) * shape[..., :-1]).sum(-1)
    return np.clip(mixed, -3.0, shape[..., -1])


def _choose(log_sizes: np.ndarray, error: np.ndarray) -> np.ndarray:
    """(levels, kinds + 1) for each of LEVELS the shape with the least margin, of errors (n,) and their
    log_sizes (kinds, n). Levels with too few errors past them share the shape with the least margin in
    geometric mean; with too few errors at all the width is the same everywhere."""
    plain = np.zeros(KINDS + 1)
    if len(error) < FEWEST_TO_CHOOSE:
        return np.stack([plain] * len(LEVELS))
    shapes = [plain] + [
        np.array([*(power * share for share in mixture), power * cap])
        for mixture in MIXTURES
        for power in POWERS
        for cap in CAPS
    ]
    cost = np.array([_margins(np.exp(_shaped(log_sizes, shape)), error) for shape in shapes])
    cost = np.log(np.maximum(cost, 1e-12))
    shared = int(np.argmin(cost.sum(1)))
    own = cost.argmin(0)
    enough = np.array([len(error) * (1 - level) >= FEWEST_BEYOND for level in LEVELS])
    return np.stack([shapes[place] for place in np.where(enough, own, shared)])


def _margins(scale: np.ndarray, error: np.ndarray) -> list[float]:
    """The margin at each of LEVELS, of bounds in proportion to the scale (n,)."""
    scores = np.sort(error / scale)
    found = []
    for level in LEVELS:
        offset = scores[min(int(np.ceil((len(error) + 1) * level)), len(error)) - 1]
        over = np.maximum(np.expm1(np.minimum(scale * offset - error, 20.0)), 0.0)
        found.append(float(over.mean()))
    return found


def _fit_sizes(
    rows: SpreadRows,
    error: np.ndarray,
    workload_category: np.ndarray,
    platform_category: np.ndarray,
    sweeps: int = 12,
) -> Spread:
    """The sizes of the errors, see MOMENTS; what is made of them is left open."""
    n_workloads, n_platforms = len(workload_category), len(platform_category)
    degree = np.bincount(rows.row, minlength=len(rows))
    runtime_edges = _edges(rows.log_runtime)
    slowdown_edges = _edges(rows.log_slowdown[degree > 0])
    workload_class = _class(workload_category, most=True)
    platform_class = _class(platform_category, most=False)
    shape = (int(workload_class.max(initial=0)) + 1, int(platform_class.max(initial=0)) + 1)
    w, p, every = rows.workload, rows.platform, np.arange(len(rows))
    share = 1.0 / np.maximum(degree, 1)
    bins = np.searchsorted(slowdown_edges, rows.log_slowdown)
    groups = [_Group(w, every, n_workloads), _Group(p, every, n_platforms)]
    groups.append(_Group(rows.corunner, rows.row, n_workloads, share[rows.row]))
    groups.append(_Group(np.searchsorted(runtime_edges, rows.log_runtime), every, BINS))
    groups.append(_Group(bins[degree > 0], every[degree > 0], BINS))
    groups.append(
        _Group(workload_class[w] * shape[1] + platform_class[p], every, shape[0] * shape[1])
    )
    fixed = len(groups)
    groups += [_Group(column[w], every, int(column.max()) + 1) for column in workload_category.T]
    groups += [_Group(column[p], every, int(column.max()) + 1) for column in platform_category.T]
    kinds = [_effects(error, degree, groups, moment, sweeps) for moment in MOMENTS]
    # What categories share is folded into the names that have them.
    for effects in kinds:
        split = fixed + workload_category.shape[1]
        for effect, column in zip(effects[fixed:split], workload_category.T, strict=True):
            effects[0] = effects[0] + effect[column]
        for effect, column in zip(effects[split:], platform_category.T, strict=True):
            effects[1] = effects[1] + effect[column]
    stacked = [np.stack(effect) for effect in zip(*(e[:fixed] for e in kinds), strict=True)]
    return Spread(
        stacked[0],
        stacked[1],
        stacked[2],
        stacked[3],
        runtime_edges,
        stacked[4],
        slowdown_edges,
        stacked[5].reshape(KINDS, *shape),
        workload_class,
        platform_class,
        np.zeros((len(LEVELS), 2, KINDS + 1)),
    )


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


def _effects(
    error: np.ndarray, degree: np.ndarray, groups: Sequence[_Group], moment: int, sweeps: int
) -> list[np.ndarray]:
    """Backfitting: each effect in turn, given the others, each as if SHRINKAGE more runs had none."""
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
    for _ in range(sweeps):
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
    """(BINS - 1,) quantiles; +inf without values, so that everything falls into the first bin."""
    if len(values) == 0:
        return np.full(BINS - 1, np.inf)
    return np.quantile(values, np.arange(1, BINS) / BINS)


def _class(category: np.ndarray, most: bool) -> np.ndarray:
    """The categorical column with the most (fewest) levels; one class where there is none."""
    if category.shape[1] == 0:
        return np.zeros(len(category), np.int64)
    levels = [len(np.unique(column)) for column in category.T]
    column = category[:, int(np.argmax(levels) if most else np.argmin(levels))]
    return column.astype(np.int64)
