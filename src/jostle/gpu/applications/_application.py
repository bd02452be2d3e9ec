"""What an application asks of the accelerator: its tasks in order, from a solo profile or by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import BadData
from jostle.gpu._device import Device
from jostle.gpu.applications._application_tasks import Task, TaskColumns
from jostle.gpu.applications._chunks import device_tasks
from jostle.gpu.applications._flatten import flatten

if TYPE_CHECKING:
    from jostle.data import Profile


@dataclass(frozen=True, eq=False)
class Application:
    """Tasks in their order, in columns. notes: what was assumed where the profile could not say.
    first_seconds: when the device is first used, on the profile's clock. memory_bytes: of the device, that
    it takes; 0 where that is not known."""

    name: str
    columns: TaskColumns
    notes: tuple[str, ...] = ()
    first_seconds: float = 0.0
    memory_bytes: float = 0.0

    def __post_init__(self) -> None:
        if not len(self.columns):
            raise BadData("an application without tasks", where=self.name)
        if fault := self.columns.fault():
            raise BadData(fault, where=self.name)
        if not self.solo_seconds > 0:
            raise BadData("all tasks and gaps together take no time", where=self.name)

    @classmethod
    def of(cls, name: str, *tasks: Task, notes: tuple[str, ...] = ()) -> Application:
        """Return an application written down task by task. Raises BadData."""
        try:
            return cls(name, TaskColumns.of(tasks), notes)
        except BadData as error:
            raise BadData(error.what, where=name) from None

    @classmethod
    def from_profile(
        cls,
        profile: Profile,
        device: int | str | None = None,
        *,
        pinned: bool = False,
        memory_need: float | None = None,
        name: str | None = None,
    ) -> Application:
        """Return the tasks of one device of a profile, by its number or the name of its hardware; the first
        with tasks by default.

        What overlaps on several streams stays in lanes that wait for each other as they did: copies in
        either direction, and kernels, of each stream where they fit on the device together; what overlaps
        inside a lane counts for what it adds to the end of those before it. Alone the replay takes as long as
        the profile. pinned: for transfers whose
        profile does not say. memory_need: bytes/s per PE, for kernels whose profile has none (no timeline
        has it): 0 by default, that is no contention for memory. Raises BadData.
        """
        columns, notes, first = flatten(profile, device, pinned, memory_need)
        taken = profile.memory_bytes or 0.0
        return cls(name or profile.workload, columns, notes, first, taken)

    def __len__(self) -> int:
        """Return how many tasks."""
        return len(self.columns)

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks as objects, made when first asked for."""
        return tuple(self.columns.task(row) for row in range(len(self)))

    @cached_property
    def solo_seconds(self) -> float:
        """Seconds from the first gap to the end of the last task, alone."""
        if self.columns.is_parallel:
            return float(self.columns.ends_alone().max())
        return float(sum((self.columns.gap_seconds + self.columns.seconds).tolist()))

    @cached_property
    def digest(self) -> bytes:
        """A text that is equal for applications whose tasks, and first use of the device, are equal."""
        content = hashlib.blake2b(repr((self.columns.resources, self.first_seconds)).encode())
        for name, column in self.columns.arrays().items():
            content.update(f"{name}{column.dtype}{column.shape}".encode())
            content.update(column.tobytes())
        return content.digest()

    def with_idle(self, seconds: float) -> Application:
        """Return the same, leaving the device idle for so long before each run."""
        if not seconds > 0:
            return self
        first = np.array([rows[0] for rows in self.columns.rows_of_lanes()])
        gaps = self.columns.gap_seconds.copy()
        gaps[first[self.columns.after[first] < 0]] += seconds
        return replace(self, columns=replace(self.columns, gap_seconds=gaps))

    def on(
        self, device: Device, resources: Sequence[str], form: Callable[..., Any] | None = None
    ) -> Any:
        """Return the tasks on a device as DeviceTasks, needs in the order of `resources`; or what `form`
        makes of these and of the columns. Kept for the next call."""
        capacity = tuple(device.resources.get(r, np.inf) for r in resources)
        key = form, device.pes, device.warps_per_pe, device.placement, tuple(resources), capacity
        if key not in self._kept:
            tasks = device_tasks(self.columns, device, resources)
            self._kept[key] = tasks if form is None else form(tasks, self.columns)
        return self._kept[key]

    @cached_property
    def _kept(self) -> dict[tuple, Any]:
        return {}
