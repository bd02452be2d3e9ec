"""Bondar, Gifford, Phan, Halder: Learning of Computational Resource Usage as Graph Structured Bridges.

Table II on the paper's own published snapshots. Of Table III and of when control cycles ended nothing was
published.
"""

from __future__ import annotations

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table
from jostle.usage import Bridge, Cloud, Forecast, Snapshots, evenly_few
from studies.bridge.data import COUNTERS, PAPER_SCALE, read_published
from studies.bridge.rivals import wasserstein
from studies.data import data_folder

BETWEEN = (0, 1, 2, 3, 4)  # snapshots inside a control cycle that are learned from
TRUTH = 5  # inside a cycle, of which the third cycle's are asked about
SCALE = np.array([PAPER_SCALE[name] for name in COUNTERS])  # of counts per 10 ms
FIRST = "halder_outfiles_0927_intermarginals0/kbm_sim_32767_1080_0_t0_3dim.txt"
METHODS = {"as printed": Bridge.paper(PAPER_SCALE), "default": Bridge(), "transport": Bridge("ot")}


def tables(seed: int, progress: Progress) -> list[Table]:
    """Compare snapshots inside the third control cycle in W2, in the paper's units. All 500 runs are on both
    sides, as the paper has it, so that a low score may be a shared run's; = is a training snapshot itself.

    Raises UnreadableFile.
    """
    published = data_folder(f"nmpc/{FIRST}").parents[1]
    times, truth, prints = read_published(published, TRUTH)
    inside = [k for k in range(len(times)) if 2 < times[k] < 3]
    rows = []
    for between in BETWEEN:
        progress(between, len(BETWEEN), float("nan"))
        known_times, clouds, known = read_published(published, between)
        snapshots = Snapshots.from_arrays(known_times, clouds, COUNTERS)
        for name, method in METHODS.items():
            forecast, cells = Forecast(snapshots, method), []
            for k in inside:
                guess = evenly_few(forecast.at(float(times[k])).cloud, len(truth[k]))
                off = wasserstein(guess.scaled(SCALE), Cloud.of(truth[k]).scaled(SCALE))
                cells.append("=" if prints[k] in known else f"{off:.4f}")
            rows.append([str(between), name, *cells])
    columns = ["inside a cycle", "by", *(f"{times[k]:.2f}" for k in inside)]
    return [Table(columns, rows, "Table II on the published snapshots: W2 in the paper's units")]
