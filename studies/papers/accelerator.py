"""Chen et al.: Prophet: precise QoS prediction on non-preemptive accelerators (ASPLOS 2017).

Its Figures 12 to 14: the error of the predicted degradation of a pair under MPS (Eq. 10). Its traces were
never published; pairs of kernels recorded on an H200 under MPS stand for them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from studies.accelerator.recorded_gpus import (
    BOUNDED,
    FOLDS,
    MOST,
    RECORDED,
    SIMULATOR,
    Answered,
    answers,
    simulated_slowdowns,
)
from studies.one_model.campaigns import read_campaign

PRINTED = {  # {pairs: Prophet, what it is compared with}
    "all 77": ("5.47%", "–"),
    "compute-intensive": ("5.9%", "sequential model up to 13100%"),
    "PCIe-intensive": ("5.1%", "bubble model 50.8%"),
    "low contention": ("5.5%", "–"),
}
LEAST = 0.1  # degradation: the error of Eq. 10 has no meaning near none
SEQUENTIAL = "sequential model"


def tables(seed: int, progress: Progress) -> list[Table]:
    """Answer every pair from runs of other sets, or from traces of each alone."""
    (gpu,) = (each for each in RECORDED if each.campaign == "kernels")
    data = read_campaign(gpu.campaign, seed)
    c = data.runs.colocations
    under_mps = c.platform == next(n for n, p in enumerate(c.platform_names) if p.endswith("mps"))
    data = replace(data, runs=data.runs.take(under_mps & (c.number_of_corunners <= 1)))
    in_turn = simulated_slowdowns(replace(gpu, sharing={"mps": "sequential"}), data)
    parts = []
    for part in answers(data, FOLDS, gpu.parts, simulated_slowdowns(gpu, data), seed):
        progress(len(parts), gpu.parts, float("nan"))
        who = [cell.split(" ") for cell in part.cell]
        part.predicted[SEQUENTIAL] = part.solo * [in_turn(w, p, others) for w, p, *others in who]
        parts.append(part)
    found = Answered.joined(parts)
    real = found.seconds / found.solo - 1
    apart = real >= LEAST
    rows = []
    for who, seconds in found.predicted.items():
        if who != BOUNDED:
            off = np.minimum(np.abs(seconds / found.seconds - 1), MOST)
            degradation = np.abs((seconds / found.solo - 1 - real)[apart] / real[apart])
            values = (off.mean(), np.median(off), degradation.mean(), np.median(degradation))
            rows.append([who, *map(percent, map(float, values))])
    title = (
        f"{len(real)} runs in pairs on an H200 under MPS, {apart.sum()} slowed by a tenth or more"
    )
    columns = ["by", "time, mean error", "median", "degradation, mean error", "median"]
    assert {SIMULATOR, SEQUENTIAL} <= set(found.predicted)
    return [
        Table(
            ["printed for pairs", "Prophet", "beside it"],
            [[pairs, *cells] for pairs, cells in PRINTED.items()],
            "Figures 12 to 14: error of the degradation, 77 pairs on a K40",
        ),
        Table(columns, rows, title),
    ]
