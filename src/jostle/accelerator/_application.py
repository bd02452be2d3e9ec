"""What an application asks of the accelerator: its tasks in order, from a solo profile or by hand.

Source: Prophet (ASPLOS 2017), Sec. 4.3, 5. The time of one batch differs from Eq. 2: that takes all PEs
even where the last batch fills only some, so that the solo trace, replayed alone, would be shorter than
itself. Here Solo = t / sum_j max(1, need * pe_j / capacity) over the batches j that the task has alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jostle.accelerator._device import MEMORY, Device
from jostle.errors import BadData

if TYPE_CHECKING:
    from jostle.traces import Profile

KERNEL, TO_DEVICE, TO_HOST = 0, 1, 2
_KINDS = {"kernel": KERNEL, "htod": TO_DEVICE, "dtoh": TO_HOST}


@dataclass(frozen=True)
class Task:
    """One kernel or transfer. kind: kernel, htod or dtoh. seconds: alone. gap_seconds: between the end
    of the task before it and its submission.

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


class Prepared(NamedTuple):
    """The tasks of an application on a device, n of them, as arrays.

    kind: (n,) int8. gap, seconds: (n,) s. chunks: (n,) how many units of work a kernel has; a chunk is what
    one PE takes at a time where blocks are packed, one block where they spread. size: (n,) PEs that a
    chunk takes. work: (n,) s that a chunk takes unhindered. needs: (n, R) per PE. exclusive: (n,) bool.
    link: (n,) ratio.
    """

    kind: np.ndarray
    gap: np.ndarray
    seconds: np.ndarray
    chunks: np.ndarray
    size: np.ndarray
    work: np.ndarray
    needs: np.ndarray
    exclusive: np.ndarray
    link: np.ndarray


@dataclass(frozen=True, eq=False)
class Application:
    """Tasks in their order. notes: what was assumed where the profile could not say."""

    name: str
    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.tasks:
            raise BadData("an application without tasks", where=self.name)
        for number, task in enumerate(self.tasks):
            if reason := _wrong(task):
                raise BadData(f"task {number} {reason}", where=self.name)
        if not self.solo_seconds > 0:
            raise BadData("all tasks and gaps together take no time", where=self.name)

    @cached_property
    def resources(self) -> frozenset[str]:
        """What its kernels need, by name."""
        return frozenset(name for task in self.tasks for name in task.needs)

    @cached_property
    def solo_seconds(self) -> float:
        """From the first gap to the end of the last task, alone."""
        return float(sum(task.gap_seconds + task.seconds for task in self.tasks))

    @classmethod
    def from_profile(
        cls,
        profile: Profile,
        device: int | None = None,
        *,
        pinned: bool = False,
        memory_need: float | None = None,
        name: str | None = None,
    ) -> Application:
        """The tasks of one device of a profile, the first with tasks by default.

        What overlaps on several streams is flattened: a task counts for what it adds to the end of those
        before it, so that alone the replay takes as long as the profile. pinned: for transfers whose
        profile does not say. memory_need: bytes/s per PE, for kernels whose profile has none (no timeline
        has it): 0 by default, that is no contention for memory. Raises BadData.
        """
        tasks, notes = _flatten(profile, device, pinned, memory_need)
        return cls(name or profile.workload, tuple(tasks), tuple(notes))

    def prepare(self, device: Device, resources: Sequence[str]) -> Prepared:
        """Arrays for a device; needs in the order of `resources`. Kept for the next call."""
        capacity = tuple(device.resources.get(r, np.inf) for r in resources)
        key = (device.pes, device.warps_per_pe, device.placement, tuple(resources), capacity)
        if key not in self._prepared:
            self._prepared[key] = self._prepare(device, resources)
        return self._prepared[key]

    @cached_property
    def _prepared(self) -> dict[tuple, Prepared]:
        return {}

    def _prepare(self, device: Device, resources: Sequence[str]) -> Prepared:
        n = len(self.tasks)
        out = Prepared(
            kind=np.array([_KINDS[task.kind] for task in self.tasks], np.int8),
            gap=np.array([task.gap_seconds for task in self.tasks], np.float64),
            seconds=np.array([task.seconds for task in self.tasks], np.float64),
            chunks=np.zeros(n, np.int64),
            size=np.ones(n),
            work=np.zeros(n),
            needs=np.array(
                [[task.needs.get(r, 0.0) for r in resources] for task in self.tasks], np.float64
            ).reshape(n, len(resources)),
            exclusive=np.array([task.exclusive for task in self.tasks], np.bool_),
            link=np.array([task.link_ratio for task in self.tasks], np.float64),
        )
        capacity = np.array([device.resources.get(r, np.inf) for r in resources])
        shapes: dict[tuple, tuple[int, float, float]] = {}
        for i, task in enumerate(self.tasks):
            if out.kind[i] != KERNEL:
                continue
            key = (task.blocks, task.warps_per_block, task.occupancy_ratio, tuple(out.needs[i]))
            if key not in shapes:
                shapes[key] = _shape(task, device, out.needs[i], capacity)
            out.chunks[i], out.size[i], stretched = shapes[key]
            out.work[i] = task.seconds / stretched
        return out


