"""A Gaussian process on the slowdown: who, where, beside whom, and how alike they are.

    value ~ m_d + GP(0, sum_k exp(weight_k) K_k) + noise

Kernels 0 to 6 ask whether two rows have the same platform, target, co-runner, target on the platform,
co-runner on the platform, target and co-runner, and set of both, wherever they are. The others are squared
exponential: either three in the cell table's design, of the targets, the co-runners and both together, or one
in the additive effects of both. Of several co-runners a kernel is the mean over all pairs. Weights, widths
and noise are those of the greatest likelihood of some rows (Rasmussen and Williams, Gaussian Processes for
Machine Learning, Ch. 2 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.contract._gaussian_process import greatest_posterior, likelihood
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

MOST_ROWS = 3_000  # a fit takes the cube of the rows in time
MOST_TO_TUNE = 300  # rows by whose likelihood the widths and weights are found
STEPS = 25
SPREAD = 3.0  # of the prior on the logarithms of widths and weights
SAME = 7  # kernels that ask for the same names
CHUNK = 2_000_000  # numbers of a kernel made at a time


@dataclass(frozen=True)
class Settings:
    """logs of the kernels' weights (k,), of the widths (2,) in the design of target and co-runner or (1,) in
    effects, and of the noise ()."""

    weight: np.ndarray
    width: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, by_effects: bool) -> Settings:
        kernels = SAME + (1 if by_effects else 3)
        return cls(x[:kernels], x[kernels:-1], x[-1])

    @property
    def by_effects(self) -> bool:
        return len(self.width) == 1


@dataclass(frozen=True)
class Cells:
    """Targets (n,) and their co-runners (m,) as cells, row: (m,) whose they are, in ascending order."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, rows: SlowdownRows) -> Cells:
        order = np.argsort(rows.row, kind="stable")
        return cls(rows.target, rows.corunner[order], rows.row[order])

    @property
    def degree(self) -> np.ndarray:
        return np.bincount(self.row, minlength=len(self.target))

    def between(self, start: int, stop: int) -> Cells:
        own = slice(*np.searchsorted(self.row, [start, stop]))
        return Cells(self.target[start:stop], self.corunner[own], self.row[own] - start)


