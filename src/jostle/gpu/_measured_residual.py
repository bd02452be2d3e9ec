"""What measured co-runs say that a simulation does not: how long a run takes there, and at most.

A simulation counts seconds of traces. A measured run may take longer alone (a process starts, a host works),
and leaves the device idle for so long; and beside others by more or less than is then simulated. `stretch` is
what was learned over what is simulated in the way to share that was learned, so that a simulation times it
has the learned rest in it; queries at a rate are simulated at as many times the rate, so that the load stays
what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle.conformal import Bounds
from jostle.data import Colocations
from jostle.errors import UsageError, require_known
from jostle.gpu._device import Device
from jostle.gpu.applications._application import Application
from jostle.gpu.simulator._latencies import latencies_together, queries_beside, spread_out
from jostle.gpu.simulator._tenants import USUAL_SHARING, Tenant

SIMULATED = "simulated"  # the outcome of what only a simulation speaks of
# The confidence that holds a statistic; none holds the longest of all.
_LEAST = {
    "mean": Fraction(0),
    "p95": Fraction(95, 100),
    "p99": Fraction(99, 100),
    "max": Fraction(1),
}


@dataclass(frozen=True, eq=False)
class LearnedRest:
    """Correction of the simulation, learned from measured co-runs.

    predict, bound: seconds of co-locations as learned, and at most at the confidence. platform: of the runs.
    device: whole, with the bus as learned. sharing: of kernels, as learned. usual: what was learned, where
    predict says at most.
    """

    predict: Callable[[Colocations], np.ndarray]
    bound: Callable[[Colocations], Bounds]
    confidence: float
    platform: str
    device: Device
    sharing: str
    usual: LearnedRest | None = None
    known: dict[Any, float] = field(default_factory=dict, repr=False)
    applications: dict[Any, Application] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        model: Any,
        device: Device,
        confidence: float,
        platform: str | None = None,
        *,
        way_to_share: Callable[[Any, str], tuple[str, str] | None],
    ) -> LearnedRest:
        """Take a fitted model at its word.

        platform: that of the runs, by default its only one.
        way_to_share: of a predictor and a platform, how kernels and transfers share, as learned; None for the
        usual way.
        Raises UsageError, UnknownName.
        """
        places = tuple(model.predictor.platform_names)
        if platform is None and len(places) != 1:
            raise UsageError(
                f"the model of measured co-runs has {len(places)} platforms",
                fix="Say `platform`: that of the runs on this device.",
            )
        require_known("platform", platform, places)
        place = platform or places[0]
        sharing, bus = way_to_share(model.predictor, place) or (USUAL_SHARING, device.bus)
        whole = replace(device, partitions=(), bus=bus)

        def bound(asked: Colocations) -> Bounds:
            return model.bound(asked, confidence)

        return cls(model.predict, bound, confidence, place, whole, sharing)

    def seconds(self, target: str, beside: Sequence[str] = ()) -> float:
        """Predict a run of the target, as learned, once."""
        key = target, *sorted(beside)
        if key not in self.known:
            self.known[key] = float(self.predict(self._asked([target], [sorted(beside)]))[0])
        return self.known[key]

    @cached_property
    def at_most(self) -> LearnedRest:
        """The same residual as if each run took as long as its bound; infinitely long without one."""
        return replace(self, predict=lambda asked: self.bound(asked).seconds, usual=self, known={})

    def as_measured(self, application: Application) -> Application:
        """Add idle time before the application, by which a measured run takes longer alone than its trace."""
        key = application.name, application.digest
        if key not in self.applications:
            longer = (self.usual or self).seconds(application.name) - application.solo_seconds
            self.applications[key] = application.with_idle(longer)
        return self.applications[key]

    def stretch(self, target: Application, beside: Sequence[Application] = ()) -> float:
        """Measured seconds for one of the simulation, of the target with these beside it."""
        ordered = sorted(beside, key=lambda one: one.name)
        key = tuple((one.name, one.digest) for one in (target, *ordered))
        if key not in self.known:
            simulated = self._simulated(target, ordered)
            if not np.isfinite(simulated):  # starved in the simulation: as far as it is known alone
                return self.stretch(target)
            names = [one.name for one in ordered]
            self.known[key] = self.seconds(target.name, names) / simulated
        return self.known[key]

    def _simulated(self, target: Application, beside: Sequence[Application]) -> float:
        target, beside = self.as_measured(target), [self.as_measured(one) for one in beside]
        tenants = [Tenant(target, queries_beside(target, beside))]
        for number, one in enumerate(beside):
            start = one.solo_seconds * spread_out(number)
            tenants.append(Tenant(one, None, start_seconds=start))
        return float(np.mean(latencies_together(tenants, self.device, self.sharing)[0]))

    def is_like_runs(self, device: Device, mode: str) -> bool:
        """Tell whether runs were measured on such a device, whole and shared so."""
        same = replace(device, memory_bytes=self.device.memory_bytes)
        return mode == self.sharing and same == self.device

    def bounds(
        self, members: Sequence[tuple[str, Sequence[str], str]], *, is_like_runs: bool
    ) -> list[tuple[float, str]]:
        """Return (s, outcome) of each (workload, co-runners, statistic); infinite and SIMULATED where no
        measured run was like it: is_like_runs says whether the load, the device and the way to share
        were."""
        sure, answers = exact_confidence(self.confidence), [(np.inf, SIMULATED)] * len(members)
        rows = [n for n, (*_, what) in enumerate(members) if is_like_runs and sure >= _LEAST[what]]
        if rows:
            asked = [(members[n][0], tuple(sorted(members[n][1]))) for n in rows]
            kinds = list(dict.fromkeys(asked))
            bounds = self.bound(self._asked(*map(list, zip(*kinds, strict=True))))
            known = dict(zip(kinds, zip(bounds.seconds, bounds.outcome, strict=True), strict=True))
            for n, kind in zip(rows, asked, strict=True):
                answers[n] = float(known[kind][0]), str(known[kind][1])
        return answers

    def _asked(self, targets: Sequence[str], beside: Sequence[Sequence[str]]) -> Colocations:
        return Colocations.from_columns(
            workload=list(targets),
            platform=[self.platform] * len(targets),
            corunners=[list(others) for others in beside],
        )
