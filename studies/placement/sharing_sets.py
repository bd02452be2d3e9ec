"""Three services and two batch jobs: which sets may share, against every set simulated with 20 000 queries.

    python -m studies.placement.sharing_sets [--queries 20000] [--seed 7]

`sets_that_fit` is what `jostle safe --tenants` asks. The check puts every set into every way to share by
hand, as tenants of the simulator with other arrivals, and compares percentiles of so many queries of the
rarest service with the limits. Prints what differs, and CPU time.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np

from jostle.accelerator import (
    Application,
    Device,
    DeviceTenant,
    Objective,
    SimulationOptions,
    Task,
    Tenant,
    Wish,
    poisson_arrivals,
    sets_that_fit,
    simulate,
    split_device,
    ways_to_arrange,
)

DEVICE = Device(10, 8)
MODES = ("concurrent", "time-sliced", "shares", "0.5,0.5")


def wishes() -> list[Wish]:
    """Three services with limits on p99 at their rates, and two batch jobs with limits on theirs."""
    web = [Task("htod", 1e-3), Task("kernel", 4e-3, blocks=24), Task("dtoh", 1e-3, 5e-4)]
    api = [Task("kernel", 2e-3, blocks=40), Task("kernel", 3e-3, 5e-4, blocks=80)]
    asr = [Task("htod", 2e-3), Task("kernel", 6e-3, blocks=48), Task("kernel", 4e-3, blocks=16)]
    sort = [Task("kernel", 1.5e-3, blocks=16), Task("kernel", 1e-3, 2e-4, blocks=16)]
    train = [Task("kernel", 20e-3, blocks=56), Task("htod", 4e-3)]

    def wish(name: str, tasks: list[Task], rate: float | None, objective: Objective) -> Wish:
        return Wish(name, DeviceTenant(Application.of(name, *tasks), rate), objective)

    return [
        wish("web", web, 20.0, Objective(None, 0.040, "p99")),
        wish("api", api, 15.0, Objective(None, 0.050, "p99")),
        wish("asr", asr, 8.0, Objective(3.0, None, "p99")),
        wish("sort", sort, None, Objective(4.0, None, "p99")),
        wish("train", train, None, Objective(3.0, None, "p99")),
    ]


def over_limits(members: list[Wish], mode: str, way: tuple[int, ...], n: int, seed: int) -> float:
    """The largest p99 over its limit, of one set in one way to share, by hand."""
    rates = [w.tenant.rate_per_second for w in members if w.tenant.rate_per_second]
    device = split_device(DEVICE, mode) if way else DEVICE
    share = round(DEVICE.pes / len(members)) if mode == "shares" else None
    solo = [w.tenant.application.solo_seconds for w in members]
    tenants = []
    for place, wish in enumerate(members):
        rate, runs, times = wish.tenant.rate_per_second, None, None
        if rate is not None:
            runs = round(n * rate / min(rates))
            times = poisson_arrivals(rate, runs, (seed, place))
        elif not rates and solo[place] == max(solo):
            runs = n
        tenants.append(
            Tenant(
                wish.tenant.application,
                runs,
                start_seconds=0.0 if runs else 1e-3 * place,
                arrivals=times,
                partition=way[place] if way else 0,
                most_pes=share,
            )
        )
    options = SimulationOptions(mode if mode in ("concurrent", "time-sliced") else "concurrent")
    last = max((float(t.arrivals[-1]) for t in tenants if t.arrivals is not None), default=np.inf)
    done = simulate(tenants, device, options, until_seconds=2 * last).latencies
    worst = 0.0
    for wish, tenant, seconds in zip(members, tenants, done, strict=True):
        starved = 0 if tenant.runs is None else tenant.runs - len(seconds)
        every = np.sort(np.concatenate([seconds, np.full(starved, np.inf)]))
        worst = max(worst, every[-(-99 * len(every) // 100) - 1] / wish.limit_seconds)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    asked = wishes()
    sets_that_fit(asked[:2], DEVICE, MODES, queries=20)  # compiles
    began = time.process_time()
    results = sets_that_fit(asked, DEVICE, MODES)
    took = time.process_time() - began
    answered = {s.members: s for s in (*results.alone, *results.fitting, *results.others)}
    print(
        f"sets_that_fit: {len(answered)} sets, {results.simulated} simulations, {took:.1f} s of CPU"
    )
    began, ways, wrong, unclear, inside = time.process_time(), 0, 0, 0, 0
    for size in range(1, len(asked) + 1):
        for members in combinations(asked, size):
            names = tuple(w.name for w in members)
            over = {}
            for mode in MODES:
                for way in ways_to_arrange([w.tenant for w in members], DEVICE, mode):
                    over[mode, way] = over_limits(list(members), mode, way, *vars(given).values())
            ways, best = ways + len(over), min(over.values())
            held = [s for s in results.fitting if set(names) < set(s.members)]
            verdict = answered[names].verdict if names in answered else "keeps"
            inside += names not in answered
            unclear += verdict == "unclear"
            right = verdict == "unclear" or (verdict == "keeps") == (best <= 1)
            wrong += not right
            told = "" if names in answered else f" (inside {', '.join(held[0].members)})"
            print(
                f"{'' if right else 'DIFFERS '}{', '.join(names)}: {verdict}{told}, {best:.3f} of limits"
            )
    took = time.process_time() - began
    print(
        f"{2 ** len(asked) - 1} sets, {ways} ways of {given.queries} queries, {took:.0f} s of CPU"
    )
    print(f"differ: {wrong}; left open: {unclear}; not asked, inside one that fits: {inside}")


if __name__ == "__main__":
    main()
