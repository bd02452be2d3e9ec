"""Names that drifted by the new runs of an update: earlier runs count as they would be measured now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.models._drift_watch import Drift, DriftWatch
from jostle.models._residual_baseline import FLEET, LEVELS, device_of

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from jostle.learn import KeptRuns

ONE_IN = 20  # updates at most move a name of a kind that has not moved


@dataclass(frozen=True)
class NameMoved:
    """A name whose runs take longer or shorter than before. kind, name: as of a Drift. first: the first of
    the new runs that is off. log_ratio: by how much log runtimes have moved since."""

    kind: str
    name: str
    first: int
    log_ratio: float = 0.0

    @classmethod
    def all_of(cls, model: Any, runs: Runs) -> list[NameMoved]:
        """Find moved names as a watch of the model does, from runs in the order of measurement. Chosen runs
        do not count; what goes up and down stays, and what is only wider."""
        sample = np.flatnonzero(~runs.is_chosen)
        watch = DriftWatch(model, told=ONE_IN * max(len(runs), 1))
        drifts: dict[tuple[str, str], list[Drift]] = {}
        for one in watch.update(runs.take(sample)):
            drifts.setdefault((one.kind, one.name), []).append(one)
        told = [
            cls(*key, int(sample[mine[0].first]))
            for key, mine in drifts.items()
            if mine[-1].change != "period" and any(one.change == "mean" for one in mine)
        ]
        if not told:
            return []
        predictor, asked = model.predictor, runs.colocations
        known = asked.known_in(predictor.workload_names, predictor.platform_names)
        known &= runs.is_ok & ~runs.is_chosen
        error = np.full(len(runs), np.nan)
        error[known] = np.log(runs.runtime_seconds[known] / predictor.predict(asked.take(known)))
        moved = []
        for one in sorted(told, key=lambda one: LEVELS.index(one.kind)):
            since = one.has(asked) & (np.arange(len(runs)) >= one.first)
            moved.append(replace(one, log_ratio=float(np.nanmedian(error[since]))))
            error[since] -= moved[-1].log_ratio
        return moved

    def has(self, asked: Colocations) -> np.ndarray:
        """Tell which co-locations the moved name is in, as workload, platform or its device; the fleet is in
        all. Returns (n,) bool."""
        names, code = asked.platform_names, asked.platform
        if self.kind == FLEET:
            return np.ones(len(asked), bool)
        if self.kind == "workload":
            names, code = asked.workload_names, asked.workload
        elif self.kind == "device":
            names = tuple(device_of(name) for name in names)
        return np.array([name == self.name for name in names], bool)[code]


def as_measured_now(
    runs: KeptRuns, moved: list[NameMoved], place: np.ndarray | None = None
) -> KeptRuns:
    """Rescale runs from before a name moved. place: (n,) of new runs in their order: those since a name moved
    are as they are."""
    log_ratio = np.zeros(len(runs))
    for one in moved:
        before = True if place is None else place < one.first
        log_ratio += one.log_ratio * (one.has(runs.colocations) & before)
    return replace(runs, runtime_seconds=runs.runtime_seconds * np.exp(log_ratio))
