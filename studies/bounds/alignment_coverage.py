"""How often run times of new sets of workloads stay under their bounds, on the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from jostle.alignment import solo_run_ids, traced_runs
from jostle.runs import split_rows
from studies._runner import Measures, TableStudy, error_of_mean
from studies.alignment.simulated import draw_programs, simulate_campaign

CONFIDENCES = (0.5, 0.8, 0.9, 0.95)
COUNTERS = ("instructions", "stall_cycles", "cache_accesses", "dram_read_bytes")


@dataclass(frozen=True)
class AlignmentCoverage(TableStudy):
    """How often run times of new sets of workloads stay under their bounds, on the simulator.

    For every seed programs are drawn anew, sets of two of them (and a program beside itself) run both ways,
    a share of the sets is kept for the test, and the rest is learned from and calibrated on, set by set. A
    set counts once, with the share of its run times that stay under their bounds. The standard error is over
    seeds, whose programs have nothing in common. `row by row` is what calibrating on single runs would give:
    too little, because the runs of a set are alike. Without a number there is no bound.
    """

    programs: Annotated[int, "Drawn for each seed."] = 12
    sets: Annotated[int, "At most."] = 150
    share: Annotated[float, "Of the sets that are tested."] = 0.3
    seconds: Annotated[float, "Length of a program."] = 0.04
    seeds: Annotated[int, "Draws of programs."] = 40

    name: ClassVar[str] = "alignment_coverage"
    places: ClassVar[Sequence[str]] = ("confidence",)
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("set by set", "standard error", "row by row", "its standard error", "margin"), ".1%"
    )

    def rows(self) -> list[tuple[Any, ...]]:
        return [(f"{confidence:.0%}",) for confidence in CONFIDENCES]

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        covered, margin = one_seed(seed, self)
        place = self.rows().index(row)
        results = {"set by set": covered["together"][place], "row by row": covered["row"][place]}
        return results | {"margin": margin[place]}

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        both = [error_of_mean([one[by] for one in draws]) for by in ("set by set", "row by row")]
        errors = dict(zip(("standard error", "its standard error"), both, strict=True))
        return {**super().of_draws(draws), **errors}


@cache
def one_seed(seed: int, options: AlignmentCoverage) -> tuple[dict[str, list[float]], list[float]]:
    """({calibrated by: share covered by confidence}, margins of the bounds set by set)."""
    programs = draw_programs(
        options.programs, seed, seconds=options.seconds, shortest_seconds=2e-3, longest_seconds=1e-2
    )
    random = np.random.default_rng(seed)
    pairs = [(a, b) for a in range(options.programs) for b in range(a, options.programs)]
    chosen = random.permutation(len(pairs))[: options.sets]
    sets = [pair for k in chosen for pair in {pairs[k], pairs[k][::-1]}]
    traces = simulate_campaign(programs, sets=sets)
    runs = traced_runs(traces, solo_run_ids(traces))
    kept, tested = split_rows(runs, (1 - options.share, options.share), seed, "together")
    test = runs.take(tested)
    unit = np.unique(test.units("together"), return_inverse=True)[1].reshape(-1)
    covered: dict[str, list[float]] = {}
    margin: list[float] = []
    data = jostle.Data(runs.take(kept), traces=traces)
    for by in ("together", "row"):
        method = jostle.Alignment(learner="phases", counters=COUNTERS)
        model = jostle.fit(data, method, seed=seed, calibrate_by=by)
        predicted = model.predict(test.colocations)
        covered[by] = []
        for confidence in CONFIDENCES:
            bound = model.bound(test.colocations, confidence).seconds
            under = (test.runtime_seconds <= bound).astype(float)
            by_set = np.bincount(unit, under) / np.bincount(unit)
            covered[by].append(float(by_set.mean()) if np.isfinite(bound).all() else float("nan"))
            if by == "together":
                margin.append(float(np.mean(bound / predicted - 1)))
    return covered, margin
