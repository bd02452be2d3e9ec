"""How fast the simulator is: simulated tasks per second of CPU time on one core, and its compilation.

    python benchmarks/accelerator.py [--tasks 500] [--runs 40] [--other SRC]

Each application is a random trace of kernels of all sizes and transfers of both kinds, with gaps; one runs
a number of times, the others repeat beside it. --other: the folder `src` of another version, asked in turn
with this one, so that a crowded machine slows both alike: the median of the ratios of their times, and
whether all ends are the same to the bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time

from _data import one_core

TENANTS, ROUNDS = (1, 2, 4, 8, 16), 24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--other", default="")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    one_core()
    if given.serve:
        simulations = _Simulations(given.tasks, given.runs)
        for line in sys.stdin:
            way, tenants, engine = line.split()
            print(*simulations.timed(way, int(tenants), engine), flush=True)
        return
    here, *others = (_Server(path, given) for path in ("", given.other)[: 1 + bool(given.other)])
    for way in ("concurrent", "sequential", "time-sliced"):
        for tenants in TENANTS:
            words = f"{way} {tenants} compiled"
            times = [[here.timed(words), *(o.timed(words) for o in others)] for _ in range(ROUNDS)]
            speed = max(tasks / seconds for (seconds, tasks, _), *_ in times)
            text = f"{way}, {tenants:2d} applications: {speed / 1e6:.2f} million tasks/s"
            if others:
                ratio = sorted(other[0] / mine[0] for mine, other in times)[ROUNDS // 2]
                same = times[0][0][2] == times[0][1][2]
                text += f", {ratio:.2f} times the other's; ends {'alike' if same else 'DIFFER'}"
            print(text, flush=True)
    seconds, tasks, _ = here.timed("concurrent 2 reference")
    print(f"2 applications, the reference: {tasks / seconds / 1e3:.0f} thousand tasks/s")
    for server in (here, *others):
        server.to.close()
        server.process.wait()


class _Server:
    """A process of a version of the library that times what it is asked."""

    def __init__(self, source: str, given: argparse.Namespace) -> None:
        command = [sys.executable, __file__, "--serve"]
        command += ["--tasks", str(given.tasks), "--runs", str(given.runs)]
        path = {"PYTHONPATH": source} if source else {}
        self.process = subprocess.Popen(
            command,
            text=True,
            env=os.environ | path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin
        assert self.process.stdout
        self.to, self.back = self.process.stdin, self.process.stdout
        self.timed("concurrent 1 compiled")  # compiles

    def timed(self, words: str) -> tuple[float, int, str]:
        """(s of CPU time, tasks, digest of all ends)."""
        self.to.write(words + "\n")
        self.to.flush()
        seconds, tasks, digest = self.back.readline().split()
        return float(seconds), int(tasks), digest


class _Simulations:
    def __init__(self, tasks: int, runs: int) -> None:
        from jostle.accelerator import Device

        self.device, self.runs = Device(80, 64, {"memory": 100.0}), runs
        self.applications = [self._application(seed, tasks) for seed in range(max(TENANTS))]

    def _application(self, seed: int, number: int):
        import numpy as np

        from jostle.accelerator import Application, Task

        random = np.random.default_rng(seed)
        tasks = []
        for _ in range(number):
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

    def timed(self, way: str, tenants: int, engine: str) -> tuple[float, int, str]:
        from jostle.accelerator import SimulationOptions, Tenant, simulate

        runs = self.runs if engine == "compiled" else 1
        asked = [
            Tenant(application, runs if n == 0 else None)
            for n, application in enumerate(self.applications[:tenants])
        ]
        began = time.process_time()
        schedule = simulate(asked, self.device, SimulationOptions(way, engine=engine))
        seconds = time.process_time() - began
        ends = b"".join(part.tobytes() for part in (*schedule.run_ends, *schedule.latencies))
        return seconds, schedule.tasks, hashlib.sha256(ends).hexdigest()[:12]


if __name__ == "__main__":
    main()
