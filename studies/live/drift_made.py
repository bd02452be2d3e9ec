"""False alarms of a watch, and runs until a step of a device is found, on made campaigns of other kinds.

    python -m studies.live.drift_made [--fitted 1000,4000] [--laws NAME,...] [--seeds 3] [--seed 10]

30 workloads on 10 platforms, alone or beside one or two others: capacity that is shared above a threshold,
with or without what workloads take on platforms, and errors that are Gaussian, heavy-tailed (Student t with 4
degrees of freedom), one-sided, of widths that names differ in, or with one in twenty far off. A model is
fitted to so many runs; 10 000 more that did not change are watched, then 3 000 of which the last 2 000 of one
device take 1.2 times as long, for each device in turn that has 60 such runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from studies.data import one_core
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fitted", default="1000,4000", help="runs that models are fitted to")
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=10, help="the first one")
    options = parser.parse_args()
    one_core()
    print(
        "| fitted to | law | false alarms | in runs | step found | after, median | 95% | others told |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for fitted in map(int, options.fitted.split(",")):
        for law in options.laws.split(","):
            seeds = range(options.seed, options.seed + options.seeds)
            told = [one(law, fitted, seed) for seed in seeds]
            delays = sorted(delay for _, found, _ in told for delay in found)
            known = [delay for delay in delays if np.isfinite(delay)]
            cells = (
                sum(false for false, _, _ in told),
                WATCHED * len(told),
                f"{len(known)} of {len(delays)}",
                *(f"{delays[int(q * (len(delays) - 1))]:.0f}" for q in (0.5, 0.95)),
                sum(others for _, _, others in told),
            )
            print(f"| {fitted} | {law} | " + " | ".join(map(str, cells)) + " |", flush=True)


def one(law: str, fitted: int, seed: int) -> tuple[int, list[float], int]:
    """(false alarms, runs until the step of each device was found, infinite where it was not, other alarms
    in these streams)."""
    import jostle

    make = campaign(law, seed)
    model = jostle.fit(make(fitted), jostle.Factorization(), seed=seed)
    false = len(model.watch().update(make(WATCHED)))
    stream, delays, others = make(STREAM), [], 0
    device = devices_of(stream)
    for name in np.unique(device):
        off = (np.arange(STREAM) >= START) & (device == name)
        if off.sum() < 60:
            continue
        found = model.watch().update(scaled(stream, np.where(off, STEP, 1.0)))
        # A device with one platform is that platform.
        mine = [d for d in found if d.name.rpartition(":")[2] == name and d.found >= START]
        others += len(found) - len(mine)
        delays.append(float(off[: mine[0].found + 1].sum()) if mine else np.inf)
    return false, delays, others


def campaign(law: str, seed: int) -> Callable[[int], Any]:
    """Draws so many runs of one campaign."""
    from jostle.runs import Runs

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


if __name__ == "__main__":
    main()
