"""The slots of a campaign on this machine, and what is known of its cores: measures one window."""

from __future__ import annotations

from collections.abc import Callable

from jostle.collect.campaign._campaign import Campaign, PlannedWindow
from jostle.collect.campaign._campaign_summary import MeasureOptions
from jostle.collect.slots._slots import Slot
from jostle.collect.window._assess import Window, WindowResult
from jostle.collect.window._core_placement import phases
from jostle.collect.window._job_window import JobWindow, has_jobs
from jostle.collect.window._window import run_window
from jostle.collect.workloads._trial import with_own_copies
from jostle.collect.workloads._workloads import Workload


class SlotPool:
    """A pool of child processes, one for each member of a window. As a context, it lets its processes go at
    the end. most: members of the largest window."""

    def __init__(
        self,
        campaign: Campaign,
        most: int,
        options: MeasureOptions,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.campaign, self.options, self.stopped = campaign, options, stopped
        self._slots = [Slot() for _ in range(most)]
        self._members: dict[str, Workload] = {}
        try:
            for slot in self._slots:
                slot.pin(campaign.core_numbers)
        except BaseException:
            self.close()
            raise

    def measure(self, planned: PlannedWindow, window_seconds: float) -> WindowResult:
        """Measure the window now. Raises Stopped, NotPermitted."""
        engine, cores = planned.engine, self.campaign.core_numbers
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
        slots = self._slots[: len(planned.members)]
        if has_jobs(planned.members):
            return JobWindow(window, slots, self.stopped, self.options.job_timeout_seconds).run()
        return run_window(window, slots, stopped=self.stopped)

    def close(self) -> None:
        """End all processes."""
        for slot in self._slots:
            slot.kill()

    def __enter__(self) -> SlotPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
