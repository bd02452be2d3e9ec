"""How often pairs of programs that never ran beside a program stay under their bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated, Any, ClassVar

import numpy as np

import jostle
from jostle.alignment import probe_runs, solo_run_ids, traced_runs
from jostle.runs import Runs
from studies._runner import Measures, TableStudy, error_of_mean
from studies.alignment.laws import LAWS, stressors
from studies.alignment.simulated import draw_programs, simulate_campaign

CONFIDENCE = 0.9
OUTCOMES = ("guaranteed", "held_out_names", "model_based")  # further ones are among the metrics


@dataclass(frozen=True)
class UnseenCoverage(TableStudy):
    """How often pairs of programs that never ran beside a program stay under their bounds, on made laws.

    For every seed programs are drawn anew; all are traced alone and beside three stressors, all pairs of
    those known are learned from and calibrated on by `jostle.fit(..., new_names=True)`, and bounds of pairs
    of which both programs are unseen are held against the truth. A seed counts once, with the share of its
    run times under their bounds; the standard error is over seeds, whose programs have nothing in common.
    Outcomes are counted: none may be `guaranteed` here, where programs asked about are not drawn like those
    calibrated on.
    """

    on: Annotated[str, "Laws: simulator, lru, queue, smt."] = "lru,smt"
    method: Annotated[str, "probes, alignment."] = "probes,alignment"
    learner: Annotated[str, "Of alignment."] = "mixture"
    counters: Annotated[str, "Of alignment, by commas; selected by default."] = ""
    known: Annotated[int, "Programs."] = 12
    unseen: Annotated[int, "Programs."] = 4
    seconds: Annotated[float, "Length of a program."] = 0.03
    plain: Annotated[bool, "Without names left out."] = False
    seeds: Annotated[int, "Draws of programs."] = 40

    name: ClassVar[str] = "unseen_coverage"
    places: ClassVar[Sequence[str]] = ("law", "method")
    columns: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("covered", "standard error", "margin", "error"), ".1%"),
        "of the best constant": ".1%",
        **{f"outcome {name}": ".0f" for name in OUTCOMES},
    }

    def rows(self) -> list[tuple[Any, ...]]:
        return [(law, how) for law in self.on.split(",") for how in self.method.split(",")]

    def of_draws(self, draws: Sequence[Measures]) -> Measures:
        names = dict.fromkeys(name for one in draws for name in one)
        shown = dict(super().of_draws([dict.fromkeys(names, 0) | dict(one) for one in draws]))
        shown |= {
            name: sum(one.get(name, 0) for one in draws) for name in names if name[:7] == "outcome"
        }
        return shown | {"standard error": error_of_mean([one["covered"] for one in draws])}

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        law, method = row
        number = self.known + self.unseen
        machine = LAWS[law]
        programs = draw_programs(
            number,
            seed,
            seconds=self.seconds,
            shortest_seconds=2e-3,
            longest_seconds=1e-2,
            machine=machine,
        )
        pairs = [
            pair
            for names in (range(self.known), range(self.known, number))
            for pair in combinations_with_replacement(names, 2)
        ]
        sets = [pair for a, b in pairs for pair in {(a, b), (b, a)}]
        probes = stressors(machine, self.seconds)
        traces = simulate_campaign(programs, machine, sets=sets, loop=True, probes=probes)
        unseen = {programs[i].name for i in range(self.known, number)}
        beside = traced_runs(
            traces,
            solo_run_ids(traces)
            | {t.run_id for t in traces if any("probe-" in n for n in (t.workload, *t.corunners))},
        )
        new = np.array([beside.colocations.row(i)[0] in unseen for i in range(len(beside))])
        test = beside.take(new & np.isfinite(beside.runtime_seconds))
        known = beside.take(~new & np.isfinite(beside.runtime_seconds))
        inputs = probe_runs(traces, ("probe-*",))
        assert inputs is not None
        alone = [
            t for t in traces if t.solo and "probe-" not in t.workload and t.run_id.endswith("-0")
        ]
        solos = Runs.from_columns(
            workload=[t.workload for t in alone],
            platform=[t.platform for t in alone],
            runtime_seconds=[t.runtime_seconds for t in alone],
            run_id=[t.run_id for t in alone],
            window_id=[t.run_id for t in alone],
        )
        usual = {t.workload: t.runtime_seconds for t in alone}

        def slowdowns(runs: Any) -> np.ndarray:
            names = [runs.colocations.row(i)[0] for i in range(len(runs))]
            return runs.runtime_seconds / np.array([usual[name] for name in names])

        constant = float(np.median(slowdowns(known)))
        rival = float(np.mean(np.abs(constant / slowdowns(test) - 1)))
        if method == "probes":
            data: Any = Runs.concatenate([known, solos, inputs])
            settings: Any = jostle.Probes()
        else:
            data = jostle.Data(known, traces=traces)
            counters = tuple(self.counters.split(",")) if self.counters else None
            learner: Any = self.learner
            settings = jostle.Alignment(learner=learner, corunners="loop", counters=counters)
        model = jostle.fit(data, settings, seed=seed, new_names=not self.plain)
        bound = model.bound(test.colocations, CONFIDENCE)
        predicted, times = model.predict(test.colocations), test.runtime_seconds
        margin = float(np.mean(bound.seconds / predicted - 1))
        return {
            "covered": float(np.mean(times <= bound.seconds)) if np.isfinite(margin) else np.nan,
            "margin": margin,
            "error": float(np.mean(np.abs(predicted / times - 1))),
            "of the best constant": rival,
            **{f"outcome {name}": 0 for name in OUTCOMES},
            **{f"outcome {name}": n for name, n in Counter(map(str, bound.outcome)).items()},
        }
