"""Whether a run is like those that forecasts learned from: a conformal test on what it has shown so far.

Of n recorded runs and a new one, each is as strange as it is far from the nearest of the others. Where the
new one is like them, each is the strangest with the same chance, so that the share of runs at least as
strange as the new one, itself among them, is at most p with probability p (conformal anomaly detection:
Laxhammar and Falkman, Annals of Mathematics and Artificial Intelligence 74, 2015).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RARE = 0.05  # the share of like runs that are called unlike
FAR = 2.0  # times as far as the strangest recorded run: where runs are too few for RARE
MOST_RUNS, MOST_TIMES = 100, 60  # in a comparison


@dataclass(frozen=True)
class Unlikeness:
    """p_ratio: the share of runs at least as strange, the new one among them. distance_ratio: how far it is
    from the nearest, over that of the strangest recorded run. runs: that have come as far."""

    p_ratio: float
    distance_ratio: float
    runs: int

    @property
    def is_unlike(self) -> bool:
        """True if to warn: p is rare; or as small as so few runs can make it, and it is far away."""
        if self.p_ratio <= RARE:
            return True
        is_strangest = self.p_ratio <= 1 / (self.runs + 1) * (1 + 1e-9)
        return self.runs > 1 and is_strangest and self.distance_ratio > FAR

    @property
    def text(self) -> str:
        return (
            f"the run so far is unlike the {self.runs} recorded runs that came as far: "
            f"{self.distance_ratio:.3g} times as far from the nearest as any of them "
            f"(p {self.p_ratio:.2g}); answers about it may not hold"
        )


def unlikeness(states: np.ndarray, own: np.ndarray) -> Unlikeness:
    """states: (n, s, d) of recorded runs at the times until now, own: (s, d) of the new one; NaN where not
    known. All are treated alike, so that p is exact."""
    n = len(states)
    some = np.unique(np.linspace(0, n - 1, MOST_RUNS).astype(int)) if n else np.zeros(0, int)
    times = np.unique(np.linspace(0, own.shape[0] - 1, MOST_TIMES).astype(int))
    every = np.concatenate([states[some][:, times], own[None, times]])
    if len(every) < 3:
        return Unlikeness(1.0, 1.0, len(some))
    middle = np.nanmedian(every, axis=0)
    spread = np.nanmedian(np.abs(every - middle), axis=0)
    # Where runs hardly differ at any time, a thousandth of the value is no difference.
    unit = np.nanmedian(spread, axis=0) + 1e-3 * np.nanmax(np.abs(middle), axis=0) + 1e-300
    nearest = np.full(len(every), np.inf)
    for row in range(len(every)):
        gap = np.log1p(np.abs(every - every[row]) / unit)
        known = np.isfinite(gap)
        total, count = np.where(known, gap, 0.0).sum(axis=(1, 2)), known.sum(axis=(1, 2))
        distance = np.divide(total, count, out=np.full(len(every), np.inf), where=count > 0)
        distance[row] = np.inf
        nearest[row] = distance.min()
    strangest = float(nearest[:-1].max())
    ratio = float(nearest[-1] / strangest) if strangest > 0 else float(nearest[-1] > 0) * np.inf
    p = float((nearest >= nearest[-1] * (1 - 1e-12)).mean())
    return Unlikeness(p, ratio if np.isfinite(ratio) else 1e9, len(some))
