"""Co-locations as codes in a model's vocabularies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.rules._slowdown_rows import RaggedRows, SlowdownRows


@dataclass(frozen=True)
class Codes(RaggedRows):
    """Codes in the model's vocabularies; row: (m,) the row of each co-runner."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray


def slowdown_rows(codes: Codes, workloads: int) -> SlowdownRows:
    """The rows as rules take them, with nothing measured."""
    there = codes.platform.astype(np.int64) * workloads
    n = len(codes)
    cells = there + codes.workload, there[codes.row] + codes.corunner
    return SlowdownRows(*cells, codes.row, np.zeros(n), np.ones(n))
