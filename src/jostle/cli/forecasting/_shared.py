"""Several workloads together on one machine, as `jostle forecast` is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._options import Limits

if TYPE_CHECKING:
    from jostle.bridge import Exceedance, Forecast, Together
    from jostle.cli.forecasting._answers import Total


@dataclass(frozen=True, kw_only=True)
class SharedMachine:
    """What several workloads on one machine do to one another."""

    dependence: Annotated[
        str,
        "How busy times of workloads go together: independent, measured (runs that share a window), or a "
        "correlation from -1 to 1.",
    ] = "independent"
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
    model_platform: Annotated[
        str | None, "The platform that the model is asked about.  [default: its only one]"
    ] = None

    @property
    def is_asked(self) -> bool:
        """Whether it is more than a sum of independent forecasts at one time."""
        return bool(
            self.start
            or self.slowdown
            or self.model is not None
            or self.dependence != "independent"
        )

    def together(self, fitted: Sequence[tuple[str, Forecast]], core: int, seed: int) -> Together:
        """Raises UsageError for a number of starts or slowdowns that is not that of the workloads."""
        from jostle.bridge import Joining, Together
        from jostle.errors import UsageError

        for option, given in (("--start", self.start), ("--slowdown", self.slowdown)):
            if given and len(given) != len(fitted):
                raise UsageError(
                    f"{len(given)} times {option} for {len(fitted)} workloads",
                    fix="Say it once for each, in their order.",
                )
        if self.slowdown and self.model is not None:
            raise UsageError("--slowdown and --model both say how slow they are")
        starts = self.start or (0.0,) * len(fitted)
        slowdowns = self.slowdown or None
        return Together(
            [Joining(one, at, core) for (_, one), at in zip(fitted, starts, strict=True)],
            dependence=_dependence(self.dependence),
            slowdowns=slowdowns if self.model is None else self._asked([n for n, _ in fitted]),
            seed=seed,
        )

    def _asked(self, names: Sequence[str]) -> Callable[[Sequence[int]], Sequence[float]]:
        """What the model says of those that run: time beside the others over time alone."""
        import jostle
        from jostle.errors import UsageError

        assert self.model is not None
        model = jostle.load(self.model)
        platform = self.model_platform
        if platform is None:
            known = tuple(model.predictor.platform_names)
            if len(known) != 1:
                raise UsageError(
                    f"the model knows {len(known)} platforms", fix="Say --model-platform NAME."
                )
            platform = known[0]

        def slowdowns(going: Sequence[int]) -> Sequence[float]:
            here = [names[i] for i in going]
            beside = [here[:i] + here[i + 1 :] for i in range(len(here))]
            both = jostle.Colocations.from_columns(
                workload=here * 2,
                platform=[platform] * (2 * len(here)),
                corunners=[*beside, *([] for _ in here)],
            )
            seconds = model.predict(both)
            return (seconds[: len(here)] / seconds[len(here) :]).tolist()

        return slowdowns


def totals_of(
    together: Together, times: Sequence[float], capacities: Mapping[str, float]
) -> list[Total]:
    """(time, sum, how likely each capacity is exceeded, how likely any is), from draws."""
    from jostle.bridge import Exceedance

    found: list[Total] = []
    for time in times:
        total = together.at(time)
        over: dict[str, Exceedance] = {}
        for name, value in capacities.items():
            ratio = total.exceedance_ratio({name: value})
            over[name] = Exceedance(ratio, ratio, ratio)
        both = total.exceedance_ratio(capacities) if len(capacities) > 1 else None
        found.append((time, total, over, both))
    return found


def _dependence(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
