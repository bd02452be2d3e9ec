"""How soon a drift is found, how often one is told that is not there, and what bounds are worth meanwhile.

    python -m studies.live.drift [--observed 0.5] [--streams 6]

One model is fitted on a share of the public Pitot runs; the rest is streamed in random order, with steps,
ramps and periods put onto one device or all of them. The static bound and plain adaptive conformal inference
(one level for all runs) stand beside.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from studies.data import one_core, pitot_folder

BATCH = 50
LENGTH = 30_000
CONFIDENCE = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--streams", type=int, default=6)
    parser.add_argument("--devices", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    one_core()
    import jostle
    from jostle.evaluate import observed_split
    from studies.data.pitot import read_pitot

    runs = read_pitot(pitot_folder()).ok()
    split = observed_split(runs, options.observed, options.seed, "row")
    model = jostle.fit(
        runs.take(split.train),
        jostle.Factorization(),
        seed=options.seed,
        validation=runs.take(split.validation),
        calibration=runs.take(split.calibration),
        calibrate_by="row",
    )
    false = 0
    for stream in range(options.streams):
        order = np.random.default_rng([options.seed, stream]).permutation(split.test)
        false += len(model.watch().update(runs.take(order)))
    total = options.streams * len(split.test)
    print(f"false alarms: {false} in {total} runs")
    test = runs.take(np.random.default_rng([options.seed, 99]).permutation(split.test))
    steps(model, test, options.devices)
    coverages(model, test)


def steps(model: Any, test: Any, most: int) -> None:
    """Runs of a device until a step of it is found, so many devices in turn."""
    device = devices_of(test)
    n, start = min(14_000, len(test)), 2000
    for step in (1.2, 1.1, 1.05):
        delays, elsewhere, ratios = [], 0, []
        names = np.unique(device[start:n])[:most]
        for name in names:
            off = (np.arange(n) >= start) & (device[:n] == name)
            watch = model.watch()
            results = watch.update(scaled(test.take(np.arange(n)), np.where(off, step, 1.0)))
            mine = [one for one in results if one.kind == "device" and one.name == name]
            elsewhere += len(results) - len(mine)
            if mine:
                delays.append(int(off[: mine[0].found + 1].sum()))
                ratios.append(mine[0].ratio)
        print(
            f"step x{step}: found on {len(delays)} of {len(names)} devices after "
            f"{np.median(delays):.0f} of their runs (95%: {np.quantile(delays, 0.95):.0f}), "
            f"told as x{np.median(ratios):.3f}; {elsewhere} other alarms"
        )


def coverages(model: Any, test: Any) -> None:
    """Coverage and margin of the runs that drift, bounds given in batches before their runs are seen."""
    n, start = min(LENGTH, len(test)), 5000
    at, device = np.arange(n), devices_of(test)[:n]
    one = device == np.unique(device)[3]
    later = np.maximum(at - start, 0) / (n - start)
    laws: dict[str, tuple[np.ndarray, Callable[[], np.ndarray]]] = {
        "step of all x1.2": (at >= start, lambda: np.where(at >= start, 1.2, 1.0)),
        "step of one device x1.2": (
            (at >= start) & one,
            lambda: np.where(one & (at >= start), 1.2, 1.0),
        ),
        "ramp of all to x1.3": (at >= start, lambda: 1 + 0.3 * later),
        "period of all, x0.9 to x1.1": (
            at >= start,
            lambda: np.where(at >= start, 1 + 0.1 * np.sin(at / 1500), 1.0),
        ),
        "none": (at >= start, lambda: np.ones(n)),
    }
    for name, (inside, factor) in laws.items():
        stream = scaled(test.take(at), factor())
        watch, plain, level = model.watch(CONFIDENCE), [], 1 - CONFIDENCE
        late: dict[str, list[np.ndarray]] = {"watch": [], "static": []}
        margins: dict[str, list[np.ndarray]] = {"watch": [], "static": [], "plain": []}
        before: list[np.ndarray] = []
        for first in range(0, n, BATCH):
            part = stream.take(at[first : first + BATCH])
            rows = np.flatnonzero(inside[first : first + BATCH])
            asked, true = part.colocations, part.runtime_seconds
            results = {
                "watch": watch.bound(asked).seconds,
                "static": model.bound(asked, CONFIDENCE).seconds,
                "plain": model.bound(asked, min(max(1 - level, 0.01), 0.999)).seconds,
            }
            usual = test.take(at[first : first + BATCH]).runtime_seconds
            over = np.maximum(results["static"] / usual - 1, 0)[rows]
            before.append(over[np.isfinite(over)])
            missed = true > results["plain"]
            level += 0.005 * float(np.sum(1 - CONFIDENCE - missed))
            plain.append(missed[rows])
            for which in late:
                late[which].append((true > results[which])[rows])
            for which, values in margins.items():
                over = np.maximum(results[which] / true - 1, 0)[rows]
                values.append(over[np.isfinite(over)])
            watch.update(part)
        late["plain"] = plain
        print(name + ": " + "; ".join(f"{w} {told(late[w], margins[w])}" for w in margins))
        usual_margin = 100 * np.concatenate(before).mean()
        print(
            f"  {len(watch.drifts)} alarms; the same runs before they drift: margin {usual_margin:.1f}%"
        )


def told(late: list[np.ndarray], margin: list[np.ndarray]) -> str:
    return f"{100 * (1 - np.concatenate(late).mean()):.1f}% margin {100 * np.concatenate(margin).mean():.1f}%"


def devices_of(runs: Any) -> np.ndarray:
    from jostle.models._usual import device_of

    c = runs.colocations
    return np.array([device_of(name) for name in c.platform_names])[c.platform]


def scaled(runs: Any, factor: np.ndarray) -> Any:
    """The same runs, each so many times as long."""
    import pyarrow as pa

    from jostle.runs import Runs

    table = runs.table
    place = table.column_names.index("runtime_seconds")
    column = pa.array(runs.runtime_seconds * factor)
    table = table.set_column(place, table.field(place), column)
    return Runs(table, runs.workload_features, runs.platform_features, checked=True)


if __name__ == "__main__":
    main()
