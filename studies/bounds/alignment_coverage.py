"""How often run times of new sets of workloads stay under their bounds, on the simulator.

    python -m studies.bounds.alignment_coverage [--seeds 40] [--programs 12] [--sets 150] [--share 0.3]

For every seed programs are drawn anew, sets of two of them (and a program beside itself) run both ways, a
share of the sets is kept for the test, and the rest is learned from and calibrated on, set by set. A set
counts once, with the share of its run times that stay under their bounds. The standard error is over seeds,
whose programs have nothing in common. `row by row` is what calibrating on single runs would give: too little,
because the runs of a set are alike.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from studies.data import one_core

CONFIDENCES = (0.5, 0.8, 0.9, 0.95)
COUNTERS = ("instructions", "stall_cycles", "cache_accesses", "dram_read_bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--programs", type=int, default=12)
    parser.add_argument("--sets", type=int, default=150, help="at most")
    parser.add_argument("--share", type=float, default=0.3, help="of the sets that are tested")
    parser.add_argument("--seconds", type=float, default=0.04, help="length of a program")
    options = parser.parse_args()
    one_core()
    found: dict[str, list[list[float]]] = {"together": [], "row": []}
    margins: list[list[float]] = []
    for seed in range(options.seeds):
        covered, margin = one_seed(seed, options)
        for by, values in covered.items():
            found[by].append(values)
        margins.append(margin)
        print(f"seed {seed}: {covered['together']}", file=sys.stderr)
    print(
        "confidence | covered, set by set | standard error | row by row | standard error | margin"
    )
    for k, confidence in enumerate(CONFIDENCES):
        cells = [f"{confidence:.0%}"]
        for by in ("together", "row"):
            values = np.array(found[by])[:, k]
            values = values[~np.isnan(values)]
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
            cells += [f"{values.mean():.1%}" if len(values) else "no bound", f"{error:.1%}"]
        column = np.array(margins)[:, k]
        cells.append(f"{np.nanmean(column):.1%}" if np.isfinite(column).any() else "-")
        print(" | ".join(cells))


def one_seed(seed: int, options: argparse.Namespace) -> tuple[dict[str, list[float]], list[float]]:
    """({calibrated by: share covered by confidence}, margins of the bounds set by set)."""
    import jostle
    from jostle.alignment import solo_run_ids, traced_runs
    from jostle.runs import split_rows
    from studies.alignment.simulated import draw_programs, simulate_campaign

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
        method = jostle.Alignment(learner="ridge", counters=COUNTERS, strength=1e-2)
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


if __name__ == "__main__":
    main()
