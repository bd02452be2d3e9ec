"""How fast the simulator is: simulated tasks per second of CPU time on one core, and its compilation.

    python benchmarks/accelerator.py [--tasks 2000] [--merge 0.1]

Each application is a random trace of kernels of all sizes and transfers of both kinds, with gaps; one runs
a number of times, the others repeat beside it. Ends with merged start groups are compared with exact ones.
"""

from __future__ import annotations

import argparse
import time

from _data import one_core


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--merge", type=float, default=0.1)
    given = parser.parse_args()
    one_core()
    import numpy as np

    from jostle.accelerator import Application, Concurrent, Device, Task, Tenant, simulate

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
        return Application(f"a{seed}", tuple(tasks))

    applications = [application(seed) for seed in range(16)]
    began = time.process_time()
    simulate([Tenant(applications[0])], device, engine="compiled")
    print(f"first call, with compilation or its cache: {time.process_time() - began:.2f} s")
    for tenants in (1, 2, 4, 8, 16):
        said = []
        ends = []
        for name, model, runs in (
            ("exact", Concurrent(), 40),
            (f"merged within {given.merge:g}", Concurrent(given.merge), 40),
        ):
            asked = [
                Tenant(applications[seed], max(1, runs // tenants) if seed == 0 else None)
                for seed in range(tenants)
            ]
            best = 0.0
            found = simulate(asked, device, kernels=model, engine="compiled")
            for _ in range(3):
                began = time.process_time()
                found = simulate(asked, device, kernels=model, engine="compiled")
                best = max(best, found.tasks / (time.process_time() - began))
            ends.append(found.run_ends[0][-1])
            said.append(f"{name} {best / 1e6:.2f} million tasks/s")
        moved = abs(ends[1] / ends[0] - 1)
        print(f"{tenants:2d} applications: {', '.join(said)} (end moves {moved:.3%})", flush=True)
    asked = [Tenant(applications[0]), Tenant(applications[1], None)]
    began = time.process_time()
    tasks = simulate(asked, device, engine="reference").tasks
    plain = tasks / (time.process_time() - began)
    print(f" 2 applications, the reference: {plain / 1e3:.0f} thousand tasks/s")


if __name__ == "__main__":
    main()
