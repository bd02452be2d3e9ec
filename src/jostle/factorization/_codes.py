"""Co-locations as codes in a model's vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.rules import SlowdownRows


@dataclass(frozen=True)
class Codes:
    """Codes in the model's vocabularies; row: (m,) the row of each co-runner."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray

    def __len__(self) -> int:
        return len(self.workload)

    @staticmethod
    def concatenate(parts: Sequence[Codes]) -> Codes:
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        row = np.concatenate([part.row + s for part, s in zip(parts, starts, strict=True)])

        def every(name: str) -> np.ndarray:
            return np.concatenate([getattr(part, name) for part in parts])

        return Codes(every("workload"), every("platform"), every("corunner"), row)

    def take(self, keep: np.ndarray) -> Codes:
        """The rows where the mask (n,) is true."""
        inside = keep[self.row]
        row = (np.cumsum(keep) - 1)[self.row[inside]]
        return Codes(self.workload[keep], self.platform[keep], self.corunner[inside], row)


def slowdown_rows(codes: Codes, workloads: int) -> SlowdownRows:
    """The rows as rules take them, with nothing measured."""
    there = codes.platform.astype(np.int64) * workloads
    n = len(codes)
    cells = there + codes.workload, there[codes.row] + codes.corunner
    return SlowdownRows(*cells, codes.row, np.zeros(n), np.ones(n))
