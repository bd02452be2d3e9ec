"""How fast the cores are now against how fast they have been: a watch for unseen neighbours.

A guest's core may share its hardware with another guest's. No load figure of the guest shows it,
yet a core that issues four instructions a cycle runs at half its speed meanwhile. A millisecond of
known work before and after a window does show it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping

import numpy as np

from ._slots import Slot, gather

_KEPT = 256
_FEWEST = 8
# The usual speed of a core: what it reaches a fifth of the time. A minimum would drift to a lucky
# outlier.
_USUAL_QUANTILE = 0.2
_CALIBRATION_ROUNDS = 24
_BETWEEN_PROBES_SECONDS = 0.01


class CoreSpeed:
    """Probe times by core, kept for the length of a campaign."""

    def __init__(self) -> None:
        self._probes: dict[int, deque[int]] = {}

    def slowdown(self, by_core: Mapping[int, Slot], timeout_seconds: float = 5.0) -> float | None:
        """Probe each core by a slot that is pinned to it, one after the other.

        The largest ratio of its time now to its usual time, at least 1; None while too little is
        known or where a slot has died.
        """
        worst = 1.0
        for core, slot in by_core.items():
            slot.send({"do": "probe"})
            answers = gather([slot], time.monotonic() + timeout_seconds, lambda: False)
            if not answers or "probe_ns" not in answers[0]:
                return None
            probes = self._probes.setdefault(core, deque(maxlen=_KEPT))
            probes.append(answers[0]["probe_ns"])
            if len(probes) < _FEWEST:
                return None
            worst = max(worst, probes[-1] / float(np.quantile(probes, _USUAL_QUANTILE)))
        return worst

    def calibrate(self, slot: Slot, cores: tuple[int, ...]) -> None:
        """Learn the usual speed of every core, in about half a second."""
        for _ in range(_CALIBRATION_ROUNDS):
            for core in cores:
                slot.pin([core])
                self.slowdown({core: slot})
            time.sleep(_BETWEEN_PROBES_SECONDS)
