"""Rows to learn slowdowns from, and what every base learner may know of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

BY_CORUNNER = ("corunner", "row")  # fields of ragged rows with an entry for each co-runner
LEAST = -0.9  # of the extra time over the time alone, under which nothing is answered
USUAL_ERROR = 0.05  # of a time, by which rules are off anyway: what runs err by counts against this


def error_weight(error: np.ndarray) -> np.ndarray:
    """Weigh squared errors (n,) of runs whose times have (n,) relative standard errors: s^2 / (s^2 +
    error^2), s the usual error of rules."""
    return 1 / (1 + (error / USUAL_ERROR) ** 2)


@dataclass(frozen=True)
class RaggedRows:
    """n rows with any number of co-runners each. A subclass has arrays of what stands once in a row, its
    first field among them, and of the co-runners `corunner` (m,) and `row` (m,), whose they are."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    @property
    def degree(self) -> np.ndarray:
        """(n,) numbers of co-runners."""
        return np.bincount(vars(self)["row"], minlength=len(self))

    def take(self, keep: np.ndarray) -> Self:
        """Keep the rows where the mask (n,) is true."""
        parts = dict(vars(self))
        inside = keep[parts["row"]]
        arrays = {
            name: value[inside if name in BY_CORUNNER else keep]
            for name, value in parts.items()
            if isinstance(value, np.ndarray)
        }
        arrays["row"] = (np.cumsum(keep) - 1)[arrays["row"]]
        return type(self)(**parts | arrays)

    def drawn(self, most: int, seed: Sequence[int]) -> Self:
        """Draw at most `most` rows; they keep their order."""
        keep = np.zeros(len(self), bool)
        keep[np.random.default_rng(seed).permutation(len(self))[:most]] = True
        return self.take(keep)

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Concatenate rows, in order. parts: at least one."""
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
        arrays = {
            name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])
        }
        rows = [vars(part)["row"] + start for part, start in zip(parts, starts, strict=True)]
        return cls(**arrays | {"row": np.concatenate(rows)})


@dataclass(frozen=True)
class SlowdownRows(RaggedRows):
    """Rows with co-runners. target: (n,) cell (platform * workloads + workload) of the target;
    corunner: (m,) cells, row: (m,) which row they belong to; log_slowdown: (n,); scale: (n,) what one
    unit of the sum adds to the runtime in solo runtimes. timed: whether members learn extra time, in such
    units, and not the log slowdown. error: (n,) standard errors of the log slowdown, where known."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_slowdown: np.ndarray
    scale: np.ndarray
    timed: bool = False
    error: np.ndarray | None = None

    @classmethod
    def coded(
        cls,
        codes: tuple[np.ndarray, ...],
        counts: np.ndarray,
        workloads: int,
        log_slowdown: np.ndarray,
        scale: np.ndarray,
        timed: bool = False,
        error: np.ndarray | None = None,
    ) -> SlowdownRows:
        """Make rows. codes: (workloads (n,), platforms (n,), co-runners (m,)), as co-locations have them;
        counts: (n,) numbers of co-runners. workloads: how many there are in all."""
        workload, platform, corunner = (each.astype(np.int64) for each in codes)
        row = np.repeat(np.arange(len(workload)), counts)
        place = platform * workloads
        return cls(place + workload, place[row] + corunner, row, log_slowdown, scale, timed, error)

    @property
    def value(self) -> np.ndarray:
        """(n,) what members learn."""
        return np.expm1(self.log_slowdown) / self.scale if self.timed else self.log_slowdown

    @property
    def weight(self) -> np.ndarray:
        """(n,) how much a squared error of the value counts: as its relative error of the runtime."""
        weight = self.trust
        if self.timed:
            weight = weight * (self.scale * np.exp(-self.log_slowdown)) ** 2
        return weight / weight.mean() if len(self) else weight

    @property
    def trust(self) -> np.ndarray:
        """(n,) how much a run counts by what its time is known but for."""
        return np.ones(len(self)) if self.error is None else error_weight(self.error)

    def as_log(self, value: np.ndarray) -> np.ndarray:
        """Convert values to log slowdowns (n,)."""
        return np.log1p(np.maximum(self.scale * value, LEAST)) if self.timed else value

    def mean(self, each: np.ndarray) -> np.ndarray:
        """Average values of the co-runners (m,) over each row's, (n,)."""
        return np.bincount(self.row, each, len(self)) / np.maximum(self.degree, 1)

    def share_of_largest(self, each: np.ndarray) -> np.ndarray:
        """Mark the co-runner with the largest value in each row: 1 for it, 0 for the others, (m,). Ties share
        the 1 equally. each: (m,) one value per co-runner."""
        largest = np.full(len(self), -np.inf)
        np.maximum.at(largest, self.row, each)
        is_largest = each == largest[self.row]
        return is_largest / np.bincount(self.row, is_largest, len(self))[self.row]

    def over_seconds(self, limits: tuple[float, float] = (0.0, np.inf)) -> SlowdownRows:
        """Let members learn extra time, in units of the campaign. limits: of the scale."""
        return replace(self, timed=True, scale=np.clip(self.scale, *limits))

    def over_factors(self) -> SlowdownRows:
        """Let members learn the log slowdown."""
        return replace(self, timed=False, scale=np.ones(len(self)))


@dataclass(frozen=True)
class CellTable:
    """How many platforms and workloads there are, and what is known of cores. core_share: (cells,) cores that
    a workload wants while it runs alone, cores: (platforms,) how many there are, infinity where nobody waits
    for one, waited: (platforms,) how much of the turns on them is really waited for; None where no platform
    tells."""

    platforms: int
    workloads: int
    core_share: np.ndarray | None = None
    cores: np.ndarray | None = None
    waited: np.ndarray | None = None

    @property
    def cells(self) -> int:
        return self.platforms * self.workloads

    @property
    def takes_turns(self) -> bool:
        """Whether workloads may wait for cores on some platform."""
        return self.cores is not None


def looked_up(
    key: np.ndarray, value: np.ndarray, query: np.ndarray, default: float | np.ndarray = 0.0
) -> np.ndarray:
    """Look up values (k,) of ascending keys (k,) at the queries (n,); where there is none the default, one
    for all or (n,)."""
    if not len(key):
        return np.full(len(query), default)
    place = np.minimum(np.searchsorted(key, query), len(key) - 1)
    return np.where(key[place] == query, value[place], default)
