"""How far measured runtimes lie from the prediction, per workload, platform, co-runner and size.

A bound that is as wide everywhere is too wide where runs repeat well and too narrow where they do not.
The log of the error's size is modelled as a sum of effects, apart for workloads alone and beside others,
from the errors of runs that the predicting model was not trained on (held-out errors): training errors are
too small. But there are many more of the latter, and where they are large the others are too: their means
by name and category are regressors beside the held-out errors' own effects (stacking: ridge regression for
the geometric mean, a gamma regression with logarithmic link for the mean square, see MOMENTS). How much of
either size makes the tightest bounds is chosen on held-out errors that they were not learned from, apart
for each of LEVELS: the one run in a hundred errs elsewhere than the one in ten. Calibration corrects the
level, so only the ratios between co-locations matter here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.conformal import margin_of_errors
from jostle.learn.learners.network._spread_effects import (
    BINS,
    FLOOR,
    MOMENTS,
    Effects,
    Keys,
    SpreadRows,
    backfitted,
    columns_of,
    finest,
)
from jostle.learn.learners.network._spread_even import FEWEST as FEWEST_TO_EVEN
from jostle.learn.learners.network._spread_even import WEIGHT_SEEN, evened

FOLDS = 5  # by which forms of the spread are compared
PENALTY = 30.0  # of the ridge regression, on standardised regressors
NEWTON_STEPS = 20  # of the regression, at most
MIXTURES = ((1.0, 0.0), (0.5, 0.5), (0.0, 1.0))  # shares of the sizes
POWERS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)  # of the size, tried
CAPS = (0.4, 0.7, 1.2, 2.0, 3.0, 4.0)  # log units above the typical size
LEVELS = (0.9, 0.95, 0.99)  # confidences for which widths are chosen
FEWEST_TO_CHOOSE = 100  # errors under which the usual form stands
FEWEST_BEYOND = 20  # errors past a level, to choose for this level alone


@dataclass(frozen=True)
class Spread:
    """effects: of four kinds, for each of MOMENTS alone and beside others. shape (levels, 2, 3): for each
    of LEVELS, alone and beside others, the share of each size times a power, and the cap of the sum.
    even_platform (levels, p), even_runtime (levels, BINS): log of a further factor, see _spread_even."""

    effects: Effects
    keys: Keys
    shape: np.ndarray
    even_platform: np.ndarray
    even_runtime: np.ndarray

    @classmethod
    def none(cls, workloads: int, platforms: int) -> Spread:
        """Make the same spread everywhere."""
        edges = np.full(BINS - 1, np.inf)
        keys = Keys(edges, edges, *(np.zeros((n, 0), np.int64) for n in (workloads, platforms)))
        kinds = 2 * len(MOMENTS)
        shape = np.zeros((len(LEVELS), 2, len(MOMENTS) + 1))
        even = (np.zeros((len(LEVELS), size)) for size in (platforms, BINS))
        return cls(Effects.none(keys, kinds), keys, shape, *even)

    def log_scales(self, rows: SpreadRows) -> np.ndarray:
        """Predict (levels, n) logs of the width of a bound for each of LEVELS, relative to others of the same
        number of co-runners."""
        beside = (rows.degree > 0).astype(np.int64)
        sizes = self.log_sizes(rows)
        bins = np.searchsorted(self.keys.runtime_edges, rows.log_runtime)
        even = self.even_platform[:, rows.platform] + self.even_runtime[:, bins]
        return np.stack([_shaped(sizes, shape[beside]) for shape in self.shape]) + even

    def log_sizes(self, rows: SpreadRows) -> np.ndarray:
        """Predict (moments, n) logs of the relative size of the error."""
        beside = (rows.degree > 0).astype(np.int64)
        kinds = beside + 2 * np.arange(len(MOMENTS))[:, None]
        return self.effects.of(self.keys, rows, kinds)


def fit_spread(
    held_out: tuple[SpreadRows, np.ndarray],
    training: tuple[SpreadRows, np.ndarray],
    workload_category: np.ndarray,
    platform_category: np.ndarray,
    seed: int = 0,
) -> Spread:
    """held_out, training: co-locations and errors (log runtime minus predicted) of runs that the model was
    not trained on and of those that it was; the two must not share runs. workload_category (w, c),
    platform_category (p, d): codes of their categorical features; they share effects among names."""
    rows, error = held_out
    categories = (workload_category, platform_category)
    keys = Keys.of(rows, *categories, len(error) + len(training[1]))
    own = backfitted(keys, rows, error, *categories)
    fold = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    regressors = np.zeros((len(own), len(rows)))
    for part in range(FOLDS):
        learned = backfitted(keys, rows.take(fold != part), error[fold != part], *categories)
        test_rows = rows.take(fold == part)
        regressors[:, fold == part] = [effects.of_one_kind(keys, test_rows) for effects in learned]
    others = columns_of(keys, *training, (len(workload_category), len(platform_category)))
    columns = [*own, *others]
    regressors = np.vstack([regressors, *(x.of_one_kind(keys, rows)[None] for x in others)])
    beside = rows.degree > 0
    weights, shapes = [], []
    widths = np.zeros((len(LEVELS), len(rows)))
    for at in (~beside, beside):
        weight, sizes = _stack(regressors[:, at].T, error[at], fold[at])
        weights.append(weight)
        shapes.append(_choose(sizes, error[at]))
        widths[:, at] = [_shaped(sizes, shape) for shape in shapes[-1]]
    level, *slopes = np.stack(weights, axis=1).reshape(2 * len(MOMENTS), -1).T
    constant = Effects.only(keys, level=np.ones(()))
    parts = [(level, constant), *zip(slopes, columns, strict=True)]
    uneven = Spread.none(*map(len, categories))
    spread = replace(uneven, effects=Effects.sum(parts), keys=keys, shape=np.stack(shapes, axis=1))
    if len(rows) < FEWEST_TO_EVEN:
        return spread
    both = SpreadRows.concatenate([rows, training[0]])
    log_width = np.concatenate([widths, spread.log_scales(training[0])], axis=1)
    is_seen = np.arange(len(both)) >= len(rows)
    return _evened(
        spread, both, np.concatenate([error, training[1]]), log_width, is_seen, categories[1]
    )


def _evened(
    spread: Spread,
    rows: SpreadRows,
    error: np.ndarray,
    log_width: np.ndarray,
    is_seen: np.ndarray,
    platform_category: np.ndarray,
) -> Spread:
    """Add to the spread what platforms and lengths of run lack. log_width: (levels, n) of errors (n,), of
    which is_seen (n,) were trained on."""
    weight = np.where(is_seen, WEIGHT_SEEN, 1.0)
    kind = 2 * is_seen + (rows.degree > 0)
    alike = finest(platform_category)
    bins = np.searchsorted(spread.keys.runtime_edges, rows.log_runtime)
    platforms, runtimes = [], []
    for level, width in zip(LEVELS, log_width, strict=True):
        scaled = error / np.exp(width)
        usable = np.ones(len(scaled), bool)
        for k in np.unique(
            kind
        ):  # held-out and training errors differ in size, as do alone and beside
            at = kind == k
            usual = np.quantile(scaled[at], level)
            usable[at] = usual > 0
            scaled[at] /= usual if usual > 0 else 1.0
        sizes = (len(alike), int(alike.max(initial=0)) + 1)
        mine = evened(scaled[usable], weight[usable], (rows.platform[usable], alike), sizes, level)
        scaled /= np.exp(mine[rows.platform])
        one = np.zeros(BINS, np.int64)
        long = evened(scaled[usable], weight[usable], (bins[usable], one), (BINS, 1), level)
        platforms.append(mine)
        runtimes.append(long)
    return replace(spread, even_platform=np.stack(platforms), even_runtime=np.stack(runtimes))


def _stack(x: np.ndarray, error: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (weights (moments, 1 + k) of a constant and the regressors x (n, k) for the log of an error's
    size, 0 on average; the sizes (moments, n) by weights that other folds gave). All 0 if errors (n,) are
    few."""
    if len(error) < FEWEST_TO_CHOOSE:
        return np.zeros((len(MOMENTS), 1 + x.shape[1])), np.zeros((len(MOMENTS), len(error)))
    centre, scale = x.mean(0), x.std(0)
    inverse = np.where(scale > 1e-9, 1 / np.where(scale > 1e-9, scale, 1.0), 0.0)
    x = (x - centre) * inverse
    weights, sizes = [], []
    for regression in (_mean_log, _log_mean_square):
        size = np.zeros(len(error))
        for part in range(FOLDS):
            size[fold == part] = x[fold == part] @ regression(x[fold != part], error[fold != part])
        weight = regression(x, error) * inverse
        weights.append(np.array([-(weight @ centre), *weight]))
        sizes.append(size)
    return np.array(weights), np.array(sizes)


