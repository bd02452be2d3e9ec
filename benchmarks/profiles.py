"""How fast and in how much memory a large Kineto trace is read and becomes the columns of an application.

The trace is written to a temporary folder first.

    python benchmarks/profiles.py [--gigabytes 1.0] [--kernels 0.25]

kernels: the share of events that are kernels, the others are the host's.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path


def write(path: Path, size: float, share: float) -> None:
    """A trace of about `size` bytes, events of 600 to 700 bytes."""
    name = "void at::native::elementwise_kernel<128, 2>(int, " + "x" * 300 + ")"
    args = {"device": 0, "stream": 7, "correlation": 1, "grid": [640, 1, 1], "block": [128, 1, 1]}
    args |= {"registers per thread": 32, "shared memory": 0, "External id": 5, "queued": 0}
    kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "args": args}
    host = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "args": {"a": "y" * 150}}
    every = round(1 / share)
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [')
        written = number = 0
        while written < size:
            event = kernel if number % every == 0 else host
            text = json.dumps({**event, "ts": number * 10, "dur": 5}) + ","
            written += file.write(text)
            number += 1
        file.write(json.dumps({**kernel, "ts": number * 10, "dur": 5}) + "]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--kernels", type=float, default=0.25)
    given = parser.parse_args()
    from jostle.accelerator import Application
    from jostle.traces import read_profile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write(path, given.gigabytes * 1e9, given.kernels)
        began = time.process_time()
        profile = read_profile(path, gpu="A100")
        spent = time.process_time() - began
        application = Application.from_profile(profile)
        further = time.process_time() - began - spent
        size = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{size / 1e9:.2f} GB, {len(profile)} tasks: {spent:.1f} s of CPU time to read")
    print(
        f"{len(application)} tasks of an application: {further:.2f} s more; at most {peak:.0f} MB"
    )


if __name__ == "__main__":
    main()
