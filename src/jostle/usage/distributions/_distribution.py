"""The answer: a distribution of resource use at one time, as weighted atoms with what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jostle.errors import UsageError, require_known
from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.snapshots._thin import thinned

Limits = Mapping[str, float]


def corrected(ratio: np.ndarray | float, runs: float, prior: float) -> np.ndarray | float:
    """Return a probability that a share of so many runs stands for: (k + prior) / (n + 2 prior)."""
    if not np.isfinite(runs):
        return ratio
    return (np.asarray(ratio) * runs + prior) / (runs + 2 * prior)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Resource use at one time. components: names of the d components, in events per second.

    atoms: (m, d), weights: (m,), sum 1; idle runs, which have ended, are one atom at 0 among them, of
    weight `idle_ratio`. mean: (d,) and covariance: (d, d) are those of the whole forecast, of which the
    atoms may be a sample. method: what made it. warnings: what a reader must know. details: numbers of
    the solver (lam, eps_over_median, marginal_l1, hilbert, sweeps, missed_ratio) where they apply.
    runs: how many recorded runs are behind it, infinite where that is not known; prior: with how much doubt
    `exceedance_ratio` takes them.
    """

    components: tuple[str, ...]
    atoms: np.ndarray
    weights: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    method: str
    time_seconds: float = float("nan")
    idle_ratio: float = 0.0
    warnings: tuple[str, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    runs: float = float("inf")
    prior: float = 0.5

    @classmethod
    def of(
        cls, cloud: Cloud, components: Sequence[str], method: str, *, idle_ratio: float = 0.0
    ) -> Distribution:
        """Make a distribution of a cloud of the running runs, and the share of runs that have ended."""
        components = tuple(components)
        if len(components) != cloud.atoms.shape[1]:
            raise UsageError(f"{len(components)} names for {cloud.atoms.shape[1]} components")
        distribution = cls(
            components, cloud.atoms, cloud.weights, cloud.mean, cloud.covariance, method
        )
        return distribution.with_idle(idle_ratio)

    def __len__(self) -> int:
        return len(self.atoms)

    @property
    def cloud(self) -> Cloud:
        """Atoms with their weights."""
        return Cloud(self.atoms, self.weights)

    @property
    def running(self) -> Cloud:
        """The cloud of the runs that still run; a single atom at 0 if none does."""
        if not 0 < self.idle_ratio < 1:
            return self.cloud
        return Cloud.of(self.atoms[:-1], self.weights[:-1])

    def summary(self, atoms: int, seed: int = 0) -> Distribution:
        """Return the same as so many atoms at most: centroids of k-means with their weights, components
        weighed by their deviations. It keeps the mean of the atoms; mean and covariance stay those of
        the whole."""
        unit = np.where(self.cloud.deviation > 0, self.cloud.deviation, 1.0)
        small = thinned(self.running.scaled(1 / unit), atoms, seed).scaled(unit)
        own = replace(self, atoms=small.atoms, weights=small.weights, idle_ratio=0.0)
        if 0 < self.idle_ratio < 1:
            own = own.with_idle(self.idle_ratio)
        return replace(own, mean=self.mean, covariance=self.covariance, idle_ratio=self.idle_ratio)

    @property
    def effective_atoms(self) -> float:
        """1 / sum of squared weights: how many equal atoms it is worth."""
        return float(1 / (self.weights**2).sum())

    def with_idle(self, idle_ratio: float) -> Distribution:
        """Return the same with a share of runs that use nothing. A mixture: idle runs are not displaced."""
        if not 0 <= idle_ratio <= 1:
            raise UsageError(f"an idle ratio of {idle_ratio} is not between 0 and 1")
        if idle_ratio == 0:
            return self
        busy, zero = 1 - idle_ratio, np.zeros((1, self.atoms.shape[1]))
        second = self.covariance + np.outer(self.mean, self.mean)
        mean = busy * self.mean
        has_mass = busy > 0
        return replace(
            self,
            atoms=np.concatenate([self.atoms, zero]) if has_mass else zero,
            weights=np.append(busy * self.weights, idle_ratio) if has_mass else np.ones(1),
            mean=mean,
            covariance=busy * second - np.outer(mean, mean),
            idle_ratio=idle_ratio + busy * self.idle_ratio,
        )

    def column(self, component: str) -> int:
        """Return the number of a component. Raises UnknownName."""
        require_known("component", component, self.components)
        return self.components.index(component)

    def quantile(self, ratios: float | Sequence[float]) -> np.ndarray:
        """Return (d,) or (len(ratios), d): per component the least value not exceeded with that
        probability."""
        wanted = np.atleast_1d(np.asarray(ratios, np.float64))
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise UsageError(f"quantiles {ratios} are not all between 0 and 1")
        # 1e-12: a sum of weights that should be the ratio may miss it by rounding.
        levels, columns = wanted * self.weights.sum() - 1e-12, range(len(self.components))
        quantiles = np.stack([self.cloud.quantiles(n, levels) for n in columns], axis=1)
        return quantiles[0] if np.ndim(ratios) == 0 else quantiles

    def exceedance_ratio(self, limits: Limits) -> float:
        """P(any of these components is above its limit); limits: {component: events per second}.

        The share of the atoms, corrected for how few runs are behind them: none of five runs above does not
        mean that the next one is not. `weights @ above(limits)` is the share itself.
        """
        share = float(np.clip(self.weights @ self.above(limits), 0.0, 1.0))
        return float(corrected(share, self.runs, self.prior))

    def above(self, limits: Limits) -> np.ndarray:
        """Return (m,) whether an atom is above any limit. Raises UnknownName, UsageError for NaN."""
        if not limits:
            raise UsageError("no limits", fix="Give at least one component and its limit.")
        over = np.zeros(len(self), bool)
        for name, limit in limits.items():
            if not limit == limit:
                raise UsageError(f"the limit of {name!r} is NaN")
            over |= self.atoms[:, self.column(name)] > limit
        return over

    def sample(self, size: int, seed: int = 0) -> np.ndarray:
        """Return (size, d) atoms drawn with their weights."""
        if size < 1:
            raise UsageError(f"a sample cannot have {size} atoms")
        random = np.random.default_rng(seed)
        return self.atoms[random.choice(len(self), size, p=self.weights / self.weights.sum())]
