"""Crossed random effects: sums of shrunken effects of names, their variances estimated from the data.

    y = sum over blocks of (design of the block) @ effect + noise,    effect ~ N(0, variance of its block)

Variances of blocks and of the noise are those of greatest evidence (MacKay 1992, *Bayesian interpolation*,
fixed-point updates); outliers are weighed down by Huber's weights. Fitting takes scipy, predicting NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

FIXED = 1e4  # variance of an effect that is not shrunk, over that of the response
HUBER = 2.0  # standard deviations of the noise past which a row is weighed down
KEPT = 0.9205  # of the variance of a normal law, where what is farther counts as that far
FARTHEST = 8.0  # median deviations, to which the response counts for its usual size
ROUNDS = 12  # of the fixed point, at most
STILL = 0.01  # standard deviations of the noise by which nothing moves any more
DENSE, DIRECT = 700, 4000  # most columns that are inverted, and that are factorised
PROBES = 16  # random vectors by which the trace of a large inverse is estimated
LEAST_VARIANCE = 1e-6  # of a block, over that of the response


@dataclass(frozen=True)
class Block:
    """Names' effects in n rows: row `row[i]` has `value[i]` times the effect of level `level[i]`.

    Parameters
    ----------
    row, level : (m,) ndarray of int
        A level below 0 is unknown: it adds nothing.
    value : (m,) ndarray
    size : int
        Number of levels.
    heavy : bool
        Whether some levels may lie as far off as rows may: these are shrunk less, and count less in the
        variance of the block.
    """

    row: np.ndarray
    level: np.ndarray
    value: np.ndarray
    size: int
    heavy: bool = False

    @classmethod
    def of(cls, level: np.ndarray, size: int, value: Any = 1.0, row: Any = None) -> Block:
        """Make a block with one level in each row, or in the rows `row` (m,), which may repeat. value: one
        for all, or (m,)."""
        row = np.arange(len(level)) if row is None else row
        return cls(row, level, np.broadcast_to(np.asarray(value, float), level.shape), size)

    @classmethod
    def columns(cls, values: np.ndarray) -> Block:
        """Return numbers of the rows, (n, k), each column with a slope of its own."""
        n, k = values.shape
        return cls(np.repeat(np.arange(n), k), np.tile(np.arange(k), n), values.ravel(), k)

    def take(self, rows: np.ndarray, n: int) -> Block:
        """Restrict the block to some of n rows, given in ascending order."""
        place = np.full(n, -1)
        place[rows] = np.arange(len(rows))
        keep = place[self.row] >= 0
        about = place[self.row[keep]], self.level[keep], self.value[keep], self.size
        return Block(*about, self.heavy)

    def sums(self, effect: np.ndarray, n: int) -> np.ndarray:
        """Sum effects (size,) over the block, (n,)."""
        known = self.level >= 0
        each = effect[self.level[known]] * self.value[known]
        return np.bincount(self.row[known], each, n)

    def matrix(self, n: int) -> Any:
        """Build the design as a sparse matrix (n, size)."""
        from scipy.sparse import csr_matrix

        known = self.level >= 0
        at = self.row[known], self.level[known]
        return csr_matrix((self.value[known], at), shape=(n, self.size))


Design = Mapping[str, Block]


@dataclass(frozen=True)
class MixedEffects:
    """Posterior means of effects, and what they were shrunk by.

    Parameters
    ----------
    effect, variance : mapping of str to (size,) ndarray
        Mean of each level, and its posterior variance, correlations left out.
    block_variance : mapping of str to float
        Prior variance of each block.
    noise_variance : (classes,) ndarray
        Variance of the noise of each class of rows.
    """

    effect: Mapping[str, np.ndarray]
    variance: Mapping[str, np.ndarray]
    block_variance: Mapping[str, float]
    noise_variance: np.ndarray

    def predict(self, design: Design, n: int) -> np.ndarray:
        """Sum the effects over the blocks of a design, (n,)."""
        return sum((b.sums(self.effect[k], n) for k, b in design.items()), np.zeros(n))


def fit_mixed_effects(
    design: Design,
    y: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    fixed: tuple[str, ...] = (),
    noise_class: np.ndarray | None = None,
    known_noise: np.ndarray | None = None,
    like: MixedEffects | None = None,
    expected: float = 1 / 3,
) -> MixedEffects:
    """Fit effects and their variances.

    Parameters
    ----------
    design : mapping of str to Block
    y : (n,) ndarray
    weight : (n,) ndarray, optional
        Precision of each row over the usual one.
    fixed : tuple of str
        Blocks that are not shrunk.
    noise_class : (n,) ndarray of int, optional
        Rows whose noise has a variance of its own.
    known_noise : (classes,) ndarray, optional
        Variances of the noise that are not estimated; NaN for those that are.
    like : MixedEffects, optional
        A fit to more of the same data, whose variances are taken.
    expected : float
        Share of the mean square that each block is first taken to make: the smaller, the sooner rows that are
        far off are taken for outliers.

    Returns
    -------
    MixedEffects
    """
    about = design, y, weight, fixed, noise_class, known_noise, like, expected
    return _Fit(*about).result()


@dataclass
class _Fit:
    design: Design
    y: np.ndarray
    weight: np.ndarray | None
    fixed: tuple[str, ...]
    noise_class: np.ndarray | None
    known_noise: np.ndarray | None
    like: MixedEffects | None
    expected: float
    used: np.ndarray = field(init=False)

    def result(self) -> MixedEffects:
        from scipy.sparse import diags, hstack

        n, names = len(self.y), list(self.design)
        self.sizes = [block.size for block in self.design.values()]
        if not n:
            none = np.zeros(0)
            return self._posterior(none, none, np.ones(len(names)), np.ones(1))
        whole: Any = hstack([b.matrix(n) for b in self.design.values()], format="csc")
        self.used = np.flatnonzero(np.diff(whole.indptr))
        x = whole[:, self.used].tocsr()
        self.block = np.repeat(np.arange(len(names)), self.sizes)[self.used]
        kind = np.zeros(n, int) if self.noise_class is None else self.noise_class
        weight = np.ones(n) if self.weight is None else self.weight
        middle = np.median(self.y)
        far = FARTHEST * np.median(np.abs(self.y - middle))
        usual = np.clip(self.y, middle - far, middle + far)
        self.total = float(np.average(usual**2, weights=weight)) + 1e-12
        tau, noise = self._start(names, int(kind.max()) + 1)
        huber, b = np.ones(n), np.zeros(len(self.used))
        is_heavy = np.array([block.heavy for block in self.design.values()])[self.block]
        self.tail = np.ones(len(self.used))
        gram, before = None, np.zeros(n)
        for _ in range(ROUNDS if self.like is None else 2):
            w = weight * huber / noise[kind]
            gram = (x.T @ diags(w) @ x).tocsc()
            solve, trace = _inverse(gram + diags(self.tail / tau[self.block]))
            b = solve(x.T @ (w * self.y))
            answered = x @ b
            left = self.y - answered
            if self.like is None:
                tau = self._block_variances(names, tau, b, trace)
                most = HUBER * np.sqrt(tau[self.block])
                far = np.minimum(1, most / np.maximum(np.abs(b), 1e-300))
                self.tail = np.where(is_heavy, far, 1.0)
                noise = self._noise(x, w, weight * huber**2, left, kind, noise, trace)
            scale = np.sqrt(noise[kind] / weight)
            huber = np.minimum(1, HUBER * scale / np.maximum(np.abs(left), 1e-12))
            if (((answered - before) / scale) ** 2).mean() < STILL**2:
                break
            before = answered
        assert gram is not None
        return self._posterior(b, gram.diagonal(), tau, noise)

    def _start(self, names: list[str], classes: int) -> tuple[np.ndarray, np.ndarray]:
        if self.like is not None:
            tau = np.array([self.like.block_variance[name] for name in names])
            return tau, self.like.noise_variance
        noise = np.full(classes, self.total / 3)
        if self.known_noise is not None:
            noise = np.where(np.isnan(self.known_noise), noise, self.known_noise)
        is_fixed = np.array([name in self.fixed for name in names])
        return np.where(is_fixed, FIXED * self.total, self.expected * self.total), noise

    def _block_variances(
        self, names: list[str], tau: np.ndarray, b: np.ndarray, trace: Callable[..., float]
    ) -> np.ndarray:
        from scipy.sparse import diags

        out, m = tau.copy(), None if (self.tail == 1).all() else diags(self.tail).tocsc()
        for j, name in enumerate(names):
            mine = self.block == j
            if name in self.fixed:
                continue
            told = mine.sum() - trace(m, mine) / tau[j] if mine.any() else 0.0
            value = float(((self.tail * b)[mine] ** 2).sum()) / told if told > 1e-3 else 0.0
            out[j] = np.clip(value, self.total * LEAST_VARIANCE, self.total * 10)
        return out

    def _noise(
        self, x: Any, w: np.ndarray, weight: np.ndarray, left: np.ndarray, kind: np.ndarray,
        noise: np.ndarray, trace: Callable[..., float],
    ) -> np.ndarray:  # fmt: skip
        from scipy.sparse import diags

        out, every = noise.copy(), np.ones(x.shape[1], bool)
        for g in range(len(noise)):
            rows = np.flatnonzero(kind == g)
            known = self.known_noise is not None and not np.isnan(self.known_noise[g])
            if known or not len(rows):
                continue
            part = x if len(rows) == len(kind) else x[rows]
            free = len(rows) - trace((part.T @ diags(w[rows]) @ part).tocsc(), every)
            square = float((weight[rows] * left[rows] ** 2).sum())
            out[g] = max(square / KEPT / max(free, 0.05 * len(rows)), self.total * 1e-7)
        return out

    def _posterior(
        self, b: np.ndarray, gram: np.ndarray, tau: np.ndarray, noise: np.ndarray
    ) -> MixedEffects:
        effect, precision = np.zeros(sum(self.sizes)), np.repeat(1 / tau, self.sizes)
        if len(b):
            effect[self.used] = b
            precision[self.used] += gram
        ends, names = np.cumsum(self.sizes)[:-1], list(self.design)
        means, variances = (
            dict(zip(names, np.split(v, ends), strict=True)) for v in (effect, 1 / precision)
        )
        priors = dict(zip(names, tau.tolist(), strict=True))
        return MixedEffects(means, variances, priors, noise)


def _inverse(matrix: Any) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[..., float]]:
    """Solve with a positive definite matrix S^-1, and tell traces.

    Returns
    -------
    solve : callable
        v -> S v.
    trace : callable
        (m, mask) -> sum of (S m)_ii over a mask, m None for the identity; exact for few columns.
    """
    p = matrix.shape[0]
    if p <= DENSE:
        s = _dense_inverse(matrix.toarray())

        def exact(m: Any, mask: np.ndarray) -> float:
            if m is None:
                return float(np.diag(s)[mask].sum())
            return float(np.asarray(m.multiply(s.T).sum(1)).ravel()[mask].sum())

        return lambda v: s @ v, exact
    z = np.random.default_rng(0).choice([-1.0, 1.0], (p, PROBES))
    if p <= DIRECT:
        from scipy.sparse.linalg import splu

        options = {"SymmetricMode": True}
        lu = splu(matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        solve = lu.solve
    else:
        csr = matrix.tocsr()

        def solve(v: np.ndarray) -> np.ndarray:
            return _conjugate_gradients(csr, v.reshape(p, -1)).reshape(v.shape)

    sz = solve(z)

    def probed(m: Any, mask: np.ndarray) -> float:
        return float(((z if m is None else m @ z) * sz)[mask].sum()) / PROBES

    return solve, probed


def _dense_inverse(matrix: np.ndarray) -> np.ndarray:
    from scipy.linalg import get_lapack_funcs

    factorise, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    lower, failed = factorise(matrix, lower=1)
    if failed:  # not positive definite, by rounding
        return np.linalg.pinv(matrix, hermitian=True)
    half = np.tril(invert(lower, lower=1)[0])
    return half + np.tril(half, -1).T


def _conjugate_gradients(
    matrix: Any, right: np.ndarray, iterations: int = 400, tolerance: float = 1e-6
) -> np.ndarray:
    """Solve for several right-hand sides (p, k) at once, preconditioned by the diagonal."""
    inverse = 1 / matrix.diagonal()[:, None]
    x, r = np.zeros_like(right), right.copy()
    z = inverse * r
    d, rz = z.copy(), (r * z).sum(0)
    least = tolerance**2 * rz
    for _ in range(iterations):
        q = matrix @ d
        step = rz / np.maximum((d * q).sum(0), 1e-300)
        x += step * d
        r -= step * q
        z = inverse * r
        rz, before = (r * z).sum(0), rz
        if (rz <= least).all():
            break
        d = z + rz / np.maximum(before, 1e-300) * d
    return x
