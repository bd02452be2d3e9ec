"""What a run so far tells of what it will use, beside simple rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from studies._runner import Measures, TableStudy
from studies.bridge.data import COUNTERS
from studies.bridge.families import FAMILIES, INTERVAL_SECONDS, TIME, made_family

MOMENTS = (40, 75, 110)  # samples seen
QUANTILES = (0.5, 0.8, 0.95)
RULES = ("without", "mixture", "last", "turns")
WAYS = ("given", *RULES)


@dataclass(frozen=True)
class Given(TableStudy):
    """What a run so far tells of what it will use: Brier scores 0.1 s ahead, beside simple rules.

    Of each made family and seed some runs are recorded and others live. At three moments of each live run:
    the probability that each component is over its 50, 80 and 95% quantile a tenth of a second later.
    `given` is `forecast.given(trace so far).at(time)`; `without` is the same forecast at that time,
    `mixture` the mixture of all recorded runs there, `last` says that what is over its limit now stays so,
    and `turns` how often recorded runs were over it then, of those on the same side of it now. Shown are
    Brier scores, and each of `given` over that of the rule, with the least and the largest of one seed; then
    means over all.
    """

    families: Annotated[str, "By commas."] = ",".join(sorted(FAMILIES))
    runs: Annotated[int, "Live ones."] = 30
    recorded: Annotated[int, "Runs."] = 120
    ahead: Annotated[float, "Seconds."] = 0.1
    seeds: Annotated[int, "Of each family."] = 3
    seed: Annotated[int, "Of the first."] = 3

    name: ClassVar[str] = "given"
    places: ClassVar[Sequence[str]] = ("family",)
    has_total: ClassVar[bool] = True
    columns: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(WAYS, ".4f"),
        **{f"over {rule}": "{:.2f} ({:.2f} to {:.2f})" for rule in RULES},
    }

    def rows(self) -> list[tuple[Any, ...]]:
        return [(family,) for family in self.families.split(",")]

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        shown = dict(super().of_draws(draws))
        for rule in RULES:
            ratios = [one["given"] / max(one[rule], 1e-12) for one in draws]
            shown[f"over {rule}"] = (float(np.mean(ratios)), min(ratios), max(ratios))
        return shown

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        traces = made_family(row[0], self.recorded + self.runs, seed=seed)
        ids = traces.run_ids
        recorded = traces.select(ids[: self.recorded])
        forecast = jostle.forecast(recorded, jostle.Bridge(components=COUNTERS))
        mixture = jostle.forecast(recorded, jostle.Bridge(components=COUNTERS, method="mixture"))
        levels = np.stack([[t[c] / INTERVAL_SECONDS for c in COUNTERS] for t in recorded])
        known = np.isfinite(levels)
        limits = np.stack(
            [np.quantile(levels[:, c][known[:, c]], QUANTILES) for c in range(len(COUNTERS))]
        )
        steps = round(self.ahead / INTERVAL_SECONDS)
        errors: list[list[float]] = []
        for trace in traces.select(ids[self.recorded :]):
            for seen in MOMENTS:
                at = float(TIME[seen + steps - 1])
                so_far = replace(
                    trace,
                    time_seconds=trace.time_seconds[:seen],
                    interval_seconds=trace.interval_seconds[:seen],
                    counters={name: value[:seen] for name, value in trace.counters.items()},
                    runtime_seconds=float("nan"),
                )
                laws = [forecast.given(so_far).at(at), forecast.at(at), mixture.at(at)]
                for c, counter in enumerate(COUNTERS):
                    own = trace[counter] / INTERVAL_SECONDS
                    before = own[:seen][np.isfinite(own[:seen])]
                    if not np.isfinite(own[seen + steps - 1]) or not len(before):
                        continue
                    now, then = levels[:, c, seen - 1], levels[:, c, seen + steps - 1]
                    for limit in limits[c].tolist():
                        over = own[seen + steps - 1] > limit
                        claims = [law.exceedance_ratio({counter: limit}) for law in laws]
                        is_over = before[-1] > limit
                        alike = np.isfinite(now) & np.isfinite(then) & ((now > limit) == is_over)
                        claims += [
                            float(is_over),
                            float((1 + (then[alike] > limit).sum()) / (2 + alike.sum())),
                        ]
                        errors.append([(claim - over) ** 2 for claim in claims])
        return dict(zip(WAYS, np.mean(errors, axis=0).tolist(), strict=True))
