"""How fast the cores are now against how fast they have been: a watch for unseen neighbours.

A guest's core may share its hardware with another guest's. No load figure of the guest shows it,
yet a core that issues four instructions a cycle runs at half its speed meanwhile. Some milliseconds
of known work before and after a window show it. A window with no quiet moment at either end was
hardly quiet inside.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from jostle.measure.slots._slots import Slot

# Nanoseconds of the best probe of each core at one moment.
Probes = Mapping[int, int]

# How much slower than usual a core may be.
MOST_SLOWDOWN_RATIO = 1.25
_KEPT = 2048
_FEWEST = 8
# The usual speed of a core: what it reaches a tenth of the time. A minimum would drift to an
# outlier.
_USUAL_QUANTILE = 0.1
_CALIBRATION_ROUNDS = 25
_BETWEEN_PROBES_SECONDS = 0.02
_TIMEOUT_SECONDS = 5.0
_BETWEEN_LOOKS_SECONDS = 0.02


class CoreSpeed:
    """Probe times by core, kept for the length of a campaign."""

    def __init__(self) -> None:
        self._times: dict[int, deque[int]] = {}

    def probe(self, by_core: Mapping[int, Slot]) -> Probes:
        """Probe each core by a slot that is pinned to it, one after the other.

        A core whose slot has died is left out.
        """
        best = {}
        for core, slot in by_core.items():
            if not slot.is_running:
                continue
            probe_ns = slot.ask({"do": "probe"}, _TIMEOUT_SECONDS).get("probe_ns")
            if probe_ns:
                self.learn(core, probe_ns)
                best[core] = min(probe_ns)
        return best

    def learn(self, core: int, probe_ns: Sequence[int]) -> None:
        """Add to what is known of a core's speed."""
        self._times.setdefault(core, deque(maxlen=_KEPT)).extend(probe_ns)

    def slowdown(self, *moments: Probes) -> float | None:
        """How much slower than usual the slowest core was at the best of these moments, at least 1.

        None where there was no probe, or too few to know what is usual.
        """
        ratios = []
        for probes in moments:
            known = [core for core in probes if len(self._times.get(core, ())) >= _FEWEST]
            if known and len(known) == len(probes):
                ratios.append(max(probes[core] / self._usual_ns(core) for core in known))
        return max(1.0, min(ratios)) if ratios else None

    def calibrate(self, slot: Slot, cores: tuple[int, ...]) -> None:
        """Get a first idea of every core's speed, in about a second."""
        for _ in range(_CALIBRATION_ROUNDS):
            for core in cores:
                slot.pin([core])
                self.probe({core: slot})
            time.sleep(_BETWEEN_PROBES_SECONDS)

    def _usual_ns(self, core: int) -> float:
        return float(np.quantile(self._times[core], _USUAL_QUANTILE))


def wait_for_speed(
    speed: CoreSpeed, by_core: Mapping[int, Slot], patience_seconds: float
) -> Probes:
    """Probes of the cores, once they are tolerable or patience has ended."""
    patience = time.monotonic() + patience_seconds
    while True:
        probes = speed.probe(by_core)
        slowdown = speed.slowdown(probes)
        is_tolerable = slowdown is None or slowdown <= MOST_SLOWDOWN_RATIO
        if is_tolerable or time.monotonic() > patience:
            return probes
        time.sleep(_BETWEEN_LOOKS_SECONDS)
