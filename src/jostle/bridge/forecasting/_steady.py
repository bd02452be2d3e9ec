"""Where nothing changes: snapshots around an interval that could all be of one law, pooled.

A service that has settled has the same distribution at every time, and all of its snapshots together tell it
better than the two beside the time asked about, whose own few runs are then most of the error. Whether it has
settled shows in the energy distance of snapshots (Székely and Rizzo, J. Statistical Planning and Inference
143, 2013) of ranks, so that glitches hide nothing, and without bias: over pairs of different runs only, so
that neither the number of runs nor what a run keeps of itself counts. A stretch grows from the interval to
both sides while the next snapshot is no further from it than half of what a snapshot is, by the number of
its runs, from its own law. What the stretch is worth is the share with the least expected squared energy
distance to the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import squared_distances
from jostle.bridge.problem._snapshots import Snapshot

REACH = 6  # snapshots on each side, at most
RUNS = 150  # of each snapshot in a comparison, at most
FEWEST = 4
SIDES = ("left", "right")
NEAR = 0.5  # of the squared distance of a snapshot to its own law, by the number of its runs


@dataclass(frozen=True, eq=False)
class SteadyStretch:
    """The snapshots first to last, of which an interval is part, could be of one law. spread: the mean
    distance of two runs there. runs: of a snapshot. bias: the squared energy distance of all of them together
    to those beside the interval."""

    first: int
    last: int
    spread: float
    runs: float
    bias: float

    def share(self, lam: float) -> float:
        """How much of a forecast at a share of the interval is to come from all of them."""
        count = self.last - self.first + 1
        if count <= 2 or self.spread <= 0:
            return 0.0
        one = self.spread / (2 * self.runs)
        gain = one * (lam**2 + (1 - lam) ** 2) - one / count
        return max(gain, 0.0) / max(max(gain, 0.0) + self.bias, 1e-300)


class Likeness:
    """Unbiased energy distances between the snapshots of a core, found when asked for."""

    def __init__(self, shots: Sequence[Snapshot]) -> None:
        self._shots = shots
        running = [shot.cloud.atoms for shot in shots if shot.idle_ratio < 1]
        self._values = np.sort(np.concatenate(running), axis=0) if running else np.zeros((0, 0))
        self._parts: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._means: dict[tuple[int, int], float] = {}
        self._found: dict[int, SteadyStretch] = {}

    def around(self, k: int) -> SteadyStretch:
        """The stretch around the interval from snapshot k to k + 1."""
        if k not in self._found:
            self._found[k] = self._grown(k)
        return self._found[k]

    def _grown(self, k: int) -> SteadyStretch:
        first, last = k, k + 1
        if not (self._able(first) and self._able(last)):
            return SteadyStretch(first, last, 0.0, 1.0, 0.0)
        spread = 0.5 * (self._mean(k, k) + self._mean(k + 1, k + 1))
        runs = 0.5 * sum(1 / float((self._part(i)[1] ** 2).sum()) for i in (k, k + 1))
        near = NEAR * spread / (2 * runs)
        open_sides = {-1, 1} if self._apart([k], [k + 1]) <= near else set()
        while open_sides:
            for side in sorted(open_sides):
                new = first - 1 if side < 0 else last + 1
                reach = k - new if side < 0 else new - k - 1
                if (
                    reach <= REACH
                    and 0 <= new < len(self._shots)
                    and self._able(new)
                    and self._apart([new], list(range(first, last + 1))) <= near
                ):
                    first, last = min(first, new), max(last, new)
                else:
                    open_sides.discard(side)
        others = [i for i in range(first, last + 1) if i not in (k, k + 1)]
        bias = 0.0
        if others:
            part = len(others) / (len(others) + 2)
            bias = part**2 * max(self._apart([k, k + 1], others), 0.0)
        return SteadyStretch(first, last, spread, runs, bias)

    def _able(self, i: int) -> bool:
        return self._shots[i].idle_ratio < 1 and len(self._shots[i].cloud) >= FEWEST

    def _apart(self, some: Sequence[int], others: Sequence[int]) -> float:
        """The squared energy distance of two pools of snapshots, about 0 where they are of one law."""
        across = np.mean([self._mean(i, j) for i in some for j in others])
        inside = [
            np.mean([self._mean(i, j) for i in part for j in part]) for part in (some, others)
        ]
        return float(across - 0.5 * sum(inside))

    def _part(self, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ranks of atoms, their weights and runs, of RUNS runs at most: the same everywhere."""
        if i not in self._parts:
            shot = self._shots[i]
            known = (shot.runs >= 0).all()
            key = shot.runs if known else np.arange(len(shot.cloud))
            # A rule by the run itself, so that snapshots have the same runs.
            rows = np.argsort(key * 2654435761 % 2**32, kind="stable")[:RUNS]
            cloud = shot.cloud.take(rows)
            ranks = np.empty_like(cloud.atoms)
            for column, values in enumerate(self._values.T):
                sides = (np.searchsorted(values, cloud.atoms[:, column], s) for s in SIDES)
                ranks[:, column] = sum(sides) / (2 * len(values))
            runs = shot.runs[rows] if known else np.full(len(rows), -1)
            self._parts[i] = ranks, cloud.weights, runs
        return self._parts[i]

    def _mean(self, i: int, j: int) -> float:
        """The mean distance of a run of one to another run of the other."""
        i, j = min(i, j), max(i, j)
        if (i, j) not in self._means:
            (x, p, one), (y, q, two) = self._part(i), self._part(j)
            mass = np.outer(p, q)
            same = np.eye(len(x), dtype=bool) if i == j else one[:, None] == two
            mass[same & ((one[:, None] >= 0) | (i == j))] = 0.0
            total = mass.sum()
            distance = squared_distances(x, y) ** 0.5
            self._means[i, j] = float((mass * distance).sum() / total) if total > 0 else np.inf
        return self._means[i, j]
