"""The tasks of an application in columns: a row is one kernel or transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle.errors import BadData

KERNEL, TO_DEVICE, TO_HOST = 0, 1, 2
KINDS = ("kernel", "htod", "dtoh")  # by the codes above
UNKNOWN_SHAPE = -1  # blocks of a kernel whose launch shape is not known
NO_TASK = -1  # nothing to wait for in another lane
_KIND_OF_COLUMN = {  # of those that hold what Task has as it is
    **dict.fromkeys(("seconds", "gap_seconds", "occupancy_ratio", "link_ratio"), np.float64),
    "warps_per_block": np.int64,
    "exclusive": np.bool_,
    "lane": np.int64,
}


@dataclass(frozen=True)
class Task:
    """One kernel or transfer. kind: kernel, htod or dtoh. seconds: alone. gap_seconds: between the end
    of the task before it and its submission. lane: tasks of one lane run in order, those of several (streams,
    copy engines) beside each other. after: the number of a task of another lane that must have ended, too;
    the gap then counts from the later end.

    Kernels: blocks of warps_per_block warps; None where the launch shape is not known: it then takes the
    whole device. occupancy_ratio: theoretical. needs: {resource: per PE in use}; `memory` in bytes/s.
    Transfers: exclusive: from pinned memory (the paper's BE; pageable is BS). link_ratio: how much of
    the link it fills alone.
    """

    kind: str
    seconds: float
    gap_seconds: float = 0.0
    blocks: int | None = None
    warps_per_block: int = 1
    occupancy_ratio: float = 1.0
    needs: Mapping[str, float] = field(default_factory=dict)
    exclusive: bool = False
    link_ratio: float = 1.0
    lane: int = 0
    after: int | None = None


@dataclass(frozen=True, eq=False)
class TaskColumns:
    """Tasks in their order, n of them; Task says what the columns mean.

    kind: (n,) int8, a place in KINDS. blocks: (n,) int64, UNKNOWN_SHAPE where the launch shape is not known.
    needs: (n, R) per PE, in the order of `resources`. after: (n,) int64, NO_TASK where there is none.
    """

    kind: np.ndarray
    seconds: np.ndarray
    gap_seconds: np.ndarray
    blocks: np.ndarray
    warps_per_block: np.ndarray
    occupancy_ratio: np.ndarray
    needs: np.ndarray
    exclusive: np.ndarray
    link_ratio: np.ndarray
    lane: np.ndarray
    after: np.ndarray
    resources: tuple[str, ...] = ()

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> TaskColumns:
        """Raises BadData for a kind that is not one of KINDS."""
        for number, task in enumerate(tasks):
            if task.kind not in KINDS:
                raise BadData(f"task {number} is of kind {task.kind!r}, not {', '.join(KINDS)}")
        resources = tuple(sorted({name for task in tasks for name in task.needs}))
        columns = {
            name: np.array([getattr(task, name) for task in tasks], kind)
            for name, kind in _KIND_OF_COLUMN.items()
        }
        columns["kind"] = np.array([KINDS.index(task.kind) for task in tasks], np.int8)
        blocks = [UNKNOWN_SHAPE if t.blocks is None else max(0, t.blocks) for t in tasks]
        columns["blocks"] = np.array(blocks, np.int64)
        after = [NO_TASK if task.after is None else task.after for task in tasks]
        columns["after"] = np.array(after, np.int64)
        needs = [[task.needs.get(name, 0.0) for name in resources] for task in tasks]
        columns["needs"] = np.array(needs, np.float64).reshape(len(tasks), len(resources))
        return cls(**columns, resources=resources)

    def __len__(self) -> int:
        return len(self.kind)

    def task(self, row: int) -> Task:
        """Return one row as an object."""
        cells: dict[str, Any] = {name: column[row] for name, column in self.arrays().items()}
        needs = zip(self.resources, cells["needs"].tolist(), strict=True)
        cells = {name: cell.item() for name, cell in cells.items() if name != "needs"}
        cells["kind"] = KINDS[cells["kind"]]
        cells["blocks"] = None if cells["blocks"] == UNKNOWN_SHAPE else cells["blocks"]
        cells["after"] = None if cells["after"] == NO_TASK else cells["after"]
        return Task(**cells, needs={name: need for name, need in needs if need})

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the columns by name, without the names of the resources."""
        return {name: value for name, value in vars(self).items() if name != "resources"}

    @property
    def is_parallel(self) -> bool:
        """True if tasks are in several lanes."""
        return bool(len(self) and (self.lane != self.lane[0]).any())

    def rows_of_lanes(self) -> list[np.ndarray]:
        """Return the rows of each lane, in their order."""
        if not self.is_parallel:
            return [np.arange(len(self))]
        return [np.flatnonzero(self.lane == lane) for lane in np.unique(self.lane)]

    def ends_alone(self) -> np.ndarray:
        """Return (n,) s from the start to the end of each task, with nothing else on the device."""
        if not self.is_parallel:
            return np.cumsum(self.gap_seconds + self.seconds)
        ends: list[float] = []
        last: dict[int, float] = {}
        rows = zip(
            *(c.tolist() for c in (self.lane, self.after, self.gap_seconds, self.seconds)),
            strict=True,
        )
        for lane, after, gap, seconds in rows:
            begin = max(last.get(lane, 0.0), ends[after] if after >= 0 else 0.0)
            ends.append(begin + gap + seconds)
            last[lane] = ends[-1]
        return np.array(ends)

    def only(self, kinds: Sequence[int]) -> TaskColumns:
        """Return the tasks of some kinds, with the others as idle time."""
        chosen = np.isin(self.kind, kinds)
        if self.is_parallel:  # others wait for them, so they stay, as transfers of nothing
            idle = np.where(chosen, 0.0, self.seconds)
            return replace(
                self,
                kind=np.where(chosen, self.kind, np.int8(TO_DEVICE)),
                seconds=self.seconds - idle,
                gap_seconds=self.gap_seconds + idle,
                exclusive=self.exclusive & chosen,
            )
        count = int(chosen.sum())
        following = np.cumsum(chosen)[~chosen]  # the kept task that each other one comes before
        idle = (self.gap_seconds + self.seconds)[~chosen]
        idle = np.bincount(following, weights=idle, minlength=count + 1)
        columns = {name: column[chosen] for name, column in self.arrays().items()}
        columns["gap_seconds"] = columns["gap_seconds"] + idle[:count]
        columns["gap_seconds"][:1] += idle[count]  # of the next run
        return TaskColumns(**columns, resources=self.resources)

    def fault(self) -> str | None:
        """Return what is wrong with the first task that cannot be; None where all can."""

        def lasts(seconds: np.ndarray) -> np.ndarray:
            return (seconds >= 0) & (seconds < np.inf)

        def is_share(ratio: np.ndarray) -> np.ndarray:
            return (ratio > 0) & (ratio <= 1)

        checks: list[tuple[Any, str]] = [
            (lasts(self.seconds), "has seconds {0.seconds}"),
            (lasts(self.gap_seconds), "has gap_seconds {0.gap_seconds}"),
            ((self.blocks >= 1) | (self.blocks == UNKNOWN_SHAPE), "has {0.blocks} blocks"),
            (
                (self.warps_per_block >= 1) & is_share(self.occupancy_ratio),
                "has {0.warps_per_block} warps per block at occupancy {0.occupancy_ratio}",
            ),
            (lasts(self.needs).all(axis=1), "has needs {0.needs}"),
            (is_share(self.link_ratio), "fills {0.link_ratio} of the link"),
            (
                (self.after >= NO_TASK) & (self.after < np.arange(len(self))),
                "waits for task {0.after}, which does not come before it",
            ),
        ]
        possible = np.stack([passed for passed, _ in checks]).all(axis=0)
        if possible.all():
            return None
        row = int(np.argmin(possible))
        message = next(text for passed, text in checks if not passed[row])
        return f"task {row} " + message.format(self.task(row))