def _mean_log(x: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Regress log |error| on x (n, k), which is centred, by ridge. Returns (k,)."""
    target = np.log(np.abs(error) + FLOOR)
    penalty = PENALTY * np.eye(x.shape[1])
    return np.linalg.solve(x.T @ x + penalty, x.T @ (target - target.mean()))


def _log_mean_square(x: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Regress half the log of the mean of max(error, 0)^2, (k,): minimise the sum of y exp(-z) + z, z the
    linear form (gamma regression), by Newton's method with steps halved until they help."""
    y = np.minimum(np.maximum(error, 0.0) + FLOOR, 1.0) ** 2
    y = y / y.mean()
    x = np.column_stack([np.ones(len(x)), x])
    penalty = PENALTY * np.eye(x.shape[1])
    penalty[0, 0] = 0.0

    def cost(b: np.ndarray) -> float:
        z = x @ b
        return float((y * np.exp(-z) + z).sum() + b @ penalty @ b / 2)

    b = np.zeros(x.shape[1])
    now = cost(b)
    for _ in range(NEWTON_STEPS):
        ratio = y * np.exp(-(x @ b))
        slope = x.T @ (1 - ratio) + penalty @ b
        # The mean of the observed and the expected curvature: steady where a few errors are huge.
        curvature = (x * ((1 + ratio) / 2)[:, None]).T @ x + penalty
        step = np.linalg.solve(curvature, slope)
        tried = [(cost(b - step * share), share) for share in (1.0, 0.5, 0.25, 0.125)]
        best, share = min(tried)
        if not best < now - 1e-7 * len(y):
            break
        b, now = b - step * share, best
    return b[1:] / 2


def _shaped(log_sizes: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """log_sizes (moments, n), shape (n, moments + 1) or (moments + 1,): (n,)."""
    mixed = (np.moveaxis(log_sizes, 0, -1) * shape[..., :-1]).sum(-1)
    return np.clip(mixed, -3.0, shape[..., -1])


def _choose(log_sizes: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Choose for each of LEVELS the shape (levels, moments + 1) with the least margin, of errors (n,) and
    their log_sizes (moments, n). Levels with too few errors past them share the shape with the least margin
    in geometric mean; with too few errors at all the width is the same everywhere."""
    plain = np.zeros(len(MOMENTS) + 1)
    if len(error) < FEWEST_TO_CHOOSE:
        return np.stack([plain] * len(LEVELS))
    shapes = [plain] + [
        np.array([*(power * share for share in mixture), power * cap])
        for mixture in MIXTURES
        for power in POWERS
        for cap in CAPS
    ]
    scales = [np.exp(_shaped(log_sizes, shape)) for shape in shapes]
    cost = np.array([[margin_of_errors(error, x, level) for level in LEVELS] for x in scales])
    cost = np.log(np.maximum(cost, 1e-12))
    shared = int(np.argmin(cost.sum(1)))
    own = cost.argmin(0)
    enough = np.array([len(error) * (1 - level) >= FEWEST_BEYOND for level in LEVELS])
    return np.stack([shapes[place] for place in np.where(enough, own, shared)])
