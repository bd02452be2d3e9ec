"""How fast a model answers: in bulk, one in process, and one from a cold start; on one core.

    python benchmarks/answering.py MODEL [--rows 1000000]

The model is any folder written by `jostle fit`. Each figure is the best of several repetitions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from _data import one_core


def best(repeats: int, call: Callable[[], Any]) -> float:
    """The least seconds of several calls."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    one_core()
    import numpy as np

    import jostle

    model = jostle.load(given.model)
    names, places = model.predictor.workload_names, model.predictor.platform_names
    random = np.random.default_rng(0)
    n = given.rows
    asked = jostle.Colocations(
        names,
        places,
        random.integers(0, len(names), n),
        random.integers(0, len(places), n),
        np.arange(n + 1),
        random.integers(0, len(names), n),
    )
    one = asked.take([0])
    model.predict(asked)
    bulk = best(3, lambda: model.predict(asked))
    print(f"bulk, one co-runner each: {n / bulk / 1e6:.2f} million predictions a second")
    bound = best(3, lambda: model.bound(asked, 0.9))
    print(f"with bounds: {n / bound / 1e6:.2f} million a second")
    print(f"one in process: {best(2000, lambda: model.predict(one)) * 1e6:.0f} microseconds")
    w, p, _ = one.row(0)
    command = [sys.executable, "-m", "jostle", "predict", given.model, "-w", w, "-p", p, "-c", ".9"]
    cold = best(7, lambda: subprocess.run(command, capture_output=True, check=False))
    print(f"one from a cold start: {cold:.3f} s")


if __name__ == "__main__":
    main()
