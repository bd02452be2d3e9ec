"""The slots of a campaign on this machine, and what is known of its cores: measures one window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from jostle.measure.campaign._campaign import Campaign, PlannedWindow
from jostle.measure.host._engines import engine_setting
from jostle.measure.host._variants import EngineVariant, variant_of
from jostle.measure.slots._slots import Slot
from jostle.measure.window._assess import Window
from jostle.measure.window._estimate import Tolerance
from jostle.measure.window._placement import phases
from jostle.measure.window._results import WindowResult
from jostle.measure.window._speed import CoreSpeed
from jostle.measure.window._window import run_window


class SlotPool:
    """As a context, it lets its processes go at the end. most: members of the largest window."""

    def __init__(
        self,
        campaign: Campaign,
        most: int,
        *,
        timeout_seconds: float,
        tolerance: Tolerance,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.campaign, self.stopped = campaign, stopped
        self.timeout_seconds, self.tolerance = timeout_seconds, tolerance
        self._slots = [Slot() for _ in range(most)]
        # Those of other hosts and variants, made when a window needs them.
        self._more_slots: dict[tuple[str, EngineVariant], list[Slot]] = {}
        self.speed: CoreSpeed | None = None
        try:
            for slot in self._slots:
                slot.pin(campaign.core_numbers)
            if tolerance.slowdown_ratio != float("inf"):
                self.speed = CoreSpeed()
                self.speed.calibrate(self._slots[0], campaign.core_numbers, stopped)
        except BaseException:
            self.close()
            raise

    def measure(self, planned: PlannedWindow, window_seconds: float) -> WindowResult:
        """The window, measured now. Raises Stopped, NotPermitted."""
        cores, slots = self.campaign.cores_of(planned.engine), self._slots_for(planned)
        window = Window(
            planned.members,
            planned.engine,
            phases(len(planned.members), cores, planned.key),
            cores,
            window_seconds,
            self.timeout_seconds,
            self.tolerance,
        )
        probers = None if slots is self._slots else self._slots
        return run_window(window, slots, speed=self.speed, stopped=self.stopped, probers=probers)

    def close(self) -> None:
        """End all processes."""
        for slot in [*self._slots, *(slot for more in self._more_slots.values() for slot in more)]:
            slot.kill()

    def __enter__(self) -> SlotPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _slots_for(self, planned: PlannedWindow) -> list[Slot]:
        """As many as members at least, of the host and variant that the engine needs."""
        key = (
            engine_setting(planned.engine).host,
            replace(variant_of(planned.engine), cpus=None),
        )
        if key == ("python", EngineVariant()):
            return self._slots
        slots = self._more_slots.setdefault(key, [])
        while len(slots) < len(planned.members):
            slots.append(Slot(*key))
        return slots
