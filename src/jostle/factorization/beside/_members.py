"""Runs as rules learn from them, and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from jostle.rules import (
    Ground,
    RaggedRows,
    SimpleRule,
    SlowdownRows,
    Strength,
    fit_bilinear,
    fit_effects,
    fit_encoded,
    fit_level,
    no_level,
)

REST = Strength(2, 0.15)
NONE = "none"
PLAIN = (NONE, "level", "effects")
NAMES = (*PLAIN, "effects and rest", "boosting")

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


def value_of(member: Member, rows: SlowdownRows, ground: Ground) -> np.ndarray:
    """(n,) what the member's parts add up to."""
    return sum((part.value(rows, ground) for part in member), np.zeros(len(rows)))


def fit_members(
    rows: SlowdownRows, ground: Ground, names: Sequence[str], seed: int
) -> dict[str, Member]:
    """The rules called so, learned from the rows; at least one row."""
    out: dict[str, Member] = {}
    wanted = set(names)
    if NONE in wanted:
        out[NONE] = (no_level(ground),)
    if "level" in wanted:
        out["level"] = (fit_level(rows, ground),)
    if wanted & {"effects", "effects and rest"}:
        effects, _ = fit_effects(rows, ground)
        out["effects"] = (effects,)
        if "effects and rest" in wanted:
            rest = rows.value - effects.value(rows, ground)
            out["effects and rest"] = (effects, fit_bilinear(rows, rest, ground, REST, seed))
    if "boosting" in wanted:
        out["boosting"] = (fit_encoded(rows, rows.value, rows.sets(), ground, seed),)
    return {name: out[name] for name in names if name in out}
