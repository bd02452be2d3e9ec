"""Training on few runs in NumPy: what JAX does in `_train`, step by step, where compiling would take longer.

All runs are given at every step, in the saturating form under the relative objective.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from jostle._base.progress import Progress
from jostle.learn.contract._encoded_features import Features
from jostle.learn.learners.network._network_equation import CORUN_SCALE, SHIFT, softplus
from jostle.learn.learners.network.training._shape import (
    Parameters,
    Shape,
    TrainingSchedule,
    calls_of,
    initial_parameters,
)
from jostle.learn.learners.network.training._training_rows import TrainingData, arrays_of

MOST_RUNS, MOST_CELLS = 1_000, 20_000
FORM, OBJECTIVE = "saturating", "relative"
BENT, CUBIC = np.float32((2 / np.pi) ** 0.5), np.float32(0.044715)  # of gelu, by tanh
SMOOTH, FAR, STEEP = np.float32(0.02), np.float32(1.5), np.float32(4.5)  # see `objective_of`
OFFSET_SCALE = np.float32(0.3)

Arrays = dict[str, np.ndarray]


def is_for(data: TrainingData, shape: Shape, schedule: TrainingSchedule) -> bool:
    """Whether training is short enough that it is over before a program would be compiled."""
    runs = len(data.solo) + len(data.corun)
    cells = len(data.workload.numeric) * len(data.platform.numeric)
    return (
        (shape.form, schedule.objective) == (FORM, OBJECTIVE)
        and runs <= min(MOST_RUNS, schedule.batch)
        and cells <= MOST_CELLS
        and not schedule.last_layer_steps
    )


def train_few(
    data: TrainingData,
    shape: Shape,
    schedule: TrainingSchedule,
    seed: int,
    progress: Progress | None = None,
) -> Arrays:
    """The embeddings of the checkpoint with the least score, of the last one without scores."""
    start = initial_parameters(seed, shape, data.workload, data.platform)
    vector = np.concatenate([leaf.ravel() for leaf in _leaves(start)])
    decays = np.concatenate(
        [np.full(leaf.size, leaf.ndim > 1, np.float32) for leaf in _leaves(start)]
    )
    slope, averaged = np.zeros_like(vector), vector.copy()
    model = _Model(_views(start, vector), _views(start, slope), data, shape, schedule)
    kept = _Model(_views(start, averaged), _views(start, slope), data, shape, schedule)
    calls, each = calls_of(schedule.steps)
    first, second = np.zeros_like(vector), np.zeros_like(vector)
    best, best_embeddings, losses = np.inf, {}, []
    for step in range(calls * each):
        slope[:] = 0.0
        losses.append(model.learn())
        slope *= np.float32(min(1.0, 1.0 / max(float(np.sqrt(slope @ slope)), 1e-30)))
        first += np.float32(0.1) * (slope - first)
        second += np.float32(0.01) * (slope * slope - second)
        size = np.sqrt(second / np.float32(1 - 0.99 ** (step + 1))) + np.float32(1e-8)
        move = first / np.float32(1 - 0.9 ** (step + 1)) / size
        move += np.float32(schedule.weight_decay) * decays * vector
        vector -= np.float32(_rate(schedule, step, calls * each)) * move
        averaged += np.float32(1 - schedule.average) * (vector - averaged)
        if (step + 1) % each:
            continue
        if data.score_of is not None or step + 1 == calls * each:
            embeddings = kept.embed()
            score = -float(step) if data.score_of is None else data.score_of(embeddings)
            if score <= best:
                best, best_embeddings = score, embeddings
        if progress:
            progress(min(step + 1, schedule.steps), schedule.steps, float(np.mean(losses[-each:])))
    return best_embeddings


def _rate(schedule: TrainingSchedule, step: int, steps: int) -> float:
    """Up from a twentieth of the learning rate, and down by a cosine to a hundredth."""
    rise = min(100, steps // 3 + 1)
    if step < rise:
        return schedule.learning_rate * (0.05 + 0.95 * step / rise)
    done = min((step - rise) / max(steps - rise, 1), 1.0)
    return schedule.learning_rate * (0.99 * 0.5 * (1 + np.cos(np.pi * done)) + 0.01)


def _leaves(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, np.ndarray):
        return [tree]
    return [
        leaf
        for part in (tree.values() if isinstance(tree, dict) else tree)
        for leaf in _leaves(part)
    ]


def _views(tree: Any, vector: np.ndarray) -> Any:
    """The same tree, its arrays consecutive parts of the vector."""
    at = 0

    def view(part: Any) -> Any:
        nonlocal at
        if isinstance(part, dict):
            return {name: view(each) for name, each in part.items()}
        if isinstance(part, list):
            return [view(each) for each in part]
        start, at = at, at + part.size
        return vector[start:at].reshape(part.shape)

    return view(tree)


class _Tower:
    """One side's layers over its features. slope: where the loss's slopes are added up."""

    def __init__(
        self, own: Parameters, slope: Parameters, features: Features, widths: tuple[int, ...]
    ) -> None:
        self.own, self.slope, self.features = own, slope, features
        self.ends = np.cumsum(widths)[:-1]
        self.codes = [
            csr_matrix((np.ones(len(c), np.float32), c, np.arange(len(c) + 1)), (len(c), size))
            for c, size in zip(features.category.T, features.category_sizes, strict=True)
        ]

    def outputs(self) -> list[np.ndarray]:
        own = self.own
        parts = [self.features.numeric, own["own"]]
        parts += [code @ table for code, table in zip(self.codes, own["tables"], strict=True)]
        x = np.concatenate(parts, axis=1)
        self.passed = []
        for layer in own["layers"]:
            inner = x @ layer["w"] + layer["b"]
            bent = np.tanh(BENT * (inner + CUBIC * inner**3))
            self.passed.append((x, inner, bent))
            x = inner * (1 + bent) / 2
        self.last = x
        out = np.split(x @ own["head"]["w"] + own["head"]["b"], self.ends, axis=1)
        out[0] = out[0] + own["offset"]
        return out

    def learn(self, pulls: list[np.ndarray], decay: float) -> float:
        """Add the slopes where the loss has these towards the outputs; the penalty of the offsets."""
        own, slope = self.own, self.slope
        offset = own["offset"]
        slope["offset"] += pulls[0] + np.float32(2 * decay / len(offset)) * offset
        pull = np.concatenate(pulls, axis=1)
        _add(slope["head"], self.last, pull)
        pull = pull @ own["head"]["w"].T
        for layer, into, (x, inner, bent) in zip(
            own["layers"][::-1], slope["layers"][::-1], self.passed[::-1], strict=True
        ):
            steep = inner * (1 - bent**2) * BENT * (1 + 3 * CUBIC * inner**2)
            pull = pull * (1 + bent + steep) / 2
            _add(into, x, pull)
            pull = pull @ layer["w"].T
        start = self.features.numeric.shape[1]
        width = own["own"].shape[1]
        slope["own"] += pull[:, start : start + width]
        for number, code in enumerate(self.codes):
            start += width
            slope["tables"][number] += code.T @ pull[:, start : start + width]
        return decay * float(np.square(offset).sum(1).mean())


def _add(into: Parameters, x: np.ndarray, pull: np.ndarray) -> None:
    into["w"] += x.T @ pull
    into["b"] += pull.sum(0)


class _Model:
    """Two towers, what they say of all runs, and the slopes of the loss."""

    def __init__(
        self,
        own: Parameters,
        slope: Parameters,
        data: TrainingData,
        shape: Shape,
        schedule: TrainingSchedule,
    ) -> None:
        self.shape, self.schedule = shape, schedule
        sides = (
            ("workload", data.workload, shape.workload_outputs),
            ("platform", data.platform, shape.platform_outputs),
        )
        self.towers = [_Tower(own[at], slope[at], known, widths) for at, known, widths in sides]
        self.size = len(data.workload.numeric), len(data.platform.numeric)
        cells = self.size[0] * self.size[1]
        self.solo, self.beside = arrays_of(data.solo), arrays_of(data.corun)
        self.cells = [w * self.size[1] + p for w, p, _, _ in (self.solo, self.beside)]
        (_, platform, corunner, _), n = self.beside, len(self.beside[0])
        row, slot = np.nonzero(corunner >= 0)
        there = corunner[row, slot] * self.size[1] + platform[row]
        one = np.ones(len(row), np.float32)
        self.in_row = csr_matrix((one, (row, there)), (n, cells))
        one = np.ones(n, np.float32)
        self.of_target = csr_matrix((one, (np.arange(n), self.cells[1])), (n, cells))
        self.pressing, self.hit_by = self.in_row.T.tocsr(), self.of_target.T.tocsr()

    def embed(self) -> Arrays:
        """See `_train.embed`."""
        w, p = (tower.outputs() for tower in self.towers)
        cut = (-1, self.shape.types, self.shape.type_rank)
        corun = np.float32(CORUN_SCALE[FORM])
        return {
            "workload_bias": w[1][:, 0] * OFFSET_SCALE,
            "platform_bias": p[1][:, 0] * OFFSET_SCALE,
            "workload_main": w[0] * np.float32(self.shape.rank**-0.5),
            "platform_main": p[0],
            "target": w[2].reshape(cut),
            "corunner": w[3].reshape(cut),
            "platform_corun": p[4] * corun,
            "platform_corun_bias": p[5][:, 0] * corun,
            "susceptibility": p[2].reshape(cut),
            "intensity": p[3].reshape(cut),
        }

    def learn(self) -> float:
        """The loss, its slopes added where they belong."""
        e, types, (workloads, platforms) = self.embed(), self.shape.types, self.size
        alone = e["workload_main"] @ e["platform_main"].T
        alone += e["workload_bias"][:, None] + e["platform_bias"]
        corun = e["workload_main"] @ e["platform_corun"].T + e["platform_corun_bias"]
        by_type = [
            tuple(np.ascontiguousarray(e[name][:, t]) for name in SIDES) for t in range(types)
        ]
        shift = np.float32(SHIFT[FORM])
        hit, press = (
            np.stack([(one[a] @ one[a + 1].T).ravel() for one in by_type], 1) - shift
            for a in (0, 2)
        )
        reached, pressed = self.of_target @ softplus(hit, np), self.in_row @ softplus(press, np)
        inner = 1 + (reached * pressed).sum(1)
        flat = alone.ravel()
        cost, pull = _cost(flat[self.cells[0]] - self.solo[3])
        answer = (flat + corun.ravel())[self.cells[1]] + np.log(inner)
        cost_beside, pull_beside = _cost(answer - self.beside[3])
        weight = np.float32(self.schedule.corun_weight)
        pull_beside *= weight
        d_corun = np.bincount(self.cells[1], pull_beside, workloads * platforms)
        d_alone = d_corun + np.bincount(self.cells[0], pull, workloads * platforms)
        d_alone, d_corun = (
            each.reshape(self.size).astype(np.float32) for each in (d_alone, d_corun)
        )
        each = (pull_beside / inner)[:, None]
        d_hit = self.hit_by @ (each * pressed) * _sigmoid(hit)
        d_press = self.pressing @ (each * reached) * _sigmoid(press)
        slopes = {name: np.empty_like(e[name]) for name in SIDES}
        for t, (target, susceptibility, corunner, intensity) in enumerate(by_type):
            by_hit, by_press = d_hit[:, t].reshape(self.size), d_press[:, t].reshape(self.size)
            slopes["target"][:, t] = by_hit @ susceptibility
            slopes["susceptibility"][:, t] = by_hit.T @ target
            slopes["corunner"][:, t] = by_press @ intensity
            slopes["intensity"][:, t] = by_press.T @ corunner
        scale = np.float32(self.shape.rank**-0.5)
        small = np.float32(CORUN_SCALE[FORM])
        main = d_alone @ e["platform_main"] + d_corun @ e["platform_corun"]
        pulls = (
            [
                main * scale,
                d_alone.sum(1)[:, None] * OFFSET_SCALE,
                slopes["target"].reshape(workloads, -1),
                slopes["corunner"].reshape(workloads, -1),
            ],
            [
                d_alone.T @ e["workload_main"],
                d_alone.sum(0)[:, None] * OFFSET_SCALE,
                slopes["susceptibility"].reshape(platforms, -1),
                slopes["intensity"].reshape(platforms, -1),
                d_corun.T @ e["workload_main"] * small,
                d_corun.sum(0)[:, None] * small,
            ],
        )
        decay = self.schedule.offset_decay
        penalty = sum(
            tower.learn(mine, decay) for tower, mine in zip(self.towers, pulls, strict=True)
        )
        return cost + float(weight) * cost_beside + penalty


SIDES = ("target", "susceptibility", "corunner", "intensity")


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(x / 2)) / 2


def _cost(error: np.ndarray) -> tuple[float, np.ndarray]:
    """(mean of what log errors cost, its slope by each of them); see `_train.objective_of`."""
    if not len(error):
        return 0.0, error
    near = np.clip(error, np.float32(-8), FAR)
    off, far = np.expm1(near), error > FAR
    size = np.abs(off) + np.where(far, error - FAR, 0) * STEEP
    slope = np.where(far, STEEP, np.where(error < -8, 0, np.sign(off) * (off + 1)))
    is_noise = size < SMOOTH
    cost = np.where(is_noise, size * size / (2 * SMOOTH) + SMOOTH / 2, size)
    slope = np.where(is_noise, size / SMOOTH * slope, slope) / np.float32(len(error))
    return float(cost.mean()), slope.astype(np.float32)
