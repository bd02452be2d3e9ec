"""One member after another: how large and how long, its training, and their average as one model."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle._base.progress import Progress
from jostle.learn.learners.network._embeddings import Embeddings
from jostle.learn.learners.network._network_settings import FactorizationSettings
from jostle.learn.learners.network.training._shape import Shape, TrainingSchedule
from jostle.learn.learners.network.training._training_rows import TrainingData
from jostle.learn.training._linear_baseline import Baseline

MANY_RUNS = 30_000  # from which training starts in closed form
GRID_LIMIT = 2_000_000  # cells of the workload x platform grid up to which whole products are taken


Parts = list[dict[str, np.ndarray]]


def shape_of(method: FactorizationSettings, size: int, cells: int) -> Shape:
    """Sizes of a model of `size` runs over so many workload x platform cells."""
    return Shape(
        form=method.form,
        rank=min(method.rank, max(4, size // 16)),
        types=method.types,
        type_rank=min(method.type_rank, max(2, size // 15_000)),
        hidden=min(method.hidden, max(16, size // 8)),
        table_width=method.table_width,
        grid=cells <= GRID_LIMIT,
        leak=method.leak,
    )


def schedule_of(method: FactorizationSettings, size: int, shape: Shape) -> TrainingSchedule:
    """Choose how long and how hard to train on `size` runs.

    Many runs over few enough names start in closed form, and need fewer steps, two in five of them of the
    towers' last layers alone, which cost less than half. Fewer runs take little time either way.
    """
    many = size >= MANY_RUNS and shape.grid
    spared = float(np.clip(0.75 * (size / 60_000) ** 0.45, 0.7, 1.0)) if many else 1.0
    steps = method.steps or round(steps_for(size, method.members) * spared)
    last = steps * 2 // 5 if many else 0
    offset_decay, batch = (0.03, 2048) if many else (0.3, 4096)
    return TrainingSchedule(
        steps=steps - last,
        last_layer_steps=last,
        learning_rate=method.learning_rate or rate_for(size),
        weight_decay=decay_for(size) if method.weight_decay is None else method.weight_decay,
        offset_decay=offset_decay if method.offset_decay is None else method.offset_decay,
        batch=method.batch or batch,
        corun_weight=method.corun_weight,
        objective=method.objective,
    )


def steps_for(size: int, members: int = 1) -> int:
    """Training steps for so many runs: more data bears more of them before it is overfitted, and so do
    members of an average."""
    few, many = min(1.0, (size / 2_400) ** 0.7), max(1.0, (size / 30_000) ** 0.57)
    return round(np.clip(8 * few * many * (4 / 3 if members > 1 else 1), 3, 30)) * 100


def rate_for(size: int) -> float:
    """Learning rate for so many runs."""
    return float(np.clip(4e-3 * (size / 12_000) ** 0.35, 4e-3, 7e-3))


def decay_for(size: int) -> float:
    """Weight decay for so many runs."""
    return float(np.clip(0.25 * (60_000 / size) ** 0.8, 0.1, 3.0))


def train_member(
    data: TrainingData,
    shape: Shape,
    schedule: TrainingSchedule,
    quantiles: tuple[float, ...],
    seed: int,
    progress: Progress | None,
) -> dict[str, np.ndarray]:
    """Train the embeddings of one member, with its quantile heads."""
    from jostle.learn.learners.network.training import _train
    from jostle.learn.learners.network.training._heads import train_heads

    parameters = _train.train(data, shape, schedule, seed, progress)
    out = _train.embeddings_of(parameters.parameters, parameters.features, shape)
    if quantiles:
        out |= train_heads(
            parameters.parameters,
            data.solo,
            data.corun,
            parameters.features,
            shape,
            quantiles,
            seed,
        )
    return out


def combine(members: list[dict[str, np.ndarray]], baseline: Baseline, shape: Any) -> Embeddings:
    """Average the members' log runtimes, as one model."""
    count = len(members)
    paper = shape.form == "paper"
    types = shape.types

    def beside(name: str, axis: int = 1) -> np.ndarray:
        return np.concatenate([member[name] for member in members], axis=axis)

    def mean(name: str) -> np.ndarray:
        return np.mean([member[name] for member in members], axis=0)

    # In the paper's form a workload has one embedding for all types, so one slot a member holds it.
    slots = slice(None, None, types) if paper else slice(None)
    type_slot = np.arange(count * types) // types if paper else np.arange(count * types)
    heads = "head_main" in members[0]
    rank = shape.rank
    head_main = beside("head_main", 2) / count if heads else np.zeros((0, 0, 0), np.float32)
    head_target = np.zeros((0, 0, 0, 0), np.float32)
    if heads and paper:
        cut = (*head_main.shape[:2], count, rank)
        head_target = (head_main * count).reshape(cut)
    return Embeddings(
        workload_base=baseline.workload + mean("workload_bias"),
        platform_base=baseline.platform + mean("platform_bias"),
        workload_main=beside("workload_main") / count,
        platform_main=beside("platform_main"),
        platform_corun=beside("platform_corun"),
        platform_corun_base=mean("platform_corun_bias"),
        target=beside("target")[:, slots],
        corunner=beside("corunner")[:, slots],
        susceptibility=beside("susceptibility"),
        intensity=beside("intensity"),
        type_slot=type_slot,
        type_weight=np.full(count * types, 1.0 / count),
        head_main=head_main,
        head_base=baseline.workload + mean("head_bias") if heads else np.zeros((0, 0)),
        head_target=head_target,
        workload_component=baseline.workload_component,
        platform_component=baseline.platform_component,
    )
