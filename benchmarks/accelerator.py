"""How fast the simulator is: simulated tasks per second of CPU time on one core, and its compilation.

    python benchmarks/accelerator.py [--tasks 500] [--runs 40] [--merge 0.05]

Each application is a random trace of kernels of all sizes and transfers of both kinds, with gaps; one runs
a number of times, the others repeat beside it. Ends of all applications with merged start groups are
compared with exact ones. Which kernel comes first is a matter of microseconds and what follows depends on
it: beside, what moving every start by a tenth of a microsecond does to the exact ends.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

from _data import one_core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--merge", type=float, default=0.05)
    given = parser.parse_args()
    one_core()
    import numpy as np

    from jostle.accelerator import (
        Application,
        Concurrent,
        Device,
        SimulationOptions,
        Task,
        Tenant,
        simulate,
    )

    device = Device(80, 64, {"memory": 100.0})

    def application(seed: int) -> Application:
        random = np.random.default_rng(seed)
        tasks = []
        for _ in range(given.tasks):
            gap = float(random.exponential(5e-6))
            if random.random() < 0.15:
                kind = "htod" if random.random() < 0.5 else "dtoh"
                seconds = float(random.exponential(5e-5))
                tasks.append(Task(kind, seconds, gap, exclusive=bool(random.random() < 0.3)))
                continue
            blocks = int(2 ** random.uniform(0, 10))
            needs = {"memory": float(random.uniform(0, 3))}
            seconds = float(random.exponential(5e-5))
            tasks.append(Task("kernel", seconds, gap, blocks, 8, 0.5, needs))
        return Application.of(f"a{seed}", *tasks)

    def moves(exact: np.ndarray, merged: np.ndarray) -> float:
        """Of the last run that both have."""
        last = min(len(exact), len(merged)) - 1
        return abs(merged[last] / exact[last] - 1) if last >= 0 else 0.0

    exactly = SimulationOptions(engine="compiled")
    applications = [application(seed) for seed in range(16)]
    began = time.process_time()
    simulate([Tenant(applications[0])], device, exactly)
    print(f"first call, with compilation or its cache: {time.process_time() - began:.2f} s")
    for tenants in (1, 2, 4, 8, 16):
        asked = [
            Tenant(applications[seed], given.runs if seed == 0 else None) for seed in range(tenants)
        ]
        speeds, found = [], []
        merging = replace(exactly, sharing=Concurrent(given.merge))
        for name, options in (("exact", exactly), (f"merged within {given.merge:g}", merging)):
            schedule, best = simulate(asked, device, options), 0.0
            for _ in range(3):
                began = time.process_time()
                schedule = simulate(asked, device, options)
                best = max(best, schedule.tasks / (time.process_time() - began))
            found.append(schedule)
            speeds.append(f"{name} {best / 1e6:.2f} million tasks/s")
        later = [replace(t, start_seconds=1e-7 * (n + 1)) for n, t in enumerate(asked)]
        found.append(simulate(later, device, exactly))
        exact = found[0].run_ends
        merged, shifted = (
            [moves(*ends) for ends in zip(exact, other.run_ends, strict=True)]
            for other in found[1:]
        )
        print(
            f"{tenants:2d} applications: {', '.join(speeds)}; ends move by {np.mean(merged):.2%} in the "
            f"mean, {np.max(merged):.2%} at most (starts moved: {np.mean(shifted):.2%}, "
            f"{np.max(shifted):.2%})",
            flush=True,
        )
    asked = [Tenant(applications[0]), Tenant(applications[1], None)]
    began = time.process_time()
    tasks = simulate(asked, device, SimulationOptions(engine="reference")).tasks
    plain = tasks / (time.process_time() - began)
    print(f" 2 applications, the reference: {plain / 1e3:.0f} thousand tasks/s")


if __name__ == "__main__":
    main()