def _wrong(task: Task) -> str | None:
    if task.kind not in _KINDS:
        return f"is of kind {task.kind!r}, not {', '.join(_KINDS)}"
    for name in ("seconds", "gap_seconds"):
        if not 0 <= getattr(task, name) < np.inf:
            return f"has {name} {getattr(task, name)}"
    if task.blocks is not None and task.blocks < 1:
        return f"has {task.blocks} blocks"
    if task.warps_per_block < 1 or not 0 < task.occupancy_ratio <= 1:
        return f"has {task.warps_per_block} warps per block at occupancy {task.occupancy_ratio}"
    if any(not 0 <= need < np.inf for need in task.needs.values()):
        return f"has needs {dict(task.needs)}"
    return None if 0 < task.link_ratio <= 1 else f"fills {task.link_ratio} of the link"


def _shape(
    task: Task, device: Device, needs: np.ndarray, capacity: np.ndarray
) -> tuple[int, float, float]:
    """(chunks, PEs that a chunk takes, sum of the stretches of the batches it has alone)."""
    if task.blocks is None:
        chunks, size = device.pes, 1.0
    else:
        warps = device.warps_per_pe * task.occupancy_ratio
        per_pe = max(1, int((warps + 1e-9) // task.warps_per_block))
        spread = device.placement == "spread"
        chunks = task.blocks if spread else -(-task.blocks // per_pe)
        size = 1 / per_pe if spread else 1.0
    at_once = int((device.pes + 1e-9) / size)
    full, rest = divmod(chunks, at_once)

    def stretch(resident: int) -> float:
        pes = min(device.pes, resident)
        return float(np.max(needs * pes / capacity, initial=1.0))

    return chunks, size, full * stretch(at_once) + (stretch(rest) if rest else 0.0)


def _flatten(
    profile: Profile, device: int | None, pinned: bool, memory_need: float | None
) -> tuple[list[Task], list[str]]:
    device = profile.devices[0] if device is None else device
    rows = profile.on(device).to_pylist()
    gpu = profile.gpus.get(device)
    tasks: list[Task] = []
    counts = {"hidden": 0, "pinning": 0, "need": 0, "shape": 0, "cut": 0}
    end = rows[0]["start_seconds"]
    for row in rows:
        start, stop = row["start_seconds"], row["start_seconds"] + row["duration_seconds"]
        seconds = stop - max(start, end)
        if seconds <= 0 and row["duration_seconds"] > 0:
            counts["hidden"] += 1
            continue
        counts["cut"] += start < end
        gap, end = max(0.0, start - end), max(end, stop)
        seconds = max(seconds, 0.0)
        if row["kind"] in ("htod", "dtoh"):
            counts["pinning"] += row["pinned"] is None
            exclusive = pinned if row["pinned"] is None else row["pinned"]
            tasks.append(Task(row["kind"], seconds, gap, exclusive=exclusive))
            continue
        need = row["bandwidth_per_pe"]
        counts["need"] += need is None
        need = memory_need if need is None else need
        occupancy = row["occupancy_ratio"]
        blocks, warps = row["blocks"], 1
        if blocks is None or not occupancy or gpu is None:
            counts["shape"] += 1
            blocks, occupancy = None, 1.0
        else:
            warps = gpu.warps_of(row["threads_per_block"])
        needs = {MEMORY: need} if need else {}
        tasks.append(Task("kernel", seconds, gap, blocks, warps, occupancy, needs))
    said = {
        "hidden": "tasks ran wholly beside others of the same application and are left out",
        "cut": "tasks overlap the one before and count for what they add to its end",
        "pinning": "transfers do not say whether memory was pinned: taken as "
        + ("pinned" if pinned else "not pinned"),
        "need": "kernels do not say what bandwidth they need: taken as "
        + (f"{memory_need:g} bytes/s per PE" if memory_need else "none")
        + " (say it with Profile.with_bandwidth, from a run too small to saturate memory)",
        "shape": "kernels, device copies and memsets have no launch shape: taken as the whole device",
    }
    return tasks, [f"{counts[key]} {text}" for key, text in said.items() if counts[key]]
