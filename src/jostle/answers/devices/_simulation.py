"""What is simulated of a service beside batch jobs, and bounds from measured co-runs beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from jostle.accelerator import (
        Application,
        Device,
        Fit,
        Objective,
        Service,
        SimulationOptions,
    )

# What a bound speaks about, by what was drawn to calibrate on.
_OVER = {
    "together": "sets of workloads never measured together",
    "window": "runs of windows not learned from",
    "row": "runs not learned from",
}


@dataclass(frozen=True)
class Simulation:
    """queries, arrivals, rate, seed: of every service. batch_pes: as for service_latency. instances: whether
    so many are safe; None: how many, up to `most`."""

    applications: Mapping[str, Application]
    device: Device
    options: SimulationOptions
    objective: Objective
    queries: int | None
    arrivals: np.ndarray | None
    batch_pes: int | None
    instances: int | None
    most: int
    rate: float | None = None
    seed: int = 0

    @property
    def look_to(self) -> int:
        return self.most if self.instances is None else self.instances

    @property
    def wanted(self) -> int:
        return 1 if self.instances is None else self.instances

    def service(self, name: str) -> Service:
        from jostle.accelerator import Service

        mine = self.applications[name]
        if self.rate is None:
            return Service(mine, self.objective, self.queries, self.arrivals)
        others = [one for one in self.applications.values() if one is not mine]
        heaviest = max(others, key=lambda one: len(one) / one.solo_seconds, default=mine)
        beside = [heaviest] * self.look_to
        drawn = {"queries": self.queries, "seed": self.seed}
        return Service.at_rate(mine, self.objective, self.rate, beside, **drawn)

    def notes(self, names: Sequence[str]) -> list[str]:
        """What is to be known of the profiles of these workloads."""
        notes = {f"{name}: {note}" for name in names for note in self.applications[name].notes}
        return sorted(notes)


class MeasuredBounds:
    """Bounds from measured co-runs, at one confidence. Raises UsageError without a platform."""

    def __init__(self, model: Path, platform: str | None, confidence: float) -> None:
        import jostle
        from jostle.errors import UsageError

        self.model, self.confidence = jostle.load(model), confidence
        places = getattr(self.model.predictor, "platform_names", None)
        if platform is None and places is not None and len(places) == 1:
            platform = places[0]
        if platform is None:
            raise UsageError("say `platform`: that of the measured co-runs")
        self.platform = platform
        self.over = _OVER.get(
            str(self.model.metadata.get("calibrated_by")), "runs not learned from"
        )

    def limit_seconds(self, service: str, objective: Objective) -> float:
        """What a bound must keep: a slowdown is counted from the time alone as it was measured, not from the
        length of the trace, because the runs that bounds come from were measured so."""
        import jostle

        alone = jostle.Colocations.from_columns(
            workload=[service], platform=[self.platform], corunners=[[]]
        )
        return objective.limit(float(self.model.predict(alone)[0]))[0]

    def of(self, fit: Fit, objective: Objective) -> tuple[list[dict[str, Any]], int]:
        """([{instances, bound_seconds, outcome, limit_seconds}], the most instances whose bound keeps the
        limit)."""
        import jostle

        limit = self.limit_seconds(fit.service, objective)

        counts = [mix.instances for mix in fit.mixes]
        colocations = jostle.Colocations.from_columns(
            workload=[fit.service] * len(counts),
            platform=[self.platform] * len(counts),
            corunners=[[fit.batch] * n for n in counts],
        )
        bounds = self.model.bound(colocations, self.confidence)
        rows, guaranteed, going = [], 0, True
        for n, seconds, outcome in zip(counts, bounds.seconds, bounds.outcome, strict=True):
            valid = bool(seconds < float("inf"))
            known = float(seconds) if valid else None
            row = {"instances": n, "bound_seconds": known, "outcome": str(outcome)}
            rows.append({**row, "limit_seconds": limit})
            if n > 0:
                going = going and valid and float(seconds) <= limit
                guaranteed = n if going else guaranteed
        return rows, guaranteed
