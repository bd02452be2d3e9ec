"""How fast the cores are now against how fast they have been: a watch for unseen neighbours.

A guest's core may share its hardware with another guest's. No load figure of the guest shows it,
yet a core that issues four instructions a cycle runs at half its speed meanwhile. Some milliseconds
of known work before and after a window show it. A window with no quiet moment at either end was
hardly quiet inside, so that its quiet beat (see `_estimate`) would not be one.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from ._slots import Slot, gather

_KEPT = 1024
_FEWEST = 8
# The usual speed of a core: what it reaches a tenth of the time. A minimum would drift to a lucky
# outlier.
_USUAL_QUANTILE = 0.1
_CALIBRATION_ROUNDS = 25
_BETWEEN_PROBES_SECONDS = 0.02


class CoreSpeed:
    """Probe times by core, kept for the length of a campaign."""

    def __init__(self) -> None:
        self._probes: dict[int, deque[int]] = {}

    def slowdown(self, by_core: Mapping[int, Slot], timeout_seconds: float = 5.0) -> float | None:
        """Probe each core by a slot that is pinned to it, one after the other.

        The largest ratio of its best time now to its usual time, at least 1; None while too little
        is known or where a slot has died.
        """
        worst = 1.0
        for core, slot in by_core.items():
            slot.send({"do": "probe"})
            answers = gather([slot], time.monotonic() + timeout_seconds, lambda: False)
            if not answers or "probe_ns" not in answers[0]:
                return None
            probes = self._probes.setdefault(core, deque(maxlen=_KEPT))
            probes.extend(answers[0]["probe_ns"])
            if len(probes) < _FEWEST:
                return None
            now = min(answers[0]["probe_ns"])
            worst = max(worst, now / float(np.quantile(probes, _USUAL_QUANTILE)))
        return worst

    def calibrate(
        self, slot: Slot, cores: tuple[int, ...], stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Learn the usual speed of every core, in about a second."""
        for _ in range(_CALIBRATION_ROUNDS):
            if stopped():
                return
            for core in cores:
                slot.pin([core])
                self.slowdown({core: slot})
            time.sleep(_BETWEEN_PROBES_SECONDS)
