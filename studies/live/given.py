"""What a run so far tells of what it will use: Brier scores 0.1 s ahead, beside simple rules.

    python -m studies.live.given [--families modes,walk] [--seeds 3,4,5] [--runs 30] [--recorded 120]

Of each made family and seed some runs are recorded and others live. At three moments of each live run: the
probability that each component is over its 50, 80 and 95% quantile a tenth of a second later. `given` is
`forecast.given(trace so far).at(time)`; `without` is the same forecast at that time, `mixture` the mixture
of all recorded runs there, `last` says that what is over its limit now stays so, and `turns` how often
recorded runs were over it then, of those on the same side of it now. Printed are Brier scores, and each of
`given` over that of the rule; a line of stderr for each as it is done. Means are over families and seeds.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from studies.data import one_core

MOMENTS = (40, 75, 110)  # samples seen
QUANTILES = (0.5, 0.8, 0.95)
RULES = ("without", "mixture", "last", "turns")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--families", help="separated by commas; all of them by default")
    parser.add_argument("--seeds", default="3,4,5")
    parser.add_argument("--runs", type=int, default=30, help="live")
    parser.add_argument("--recorded", type=int, default=120, help="runs")
    parser.add_argument("--ahead", type=float, default=0.1, help="seconds")
    options = parser.parse_args()
    one_core()
    from studies.bridge.families import FAMILIES

    families = options.families.split(",") if options.families else sorted(FAMILIES)
    print("family", "given", *RULES, *(f"over {rule}" for rule in RULES), sep=" | ", flush=True)
    every = []
    for family in families:
        rows = []
        for seed in map(int, options.seeds.split(",")):
            began = time.process_time()
            rows.append(scores(family, seed, options))
            told = ", ".join(f"{value:.4f}" for value in rows[-1])
            seconds = time.process_time() - began
            print(f"{family} {seed}: {told} ({seconds:.0f} CPU s)", file=sys.stderr, flush=True)
        _line(family, np.array(rows))
        every.append(np.array(rows))
    _line("all", np.concatenate(every))


def _line(name: str, rows: np.ndarray) -> None:
    """Means over seeds; of ratios, with the least and the largest of one seed."""
    ratios = rows[:, :1] / np.maximum(rows[:, 1:], 1e-12)
    cells = [f"{value:.4f}" for value in rows.mean(axis=0)]
    cells += [f"{r.mean():.2f} ({r.min():.2f} to {r.max():.2f})" for r in ratios.T]
    print(name, *cells, sep=" | ", flush=True)


def scores(family: str, seed: int, options: argparse.Namespace) -> np.ndarray:
    """(1 + rules,) Brier scores of one process."""
    from dataclasses import replace

    import jostle
    from studies.bridge.data import COUNTERS
    from studies.bridge.families import INTERVAL_SECONDS, TIME, made_family

    traces = made_family(family, options.recorded + options.runs, seed=seed)
    ids = traces.run_ids
    recorded = traces.select(ids[: options.recorded])
    forecast = jostle.forecast(recorded, jostle.Bridge(components=COUNTERS))
    mixture = jostle.forecast(recorded, jostle.Bridge(components=COUNTERS, method="mixture"))
    levels = np.stack([[t[c] / INTERVAL_SECONDS for c in COUNTERS] for t in recorded])
    known = np.isfinite(levels)
    limits = np.stack(
        [np.quantile(levels[:, c][known[:, c]], QUANTILES) for c in range(len(COUNTERS))]
    )
    steps = round(options.ahead / INTERVAL_SECONDS)
    errors: list[list[float]] = []
    for trace in traces.select(ids[options.recorded :]):
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
    return np.mean(errors, axis=0)


if __name__ == "__main__":
    main()
