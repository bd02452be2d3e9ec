"""What measured runs and simulations say together, as a predictor of runtimes."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.learn.ensemble._folds import NEW_SET
from jostle.learn.ensemble._stacked_model import FittedEnsemble
from jostle.learn.learners.simulation._simulation_learners import FittedCoRuns


@dataclass(frozen=True, eq=False)
class FittedAccelerator(FittedEnsemble):
    """usual_way: how kernels and transfers share where no run says otherwise."""

    usual_way: tuple[str, str] = ("", "")

    def __post_init__(self) -> None:
        if len(self.usual_way) != 2:
            raise ValueError("usual_way holds one way for kernels and one for transfers")


def way_to_share(predictor: object, platform: str) -> tuple[str, str] | None:
    """Tell how kernels and transfers share the platform, as an ensemble has learned it: the way with most
    weight for sets of workloads that were not measured together. None where it simulates nothing."""
    usual = predictor.usual_way if isinstance(predictor, FittedAccelerator) else None
    simulated = getattr(predictor, "learners", {}).get("simulation")
    if not (isinstance(predictor, FittedEnsemble) and isinstance(simulated, FittedCoRuns)):
        return usual
    w = predictor.state
    code = int(w.platform_code[w.platform_names.index(platform)])
    weight = dict(zip(w.labels, w.weight[NEW_SET, -1].tolist(), strict=True))
    total: dict[tuple[str, str], float] = {}
    for label, member in simulated.members_of(code).items():
        way = member.recipe.way
        if way is not None:
            key = way.sharing, way.bus
            total[key] = total.get(key, 0.0) + weight[label]
    return max(total, key=lambda way: (total[way], way)) if total else usual
