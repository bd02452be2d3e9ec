"""The slots of a campaign on this machine, and what is known of its cores: measures one window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jostle.kernels import engine_setting
from jostle.measure.campaign._campaign import Campaign, PlannedWindow
from jostle.measure.campaign._summary import MeasureOptions
from jostle.measure.host._variants import EngineVariant, variant_of
from jostle.measure.slots._slots import Slot
from jostle.measure.window._assess import Observed, Window, WindowResult
from jostle.measure.window._jobs import JobWindow, has_jobs
from jostle.measure.window._placement import phases
from jostle.measure.window._window import run_window
from jostle.measure.workloads._trial import with_own_copies
from jostle.measure.workloads._workloads import Workload

_PLAIN: tuple[str, EngineVariant] = ("python", EngineVariant())


class SlotPool:
    """As a context, it lets its processes go at the end. most: members of the largest window."""

    def __init__(
        self,
        campaign: Campaign,
        most: int,
        options: MeasureOptions,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.campaign, self.options, self.stopped = campaign, options, stopped
        # By host and variant; those that are not plain are made when a window needs them.
        self._slots = {_PLAIN: [Slot() for _ in range(most)]}
        self._members: dict[str, Workload] = {}
        try:
            for slot in self._slots[_PLAIN]:
                slot.pin(campaign.core_numbers)
        except BaseException:
            self.close()
            raise

    def measure(
        self,
        planned: PlannedWindow,
        window_seconds: float,
        look: Callable[[Observed], None] | None = None,
    ) -> WindowResult:
        """The window, measured now. look: is shown what was seen of kernels. Raises Stopped, NotPermitted."""
        engine, cores = planned.engine, self.campaign.cores_of(planned.engine)
        # What it shall be called and what is run may differ: one that uses up its files gets copies.
        for one in planned.members:
            if one.name not in self._members:
                self._members[one.name] = with_own_copies(one)
        window = Window(
            tuple(self._members[one.name] for one in planned.members),
            engine,
            phases(len(planned.members), cores, planned.key),
            cores,
            window_seconds,
            self.options.repetition_timeout_seconds,
            self.options.most_disturbed_ratio,
        )
        key = (engine_setting(engine).host, replace(variant_of(engine), cpus=None))
        slots = self._slots.setdefault(key, [])
        while len(slots) < len(planned.members):
            slots.append(Slot(*key))
        if has_jobs(planned.members):
            limit = self.options.job_timeout_seconds
            own = slots[: len(planned.members)]
            return JobWindow(window, own, self.stopped, limit).run()
        return run_window(window, slots, stopped=self.stopped, look=look)

    def close(self) -> None:
        """End all processes."""
        for slots in self._slots.values():
            for slot in slots:
                slot.kill()

    def __enter__(self) -> SlotPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
