"""What learning costs: CPU-seconds of a fit and of an update by four more runs, by the number of runs.

    python -m studies.one_model.cost

The runs are of a synthetic campaign in which co-runners add up. One process; the first fit, which also
loads what fitting needs, is not counted.
"""

from __future__ import annotations

import time

import numpy as np

from jostle._base.report import Table
from jostle.models import fit
from studies.worlds.campaigns import MadeWorld

SIZES = (100, 300, 1_000, 3_000)
NEW = 4
WORLD = MadeWorld("adding", 40, 6, repeats=5)


def costs(size: int, seed: int = 0) -> tuple[float, float]:
    """Draw whole windows until there are so many runs, learn from these, then from the four that come next.

    Returns CPU-seconds of this process: (of the fit, of the update)."""
    runs = WORLD.runs(seed)
    window = np.unique(runs.table["window_id"].to_pylist(), return_inverse=True)[1]
    turn = np.random.default_rng(seed).permutation(window.max() + 1)[window]
    order = np.argsort(turn, kind="stable")
    began = time.process_time()
    model = fit(runs.take(order[:size]), seed=seed)
    fitted = time.process_time()
    model.update(runs.take(order[size : size + NEW]), seed=seed)
    return fitted - began, time.process_time() - fitted


def main() -> None:
    """Print a line for each number of runs."""
    spent = [costs(size) for size in (SIZES[0], *SIZES)][1:]
    rows = [
        [f"{size}", *(f"{seconds:.1f}" for seconds in one)]
        for size, one in zip(SIZES, spent, strict=True)
    ]
    print(Table(["runs", "fit, CPU s", f"update of {NEW} runs, CPU s"], rows).to_text())


if __name__ == "__main__":
    main()