@dataclass(frozen=True)
class Process:
    """settings: see Settings. effects: (cells, 2) additive effects as target and as co-runner, (0, 2) where
    the design is looked at. target, corunner, row: of the rows learned from; weight: (n,). mean: (degrees +
    1,) by number of co-runners."""

    settings: Settings
    effects: np.ndarray
    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    mean: np.ndarray

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        learned = Cells(self.target, self.corunner, self.row)
        query, n = Cells.of(rows), len(rows)
        out = self.mean[np.minimum(query.degree, len(self.mean) - 1)]
        step = max(1, CHUNK // max(1, len(self.corunner) + len(self.target)))
        for start in range(0, n, step):
            part = query.between(start, min(start + step, n))
            kernel = Kernels(part, learned, cell_table, self.effects).weighed(self.settings)
            out[start : start + step] += kernel @ self.weight
        return out


class Kernels:
    """The kernels between the cells of two sides, made once where they depend on no width."""

    def __init__(
        self, one: Cells, other: Cells, cell_table: CellTable, effects: np.ndarray
    ) -> None:
        """effects: (cells, 2), or (0, 2) for kernels in the design."""
        w = cell_table.workloads
        self.one, self.other = one, other
        targets, others = one.target % w, other.target % w
        beside, beside_other = one.corunner % w, other.corunner % w

        def same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            return (x[:, None] == y[None]).astype(float)

        same_target = same(targets, others)
        same_beside = _pooled(same(beside, beside_other), one, other)
        turned = _rows_pooled(same(beside, others), one)
        turned = turned * _rows_pooled(same(beside_other, targets), other).T
        self.fixed = [
            same(one.target // w, other.target // w),
            same_target,
            same_beside,
            same(one.target, other.target),
            _pooled(same(one.corunner, other.corunner), one, other),
            same_target * same_beside,
            same_target * same_beside + turned,
        ]
        self.by_effects = len(effects) > 0
        place = effects if self.by_effects else cell_table.design
        self.by_target = _apart(place[one.target], place[other.target])
        self.by_corunner = _apart(place[one.corunner], place[other.corunner])

    def weighed(self, settings: Settings) -> np.ndarray:
        """Add up the weighted kernels (n, n'), without the noise."""
        total = self.of_names(settings)
        weight = np.exp(settings.weight[SAME:])
        for w, (kernel, _) in zip(weight, self.smooth(settings), strict=True):
            total += w * kernel
        return total

    def of_names(self, settings: Settings) -> np.ndarray:
        """Add up the kernels (n, n') that ask for the same names."""
        total = np.zeros_like(self.fixed[0])
        for w, kernel in zip(np.exp(settings.weight[:SAME]), self.fixed, strict=True):
            total += w * kernel
        return total

    def smooth(self, settings: Settings) -> list[tuple[np.ndarray, dict[int, np.ndarray]]]:
        """Return the squared exponential kernels, each with its slopes by the logarithms of the widths."""
        width = settings.width
        near, near_by = _near(self.by_target, width[0])
        pooled, pooled_by = self._pooled(_near(self.by_corunner, width[-1]))
        if self.by_effects:
            return [(near * pooled, {0: near_by * pooled + near * pooled_by})]
        both = {0: near_by * pooled, 1: near * pooled_by}
        return [(near, {0: near_by}), (pooled, {1: pooled_by}), (near * pooled, both)]

    def _pooled(self, each: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        return [_pooled(values, self.one, self.other) for values in each]


def fit_process(
    rows: SlowdownRows,
    effects: np.ndarray,
    robust: np.ndarray,
    settings: Settings,
    kernel: np.ndarray,
) -> Process:
    """robust: (n,) by which the noise of each row is divided. kernel: (n, n) all kernels between the rows; of
    effects, only those that ask for the same names."""
    from scipy.linalg import cho_factor, cho_solve

    cells, whole = Cells.of(rows), kernel.copy()
    if settings.by_effects:
        near, beside = (
            _near(_apart(effects[x], effects[x]), settings.width[0])[0]
            for x in (cells.target, cells.corunner)
        )
        whole += np.exp(settings.weight[-1]) * near * _pooled(beside, cells, cells)
    mean = _means(rows)
    whole[np.diag_indices_from(whole)] += _noise(whole, settings, robust)
    factor = cho_factor(whole, lower=True, overwrite_a=True, check_finite=False)
    weight = cho_solve(factor, rows.value - mean[rows.degree], check_finite=False)
    return Process(settings, effects, cells.target, cells.corunner, cells.row, weight, mean)


def tuned(
    rows: SlowdownRows, cell_table: CellTable, effects: np.ndarray, robust: np.ndarray, seed: int
) -> Settings:
    """Settings of the greatest likelihood of some rows, under a wide prior."""
    keep = np.zeros(len(rows), bool)
    keep[np.random.default_rng(seed).permutation(len(rows))[:MOST_TO_TUNE]] = True
    some = rows.take(keep)
    y = some.value - _means(some)[some.degree]
    n, cells = len(y), Cells.of(some)
    kernels = Kernels(cells, cells, cell_table, effects)
    spread = max(float(y.var()), 1e-12)
    by_effects = kernels.by_effects
    many, widths = (SAME + 1, 1) if by_effects else (SAME + 3, 2)
    start = np.log([*[spread / many] * many, *[1.0] * widths, spread / 20])

    def cost(x: np.ndarray) -> tuple[float, np.ndarray] | None:
        settings = Settings.of(x, by_effects)
        smooth = kernels.smooth(settings)
        every = [*kernels.fixed, *(kernel for kernel, _ in smooth)]
        weight = np.exp(settings.weight)
        whole = sum((w * k for w, k in zip(weight, every, strict=True)), np.zeros((n, n)))
        noise = _noise(whole, settings, robust[keep])
        whole[np.diag_indices(n)] += noise
        if (fits := likelihood(whole, y)) is None:
            return None
        slope = np.zeros_like(x)
        for number, (w, kernel) in enumerate(zip(weight, every, strict=True)):
            slope[number] = w * np.vdot(fits.inner, kernel)
        for number, (_, by) in enumerate(smooth, start=len(kernels.fixed)):
            for width, kernel in by.items():
                slope[many + width] += weight[number] * np.vdot(fits.inner, kernel)
        slope[-1] = (np.diag(fits.inner) * noise).sum()
        return fits.value, -0.5 * slope

    bounds = [(value - 12, value + 8) for value in start]
    most_likely, _ = greatest_posterior(cost, start, SPREAD, bounds, STEPS)
    return Settings.of(most_likely, by_effects)


def _noise(whole: np.ndarray, settings: Settings, robust: np.ndarray) -> np.ndarray:
    """Return the noise (n,) of the diagonal, at least what rounding needs for a definite matrix."""
    return np.exp(settings.noise) / np.maximum(robust, 0.01) + 1e-8 * float(np.trace(whole)) / len(
        whole
    )


def _means(rows: SlowdownRows) -> np.ndarray:
    """Compute the mean value by number of co-runners, (most + 1,); without rows, that of the next fewer."""
    degree = rows.degree
    total, count = np.bincount(degree, rows.value), np.bincount(degree)
    overall = float(rows.value.mean())
    out = np.full(len(count), overall)
    for d in range(len(count)):
        out[d] = total[d] / count[d] if count[d] else (out[d - 1] if d else overall)
    return out


def _pooled(values: np.ndarray, one: Cells, other: Cells) -> np.ndarray:
    """Average values (m, m') over the co-runners of both sides, (n, n')."""
    return _rows_pooled(_rows_pooled(values, one).T, other).T


def _rows_pooled(values: np.ndarray, cells: Cells) -> np.ndarray:
    """Average values over the co-runners of each row, (n, k)."""
    n, m = len(cells.target), len(cells.row)
    if m == n and (cells.row == np.arange(n)).all():
        return values
    try:
        from scipy.sparse import csr_array
    except ModuleNotFoundError:  # where a model answers, but none is fitted
        total = np.zeros((n, values.shape[1]))
        np.add.at(total, cells.row, values)
    else:
        total = csr_array((np.ones(m), (cells.row, np.arange(m))), shape=(n, m)) @ values
    return total / np.maximum(cells.degree, 1)[:, None]


def _apart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute (n, n') squared distances."""
    squared = (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * x @ y.T
    return np.maximum(squared, 0.0)


def _near(apart: np.ndarray, log_width: float) -> tuple[np.ndarray, np.ndarray]:
    """Return (squared exponential kernel, its slope by the logarithm of the width)."""
    over = apart / np.exp(2 * log_width)
    near = np.exp(-over / 2)
    return near, near * over
