"""Models from a disturbed machine against models from a quiet one, on the same quiet held-out runs.

    python benchmarks/never_quiet_models.py FOLDER --measure quiet    # on a quiet machine
    python benchmarks/never_quiet_models.py FOLDER --measure loaded
    python benchmarks/never_quiet_models.py FOLDER                    # fit on each, and the table

The programs of never_quiet.py alone and in sets of two to four. `quiet` measures a campaign and other sets,
which are held out; `loaded` the same campaign while every two seconds another number of processes, 0 to
--most, does nothing but compute. What is fitted is the default, on the estimates, and on the raw times.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from never_quiet import load, meanwhile, programs

import jostle
from jostle.measure import Campaign, measure
from jostle.runs import Dataset, Runs

SECONDS = 2.0


def changing_load(over: threading.Event, most: int, seed: int) -> None:
    """Until it is over, another number of processes that compute every SECONDS."""
    draw = random.Random(seed)
    while not over.is_set():
        with load(draw.randint(0, most)):
            over.wait(SECONDS)


def measured(folder: Path, name: str, sets: int, held_out: int, most: int) -> None:
    """Into folders of the folder: `quiet` and `held-out`, or `loaded`."""
    with tempfile.TemporaryDirectory(prefix="jostle-never-quiet-") as place, ExitStack() as stack:
        settings: dict[str, Any] = {"workloads": programs(Path(place)), "engines": ["native"]}
        settings |= {"device": "here"}
        if name == "loaded":
            stack.enter_context(meanwhile(lambda over: changing_load(over, most, 0)))
        measure(Campaign(**settings, solo_repeats=2, sets=sets, seed=0), folder / name)
        if name == "quiet":
            other = Campaign(**settings, solo_repeats=0, sets=held_out, seed=1)
            measure(other, folder / "held-out")


def as_raw(runs: Runs) -> Runs:
    """With the clock's times for the estimates."""
    table = runs.table
    place = table.column_names.index("runtime_seconds")
    table = table.set_column(place, "runtime_seconds", table.column("raw_runtime_seconds"))
    return Runs(table, checked=True)


def main() -> None:
    """Exit code 1 where the model from the loaded machine errs more than 1.3 times as much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--measure", choices=("quiet", "loaded"))
    parser.add_argument("--sets", type=int, default=36)
    parser.add_argument("--held-out", type=int, default=24)
    parser.add_argument("--most", type=int, default=6, help="foreign processes")
    given = parser.parse_args()
    if given.measure:
        measured(given.folder, given.measure, given.sets, given.held_out, given.most)
        return
    asked = Dataset(given.folder / "held-out").read().ok()
    quiet, loaded = (Dataset(given.folder / name).read().ok() for name in ("quiet", "loaded"))
    print(
        "| learned from | runs | lost (median, worst) | mean error | median error |\n|---|---|---|---|---|"
    )
    error = {}
    for name, runs in {"quiet": quiet, "loaded": loaded, "loaded, raw": as_raw(loaded)}.items():
        model = jostle.fit(runs)
        off = np.abs(model.predict(asked.colocations) / asked.runtime_seconds - 1)
        lost = runs.table.column("disturbance_ratio").to_numpy()
        error[name] = float(off.mean())
        print(
            f"| {name} | {len(runs)} | {np.median(lost):.0%}, {lost.max():.0%} | {off.mean():.1%} "
            f"| {np.median(off):.1%} |",
            flush=True,
        )
    ratio = error["loaded"] / error["quiet"]
    print(f"\nfrom the loaded machine {ratio:.2f} times the error from the quiet one, 1.3 wanted")
    sys.exit(ratio > 1.3)


if __name__ == "__main__":
    main()
