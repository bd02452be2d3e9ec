"""Whether a traced window was disturbed by what is no member of it; by the same rule as in `measure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.measure.slots._slots import Slot
from jostle.measure.window._estimate import Tolerance, contamination
from jostle.measure.window._speed import CoreSpeed, Probes, wait_for_speed

# Longer than before a window of a fraction of a second: a program's trace is longer too.
_PATIENCE_SECONDS = 1.0


@dataclass(frozen=True)
class Assessment:
    """Of one attempt at a window. members: their names. attempt: 0, 1, …. reason: why it was disturbed,
    None where it was not. slowdown_ratio: of the slowest core before or after, against what is usual;
    foreign_load_ratio: CPU time that the members waited for on cores of their own, over the time that
    they ran; None where not watched."""

    members: tuple[str, ...]
    attempt: int
    reason: str | None
    slowdown_ratio: float | None
    foreign_load_ratio: float | None


class Watch:
    """Knows how fast the cores usually are."""

    def __init__(self, slot: Slot, cores: tuple[int, ...], tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self._speed = CoreSpeed()
        self._speed.calibrate(slot, cores)

    def before(self, slots: Sequence[Slot], cores: Sequence[int]) -> Probes:
        """Probes of the cores that members are pinned to, when they are quiet or patience has ended."""
        by_core = dict(zip(cores, slots, strict=True))
        return wait_for_speed(self._speed, by_core, self.tolerance, _PATIENCE_SECONDS)

    def after(self, slots: Sequence[Slot], cores: Sequence[int]) -> Probes:
        return self._speed.probe(dict(zip(cores, slots, strict=True)))

    def assessed(
        self,
        members: tuple[str, ...],
        attempt: int,
        probes: tuple[Probes, Probes],
        *,
        ran_seconds: np.ndarray,
        cpu_seconds: np.ndarray | None,
        lateness_seconds: float,
    ) -> Assessment:
        """cpu_seconds: of each member while it ran, None where it cannot be known or cores are shared."""
        # A long run may begin and end in different bursts: both moments count, not the better one.
        found = [self._speed.slowdown(moment) for moment in probes]
        known = [ratio for ratio in found if ratio is not None]
        slowdown = max(known) if known else None
        foreign = None
        if cpu_seconds is not None:
            foreign = float(np.maximum(ran_seconds - cpu_seconds, 0.0).sum() / ran_seconds.sum())
        reason = contamination(
            slowdown_ratio=slowdown,
            foreign=self._of_waiting(foreign),
            lateness_seconds=lateness_seconds,
            warmup_seconds=float("inf"),
            fewest_repetitions=float("inf"),
            tolerance=self.tolerance,
        )
        return Assessment(members, attempt, reason, slowdown, foreign)

    def _of_waiting(self, foreign_ratio: float | None) -> str | None:
        allowed = self.tolerance.foreign_load_ratio
        if foreign_ratio is None or foreign_ratio <= allowed:
            return None
        return f"foreign load {foreign_ratio:.1%} of the cores, at most {allowed:.1%} allowed"
