"""How often pairs of programs that never ran beside a program stay under their bounds, on made laws.

    python -m studies.bounds.unseen_coverage [--on lru,smt] [--method probes,alignment] [--seeds 40]
        [--known 12] [--unseen 4] [--plain]

For every seed programs are drawn anew; all are traced alone and beside three stressors, all pairs of those
known are learned from and calibrated on by `jostle.fit(..., new_names=True)`, and bounds of pairs of which
both programs are unseen are held against the truth. A seed counts once, with the share of its run times under
their bounds; the standard error is over seeds, whose programs have nothing in common. --plain fits without
names left out. Outcomes are counted: none may be `guaranteed` here, where programs asked about are not drawn
like those calibrated on. Progress goes to stderr, seed by seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from studies.data import one_core

CONFIDENCE = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--on", default="lru,smt", help="laws: simulator, lru, queue, smt")
    parser.add_argument("--method", default="probes,alignment")
    parser.add_argument("--learner", default="mixture", help="of alignment")
    parser.add_argument("--counters", help="of alignment, separated by commas; selected by default")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--known", type=int, default=12, help="programs")
    parser.add_argument("--unseen", type=int, default=4, help="programs")
    parser.add_argument("--seconds", type=float, default=0.03, help="length of a program")
    parser.add_argument("--plain", action="store_true", help="without new_names")
    options = parser.parse_args()
    one_core()
    print(
        "law | method | covered | standard error | margin | error | of the best constant | outcomes"
    )
    for law in options.on.split(","):
        found: dict[str, list[tuple[float, float, float, float]]] = {}
        outcomes: dict[str, Counter[str]] = {}
        for seed in range(options.first, options.first + options.seeds):
            for method, (row, seen) in one_seed(law, seed, options).items():
                found.setdefault(method, []).append(row)
                outcomes.setdefault(method, Counter()).update(seen)
                print(f"{law} {seed} {method}: {row} {dict(seen)}", file=sys.stderr, flush=True)
        for method, rows in found.items():
            table = np.array(rows)
            bounded = table[np.isfinite(table[:, 1])]
            error = (
                bounded[:, 0].std(ddof=1) / np.sqrt(len(bounded)) if len(bounded) > 1 else np.nan
            )
            cells = [law, method, f"{bounded[:, 0].mean():.1%}" if len(bounded) else "no bound"]
            cells += [f"{error:.1%}"]
            cells += [f"{value:.1%}" for value in table.mean(axis=0)[1:]]
            told = ", ".join(f"{name} {n}" for name, n in outcomes[method].most_common())
            print(*cells, told, sep=" | ", flush=True)


def one_seed(
    law: str, seed: int, options: argparse.Namespace
) -> dict[str, tuple[tuple[float, float, float, float], Counter[str]]]:
    """{method: ((share under, mean margin, mean error, that of the best constant), outcomes)}."""
    import jostle
    from jostle.alignment import solo_run_ids, traced_runs
    from jostle.runs import Runs
    from studies.alignment.laws import LAWS, stressors
    from studies.alignment.rivals import probe_runs
    from studies.alignment.simulated import draw_programs, simulate_campaign

    number = options.known + options.unseen
    machine = LAWS[law]
    programs = draw_programs(
        number,
        seed,
        seconds=options.seconds,
        shortest_seconds=2e-3,
        longest_seconds=1e-2,
        machine=machine,
    )
    pairs = [
        pair
        for names in (range(options.known), range(options.known, number))
        for pair in combinations_with_replacement(names, 2)
    ]
    sets = [pair for a, b in pairs for pair in {(a, b), (b, a)}]
    probes = stressors(machine, options.seconds)
    traces = simulate_campaign(programs, machine, sets=sets, loop=True, probes=probes)
    unseen = {programs[i].name for i in range(options.known, number)}
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
    alone = [t for t in traces if t.solo and "probe-" not in t.workload and t.run_id.endswith("-0")]
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
    found = {}
    for method in options.method.split(","):
        if method == "probes":
            data: Any = Runs.concatenate([known, solos, inputs])
            model = jostle.fit(data, jostle.Probes(), seed=seed, new_names=not options.plain)
        else:
            counters = tuple(options.counters.split(",")) if options.counters else None
            settings = jostle.Alignment(
                learner=options.learner, corunners="loop", counters=counters
            )
            data = jostle.Data(known, traces=traces)
            model = jostle.fit(data, settings, seed=seed, new_names=not options.plain)
        bound = model.bound(test.colocations, CONFIDENCE)
        predicted = model.predict(test.colocations)
        row = (
            float(np.mean(test.runtime_seconds <= bound.seconds)),
            float(np.mean(bound.seconds / predicted - 1)),
            float(np.mean(np.abs(predicted / test.runtime_seconds - 1))),
            rival,
        )
        found[method] = row, Counter(str(name) for name in bound.outcome)
    return found


if __name__ == "__main__":
    main()
