"""Slowdown beside every simple rule, on made campaigns whose laws are known: the tables of docs/bag.md."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from jostle.evaluate import evaluate_pairs, pair_methods
from jostle.runs import read_runs
from studies._runner import Measures, TableStudy, numbers, over_best
from studies.slowdown.laws import LAWS, MadeCampaign

RULES = ("solo", "solo_constant", "additive", "additive_low_rank", "boosting")
EVERY = (*RULES, "slowdown", "bag")


@dataclass(frozen=True)
class OnLaws(TableStudy):
    """Slowdown, or another method, beside every simple rule, on made campaigns whose laws are known.

    Each law is a campaign of 24 workloads alone and in all pairs on three platforms; a share of the sets is
    observed, the rest is the test. Errors are in percent; over: that of the method over that of the best
    rule, chosen on the test. Takes about 20 minutes of one core.
    """

    laws: Annotated[str, "Only these, separated by commas; empty for none."] = ",".join(LAWS)
    shares: Annotated[str, "Of the sets, observed."] = "0.1,0.2,0.5"
    noise: Annotated[float, "Standard deviation of log runtimes."] = 0.02
    data: Annotated[str, "Folders of runs, separated by commas."] = ""
    method: Annotated[str, "slowdown or bag."] = "slowdown"
    seeds: Annotated[int, "Draws of the sets observed."] = 4

    name: ClassVar[str] = "on_laws"
    places: ClassVar[Sequence[str]] = ("campaign", "observed")
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(EVERY, ".2f") | {
        "CPU s": ".1f",
        "over best rule": ".3f",
    }

    def rows(self) -> list[tuple[Any, ...]]:
        names = [name for name in (*self.data.split(","), *self.laws.split(",")) if name]
        return [(name, share) for name in names for share in numbers(self.shares)]

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        campaign, share = row
        made = MadeCampaign(campaign, noise=self.noise).runs(seed=0) if campaign in LAWS else None
        runs = read_runs(campaign) if made is None else made
        found: dict[str, float] = {}
        for name, method in pair_methods("slowdown", [*RULES, self.method]).items():
            began = time.process_time()
            m = evaluate_pairs(runs, share, {name: method}, seeds=[seed], bounds=False).metrics
            found[name] = 100 * m[f"slowdown_mape_{name}_ratio"]
            found["CPU s"] = time.process_time() - began
        return found

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        means = dict(super().of_draws(draws))
        return means | {"over best rule": means[self.method] / min(means[r] for r in RULES)}

    def closing(self, measured: Sequence[Measures]) -> dict[str, float]:
        return over_best([m["over best rule"] for m in measured])
