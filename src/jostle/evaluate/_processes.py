"""Co-run wall time of whole GPU processes: the simulator for what they do on the device, and context
creation, which every process does once and which takes both longer while two do it.

For processes i and j started together, with host work a_i before the context, context creation of c
seconds alone and everything else as it was alone:

    delay_i = max(0, c - |a_i - a_j|)  +  D_ij  +  k

The first term is processor sharing of two creations (both sides end later by the overlap they would have
had). D_ij is simulated from the two task traces, each beginning when its profile says. c, k and one a
per process are fitted on measured pairs. A ridge regression on what is left (which process, which
partner) may follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.accelerator import Application, Device, Model, Tenant, simulate

_STARTS = np.arange(-0.42, 0.4201, 0.015)  # s, tried for every process
_CREATIONS = np.arange(0.30, 0.4801, 0.01)
_SWEEPS = 8
_RIDGES = np.array([0.3, 1.0, 3.0, 10.0, 30.0])


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
    kernels: str | Model,
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
            ends = simulate(tenants, device, kernels=kernels).run_ends
            table[i, j], table[j, i] = (
                max(0.0, float(e[0]) - float(start) - applications[a].solo_seconds)
                for a, e, start in zip((i, j), ends, starts, strict=True)
            )
    return table


@dataclass(frozen=True, eq=False)
class ProcessModel:
    """starts: (n,) a. creation, constant: c, k. residual: ridge weights over `_features`, or None."""

    delays: np.ndarray
    starts: np.ndarray
    creation: float
    constant: float
    residual: np.ndarray | None = None

    def predict(self, pairs: Pairs) -> np.ndarray:
        """(m,) s beside the other."""
        i, j = pairs.target, pairs.other
        shift = self.starts[i] - self.starts[j]
        delay = self.constant + np.maximum(0.0, self.creation - np.abs(shift))
        delay = delay + self.delays[i, j]
        if self.residual is not None:
            delay = delay + _features(pairs, len(self.starts)) @ self.residual
        return pairs.solo + delay


def _features(pairs: Pairs, n: int) -> np.ndarray:
    """(m, 2n + 1): which process, which partner, one."""
    rows = np.arange(len(pairs.target))
    made = np.zeros((len(rows), 2 * n + 1))
    made[rows, pairs.target] = 1
    made[rows, n + pairs.other] = 1
    made[:, -1] = 1
    return made


def fit_processes(pairs: Pairs, delays: np.ndarray, *, residual: bool = False) -> ProcessModel:
    """Coordinate descent on relative squared error over a grid, for each c; deterministic.

    A process without a pair gets the median start of the others.
    """
    n = len(pairs.names)
    seen = np.union1d(pairs.target, pairs.other)
    best: tuple[float, ProcessModel] | None = None
    weight = 1 / pairs.corun**2
    delay = pairs.corun - pairs.solo
    for creation in _CREATIONS:
        starts = np.zeros(n)
        model, loss = None, np.inf
        for _ in range(_SWEEPS):
            before = loss
            for a in seen:
                mine = (pairs.target == a) | (pairs.other == a)
                i, j = pairs.target[mine], pairs.other[mine]
                tried = np.where(i[None] == a, _STARTS[:, None], starts[i][None])
                tried = tried - np.where(j[None] == a, _STARTS[:, None], starts[j][None])
                said = np.maximum(0.0, creation - np.abs(tried))
                said = said + delays[i, j][None]
                constant = model.constant if model else 0.0
                off = np.minimum(
                    np.abs(delay[mine][None] - said - constant) / pairs.corun[mine], 0.2
                )
                starts[a] = _STARTS[np.argmin((off**2).sum(axis=1) + 1e-5 * np.abs(_STARTS))]
            model = ProcessModel(delays, starts.copy(), float(creation), 0.0)
            left = pairs.corun - model.predict(pairs)
            constant = float((weight * left).sum() / weight.sum())
            model = ProcessModel(delays, starts.copy(), float(creation), constant)
            loss = float((weight * (left - constant) ** 2).sum())
            if before - loss < 1e-9 * before:
                break
        if model is not None and (best is None or loss < best[0]):
            best = loss, model
    assert best is not None
    fitted = best[1]
    unseen = np.setdiff1d(np.arange(n), seen)
    starts = fitted.starts.copy()
    starts[unseen] = np.median(starts[seen])
    weights = None
    if residual:
        weights = _ridge(pairs, fitted)
    return ProcessModel(delays, starts, fitted.creation, fitted.constant, weights)


def _ridge(pairs: Pairs, model: ProcessModel) -> np.ndarray:
    """Weights in seconds; the strength by leave-one-out error in closed form."""
    features = _features(pairs, len(model.starts))
    root = 1 / pairs.corun
    x, y = features * root[:, None], (pairs.corun - model.predict(pairs)) * root
    scale = (root**2).mean()
    best: tuple[float, np.ndarray] | None = None
    for strength in _RIDGES:
        penalty = np.eye(x.shape[1]) * strength * scale
        penalty[-1, -1] = 1e-9 * scale
        inverse = np.linalg.inv(x.T @ x + penalty)
        weights = inverse @ (x.T @ y)
        leverage = np.einsum("mi,ij,mj->m", x, inverse, x)
        error = float(np.mean(np.abs((y - x @ weights) / (1 - leverage))))
        if best is None or error < best[0]:
            best = error, weights
    assert best is not None
    return best[1]


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
