"""Co-run wall time of whole GPU processes: the simulator for what they do on the device, and context
creation, which every process does once and which takes both longer while two do it.

For processes i and j started together, with host work a_i before the context, context creation of c
seconds alone and everything else as it was alone:

    delay_i = max(0, c - |a_i - a_j|)  +  D_ij  +  k

The first term is processor sharing of two creations (both sides end later by the overlap they would have
had). D_ij is simulated from the two task traces, each beginning when its profile says. c, k and one a
per process are fitted on measured pairs, each a held to what the profile suggests: a process that first
uses the device later than others has created its context later too, by a share of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.accelerator import (
    Application,
    Device,
    SharingModel,
    SimulationOptions,
    Tenant,
    simulate,
)

_STARTS = np.arange(-0.42, 0.4201, 0.015)  # s, tried for every process
_CREATIONS = np.arange(0.30, 0.4801, 0.02)
_MOST_OFF = 0.2  # an error past this counts no more
_SWEEPS = 8


@dataclass(frozen=True, eq=False)
class Pairs:
    """m measured targets. target, other: (m,) indices of processes. solo, corun: (m,) s."""

    names: tuple[str, ...]
    target: np.ndarray
    other: np.ndarray
    solo: np.ndarray
    corun: np.ndarray

    def take(self, rows: np.ndarray) -> Pairs:
        return Pairs(
            self.names, self.target[rows], self.other[rows], self.solo[rows], self.corun[rows]
        )

    @property
    def pair(self) -> np.ndarray:
        """(m,) the same for both sides of a pair."""
        n = len(self.names)
        return np.minimum(self.target, self.other) * n + np.maximum(self.target, self.other)


def simulate_delays(
    applications: Sequence[Application],
    first_seconds: np.ndarray,
    device: Device,
    sharing: str | SharingModel,
) -> np.ndarray:
    """(n, n) s that i ends later beside j than alone. first_seconds: (n,) when each process first uses the
    device, as its profile says; both processes start together."""
    n = len(applications)
    table = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            starts = first_seconds[[i, j]] - min(first_seconds[i], first_seconds[j])
            tenants = [
                Tenant(applications[a], start_seconds=float(start))
                for a, start in zip((i, j), starts, strict=True)
            ]
            ends = simulate(tenants, device, SimulationOptions(sharing)).run_ends
            table[i, j], table[j, i] = (
                max(0.0, float(e[0]) - float(start) - applications[a].solo_seconds)
                for a, e, start in zip((i, j), ends, starts, strict=True)
            )
    return table


def usual_range(values: np.ndarray) -> np.ndarray:
    """(n,) the values with those far out moved to Tukey's fences, 1.5 times the interquartile range away."""
    low, high = np.percentile(values, (25, 75))
    return np.clip(values, low - 1.5 * (high - low), high + 1.5 * (high - low))


@dataclass(frozen=True, eq=False)
class ProcessModel:
    """delays: (n, n) as simulated. starts: (n,) a. creation, constant: c, k."""

    delays: np.ndarray
    starts: np.ndarray
    creation: float
    constant: float

    def predict(self, pairs: Pairs) -> np.ndarray:
        """(m,) s beside the other."""
        i, j = pairs.target, pairs.other
        shift = self.starts[i] - self.starts[j]
        delay = self.constant + np.maximum(0.0, self.creation - np.abs(shift))
        return pairs.solo + delay + self.delays[i, j]


def _features(pairs: Pairs, n: int) -> np.ndarray:
    """(m, 2n + 1): which process, which partner, one."""
    rows = np.arange(len(pairs.target))
    made = np.zeros((len(rows), 2 * n + 1))
    made[rows, pairs.target] = 1
    made[rows, n + pairs.other] = 1
    made[:, -1] = 1
    return made


def fit_processes(
    pairs: Pairs, delays: np.ndarray, expected: np.ndarray, pull: float
) -> ProcessModel:
    """Coordinate descent on relative squared error over a grid, for every c at once; deterministic.

    expected: (n,) s, starts as the profiles suggest. pull: how strongly starts are held to those; a process
    without a pair gets its own, moved as the others are in the median.
    """
    seen = np.union1d(pairs.target, pairs.other)
    weight = 1 / pairs.corun**2
    left = pairs.corun - pairs.solo - delays[pairs.target, pairs.other]
    starts = np.tile(expected, (len(_CREATIONS), 1))
    constant = np.zeros(len(_CREATIONS))
    loss = np.full(len(_CREATIONS), np.inf)
    for _ in range(_SWEEPS):
        for a in seen:
            mine = (pairs.target == a) | (pairs.other == a)
            beside = np.where(pairs.target == a, pairs.other, pairs.target)[mine]
            apart = np.abs(_STARTS[None, :, None] - starts[:, None, beside])
            delay = np.maximum(0.0, _CREATIONS[:, None, None] - apart) + constant[:, None, None]
            off = np.minimum(np.abs(left[mine] - delay) / pairs.corun[mine], _MOST_OFF)
            held = pull * (_STARTS - expected[a]) ** 2
            starts[:, a] = _STARTS[np.argmin((off**2).sum(axis=2) + held, axis=1)]
        apart = np.abs(starts[:, pairs.target] - starts[:, pairs.other])
        rest = left - np.maximum(0.0, _CREATIONS[:, None] - apart)
        constant = (rest @ weight) / weight.sum()
        before = loss
        loss = ((rest - constant[:, None]) ** 2) @ weight
        loss = loss + pull * ((starts - expected) ** 2).sum(axis=1)
        if np.all(np.abs(before - loss) < 1e-9):
            break
    best = int(np.argmin(loss))
    found = starts[best].copy()
    unseen = np.setdiff1d(np.arange(len(expected)), seen)
    found[unseen] = expected[unseen] + np.median(found[seen] - expected[seen])
    return ProcessModel(delays, found, float(_CREATIONS[best]), float(constant[best]))


def baselines(fit: Pairs, test: Pairs) -> Mapping[str, np.ndarray]:
    """Solo time, solo time and a constant, additive in target and partner; (m,) s each."""
    n = len(fit.names)
    constant = np.average(fit.corun - fit.solo, weights=1 / fit.corun**2)
    x = _features(fit, n) / fit.corun[:, None]
    y = (fit.corun - fit.solo) / fit.corun
    penalty = np.eye(x.shape[1]) * 1e-3 * (1 / fit.corun**2).mean()
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    return {
        "solo": test.solo,
        "constant": test.solo + constant,
        "additive": test.solo + _features(test, n) @ weights,
    }
