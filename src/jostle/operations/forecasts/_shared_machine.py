"""The report of a forecast of several workloads together: how it is asked and printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._base.option_fields import Limits
from jostle.errors import UsageError
from jostle.models import CampaignQuestion
from jostle.operations.forecasts._forecast_report import TotalUse

if TYPE_CHECKING:
    from jostle.usage import Distribution, Forecast


@dataclass(frozen=True, kw_only=True)
class SharedMachine(CampaignQuestion):
    """Slowdowns of several workloads on one machine."""

    dependence: Annotated[
        str | None,
        "How busy times of workloads go together: independent, or measured (runs that share a window).  "
        "[default: measured where they share enough windows]",
    ] = None
    start: Annotated[
        tuple[float, ...], "Of each workload in order: when it starts, on the clock of --at."
    ] = ()
    slowdown: Annotated[
        tuple[float, ...],
        "Of each workload in order: how many times slower it is beside the others.",
        Limits(1e-6),
    ] = ()
    model: Annotated[
        Path | None, "A model that says how much they slow each other down, at each time."
    ] = None

    @property
    def is_stated(self) -> bool:
        """True if anything is stated of how they share it."""
        return self.moves or self.dependence is not None

    @property
    def moves(self) -> bool:
        """True if they start at times of their own or slow each other down."""
        return bool(self.start or self.slowdown or self.model is not None)

    def totals(
        self,
        fitted: Sequence[tuple[str, Forecast]],
        times: Sequence[float],
        capacities: Mapping[str, float],
        core: int,
        seed: int,
        platform: str | None = None,
    ) -> tuple[list[TotalUse], str]:
        """Sum the use of all workloads at each time, by draws. Returns (the sums, in words how they go
        together). platform: the model's platform that is asked about, None for its only one.

        Raises UsageError for a number of starts or slowdowns that is not that of the workloads.
        """
        from jostle.usage import Joining, Together

        for name, values in (("start", self.start), ("slowdown", self.slowdown)):
            if values and len(values) != len(fitted):
                raise UsageError(
                    f"{len(values)} times `{name}` for {len(fitted)} workloads",
                    fix="Say it once for each, in their order.",
                )
        if self.slowdown and self.model is not None:
            raise UsageError("`slowdown` and `model` both say how slow they are")
        starts = self.start or (0.0,) * len(fitted)
        together = Together(
            [Joining(one, at, core) for (_, one), at in zip(fitted, starts, strict=True)],
            dependence=self.dependence,
            slowdowns=self.slowdown or self._by_model([name for name, _ in fitted], platform),
            seed=seed,
        )
        is_measured = together.dependence == "measured"
        text = "as they were measured side by side" if is_measured else "as independent ones"
        return totals_of([together.at(time) for time in times], times, capacities), text

    def _by_model(
        self, names: Sequence[str], platform: str | None
    ) -> Callable[[Sequence[int]], Sequence[float]] | None:
        """Make the function that gives, for those that run, time beside the others over time alone; None
        without a model."""
        if self.model is None:
            return None
        known = ModelledSlowdowns(self.model, platform, self)
        return lambda going: known.of([names[i] for i in going])[0]


class ModelledSlowdowns:
    """Slowdowns of workloads beside one another, predicted by a model. Raises UsageError for a platform that
    is not named where the model knows several."""

    def __init__(self, folder: Path, platform: str | None, about: CampaignQuestion) -> None:
        import jostle

        self._model = about.about(jostle.load(folder))
        if platform is None:
            known = tuple(self._model.predictor.platform_names)
            if len(known) != 1:
                raise UsageError(
                    f"the model knows {len(known)} platforms", fix="Name one by `platform`."
                )
            platform = known[0]
        self._platform = platform

    def of(self, names: Sequence[str]) -> tuple[list[float], float]:
        """Ask the model for (the slowdown of each, the standard deviation of their logs by its bounds; 0 if
        none is valid)."""
        import numpy as np

        import jostle

        count = len(names)
        beside = [[*names[:i], *names[i + 1 :]] for i in range(count)]
        both = jostle.Colocations.from_columns(
            workload=[*names, *names],
            platform=[str(self._platform)] * (2 * count),
            corunners=[*beside, *([] for _ in names)],
        )
        seconds = self._model.predict(both)
        ratios = (seconds[:count] / seconds[count:]).tolist()
        if getattr(self._model, "calibration", None) is None:
            return ratios, 0.0
        bounds = self._model.bound(both.take(np.arange(count)), 0.9).seconds
        spread = np.log(bounds / seconds[:count]) / 1.2816  # the normal law's 90% quantile
        spread = spread[np.isfinite(spread)]
        return ratios, float(max(spread.max(), 0.0)) if len(spread) else 0.0


def require_model(folder: Path | None, about: CampaignQuestion) -> None:
    """Raise UsageError for a campaign where no model is asked, which alone knows of campaigns."""
    if folder is None and about.campaign is not None:
        raise UsageError("a campaign is one of a model's runs", fix="Say `model` as well.")


def totals_of(
    laws: Sequence[Distribution], times: Sequence[float], capacities: Mapping[str, float]
) -> list[TotalUse]:
    """Compare laws, one for each time, with capacities."""
    return [_total(time, law, capacities) for time, law in zip(times, laws, strict=True)]


def _total(time: float, law: Distribution, capacities: Mapping[str, float]) -> TotalUse:
    over = {name: law.exceedance_ratio({name: value}) for name, value in capacities.items()}
    several = law.exceedance_ratio(capacities) if len(capacities) > 1 else None
    return TotalUse(time, law, over, several)
