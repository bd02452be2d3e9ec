"""How large a model is, how long it is trained, and what it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from jostle.learn.learners.network._network_equation import LEAK
from jostle.learn.training._encoded_features import Features

Parameters = dict[str, Any]
STEPS_PER_CALL = 100  # of training, in one compiled program


@dataclass(frozen=True)
class Shape:
    """Sizes and switches that the compiled functions depend on."""

    form: str
    rank: int
    types: int
    type_rank: int
    hidden: int
    table_width: int
    grid: bool
    leak: float = LEAK

    @property
    def workload_outputs(self) -> tuple[int, ...]:
        """Widths of the tower's outputs: embedding, bias, and as target and as co-runner."""
        inner = () if self.form == "paper" else (self.types * self.type_rank,) * 2
        return (self.rank, 1, *inner)

    @property
    def platform_outputs(self) -> tuple[int, ...]:
        """The same: embedding, bias, susceptibility, intensity, and what co-runners add to the first two."""
        inner = self.types * (self.rank if self.form == "paper" else self.type_rank)
        return (self.rank, 1, inner, inner, self.rank, 1)


@dataclass(frozen=True)
class TrainingSchedule:
    """How long and how hard to train. last_layer_steps: beyond `steps`, see `train`."""

    steps: int
    learning_rate: float
    weight_decay: float
    offset_decay: float
    batch: int
    corun_weight: float
    objective: str = "relative"
    average: float = 0.99
    last_layer_steps: int = 0


def calls_of(steps: int) -> tuple[int, int]:
    """Return (calls of equal length, after each of which a checkpoint may be kept; steps of each)."""
    calls = -(-steps // STEPS_PER_CALL)
    return calls, -(-steps // calls)


def initial_parameters(
    seed: int, shape: Shape, workload: Features, platform: Features
) -> Parameters:
    """Drawn by NumPy: JAX would compile a program for every size of array."""
    random = np.random.default_rng(seed)

    def normal(*size: int) -> np.ndarray:
        return random.standard_normal(size, np.float32)

    def tower(features: Features, outputs: int) -> Parameters:
        width = features.numeric.shape[1] + shape.table_width * (1 + features.category.shape[1])
        sizes = [width, shape.hidden, shape.hidden]
        layers = [
            {
                "w": normal(a, b) * np.float32((2.0 / a) ** 0.5),
                "b": np.zeros(b, np.float32),
            }
            for a, b in pairwise(sizes)
        ]
        count = len(features.numeric)
        return {
            "layers": layers,
            "head": {
                "w": normal(shape.hidden, outputs) * np.float32((0.5 / shape.hidden) ** 0.5),
                "b": np.zeros(outputs, np.float32),
            },
            "own": normal(count, shape.table_width) * np.float32(0.3),
            "tables": [
                normal(size, shape.table_width) * np.float32(0.3)
                for size in features.category_sizes
            ],
            "offset": np.zeros((count, shape.rank), np.float32),
        }

    return {
        "workload": tower(workload, sum(shape.workload_outputs)),
        "platform": tower(platform, sum(shape.platform_outputs)),
    }
