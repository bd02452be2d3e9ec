"""Runs as rules learn from them, and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jostle.rules import (
    NO_SLOWDOWN,
    Ground,
    RaggedRows,
    SimpleRule,
    SlowdownRows,
    Strength,
    fit_simple_rules,
)

RESTS = {"effects and rest": Strength(2, 0.15)}
PLAIN = (NO_SLOWDOWN, "level", "effects")
NAMES = (*PLAIN, *RESTS, "boosting")

Member = tuple[SimpleRule, ...]


class NetworkAnswers(Protocol):
    """What a trained network says of coded co-locations."""

    def log_alone(self, workload: np.ndarray, platform: np.ndarray) -> np.ndarray:
        """(n,) log seconds alone."""
        ...

    def log_slowdown(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) of rows with co-runners."""
        ...


@dataclass(frozen=True)
class CodedRuns(RaggedRows):
    """n runs: cells of targets (n,) (platform * workloads + workload), of co-runners (m,), row: (m,) whose
    they are, log_runtime: (n,)."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_runtime: np.ndarray

    def beside(self, solo: np.ndarray) -> SlowdownRows:
        """All rows, with the log slowdown over what they take alone (n,)."""
        n = len(self)
        return SlowdownRows(
            self.target, self.corunner, self.row, self.log_runtime - solo, np.ones(n)
        )


@dataclass(frozen=True, eq=False)
class LeftOutRuns:
    """held: (n,) bool, the runs that the network has not learned from."""

    held: np.ndarray
    network: Any


def fit_members(
    rows: SlowdownRows, ground: Ground, names: Sequence[str], seed: int
) -> dict[str, Member]:
    """The rules called so, learned from the rows; at least one row."""
    return fit_simple_rules(names, rows, ground, seed, RESTS)[0]
