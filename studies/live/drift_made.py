"""False alarms of a watch, and how soon it notices a step, on made campaigns of other kinds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from jostle.runs import Runs
from studies._runner import Measures, TableStudy
from studies.live.drift import devices_of, scaled

WORKLOADS, PLATFORMS = 30, 10
WATCHED, STREAM, START, STEP = 10_000, 3000, 1000, 1.2
LAWS = (
    "crossed",
    "crossed widths heavy",
    "widths of both one-sided",
    "far ones",
    "skewed crossed heavy",
)


@dataclass(frozen=True)
class DriftMade(TableStudy):
    """False alarms of a watch, and runs until a step of a device is noticed, on made campaigns of other
    kinds.

    30 workloads on 10 platforms, alone or beside one or two others: capacity that is shared above a
    threshold, with or without what workloads take on platforms, and errors that are Gaussian, heavy-tailed
    (Student t with 4 degrees of freedom), one-sided, of widths that names differ in, or with one in twenty
    far off. A model is fitted to so many runs; 10 000 more that did not change are watched, then 3 000 of
    which the last 2 000 of one device take 1.2 times as long, for each device in turn that has 60 such runs.
    """

    fitted: Annotated[str, "Runs that models are fitted to, by commas."] = "1000,4000"
    laws: Annotated[str, "By commas."] = ",".join(LAWS)
    seeds: Annotated[int, "Campaigns of each law."] = 3
    seed: Annotated[int, "Of the first."] = 10

    name: ClassVar[str] = "drift_made"
    places: ClassVar[Sequence[str]] = ("fitted to", "law")
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("false alarms", "in runs", "step found", "of", "after, median", "95%", "others told"),
        ".0f",
    )

    def rows(self) -> list[tuple[Any, ...]]:
        return [(int(n), law) for n in self.fitted.split(",") for law in self.laws.split(",")]

    def of_draws(self, draws: Sequence[Any]) -> Measures:
        delays = sorted(delay for one in draws for delay in one["delays"])
        at = {q: delays[int(q * (len(delays) - 1))] for q in (0.5, 0.95)}
        return {
            "false alarms": sum(one["false"] for one in draws),
            "in runs": WATCHED * len(draws),
            "step found": sum(math.isfinite(delay) for delay in delays),
            "of": len(delays),
            "after, median": at[0.5],
            "95%": at[0.95],
            "others told": sum(one["others"] for one in draws),
        }

    def draw(self, row: tuple[Any, ...], seed: int) -> Any:
        """delays: runs until the step of each device was noticed, infinite where it was not; others: further
        alarms in these streams."""
        fitted, law = row
        make = campaign(law, seed)
        model = jostle.fit(make(fitted), jostle.Factorization(), seed=seed)
        false = len(model.watch().update(make(WATCHED)))
        stream, delays, others = make(STREAM), [], 0
        device = devices_of(stream)
        for name in np.unique(device):
            off = (np.arange(STREAM) >= START) & (device == name)
            if off.sum() < 60:
                continue
            alarms = model.watch().update(scaled(stream, np.where(off, STEP, 1.0)))
            # A device with one platform is that platform.
            mine = [d for d in alarms if d.name.rpartition(":")[2] == name and d.found >= START]
            others += len(alarms) - len(mine)
            delays.append(float(off[: mine[0].found + 1].sum()) if mine else math.inf)
        return {"false": false, "delays": delays, "others": others}


def campaign(law: str, seed: int) -> Callable[[int], Any]:
    """Draws so many runs of one campaign."""
    r = np.random.default_rng([seed, 5])
    base, speed = r.normal(size=WORKLOADS), 0.4 * r.normal(size=PLATFORMS)
    need, has = r.uniform(0.05, 0.5, WORKLOADS), r.uniform(0.6, 1.4, PLATFORMS)
    crossed = 0.15 * r.normal(size=(WORKLOADS, PLATFORMS)) * ("crossed" in law)
    width = r.choice([0.02, 0.05, 0.12], WORKLOADS) if "widths" in law else np.full(WORKLOADS, 0.05)
    wider = r.choice([0.5, 1.0, 3.0], PLATFORMS) if "both" in law else np.ones(PLATFORMS)

    def draw(n: int) -> Any:
        w, p = r.integers(0, WORKLOADS, n), r.integers(0, PLATFORMS, n)
        if "skewed" in law:
            p = np.minimum(r.geometric(0.25, n) - 1, PLATFORMS - 1)
        beside = [r.integers(0, WORKLOADS, k).tolist() for k in r.integers(0, 3, n)]
        others = np.array([need[mine].sum() for mine in beside])
        slowdown = np.maximum((need[w] + others) / has[p], 1) + 0.1 * others
        error = r.normal(size=n)
        if "heavy" in law:
            error = r.standard_t(4, n)
        elif "one-sided" in law:
            error = r.exponential(1, n)
        elif "far" in law:
            error = np.where(r.random(n) < 0.05, r.normal(6, 2, n), error)
        log = base[w] + speed[p] + crossed[w, p] + np.log(slowdown) + width[w] * wider[p] * error
        return Runs.from_columns(
            workload=[f"w{k}" for k in w],
            platform=[f"made:d{k}" for k in p],
            corunners=[[f"w{k}" for k in mine] for mine in beside],
            runtime_seconds=np.exp(log),
        )

    return draw
