"""Co-locations as codes in a model's vocabularies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.training._slowdown_rows import RaggedRows


@dataclass(frozen=True)
class Codes(RaggedRows):
    """Codes in the model's vocabularies; row: (m,) the row of each co-runner."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
