"""Two kernels on one V100: how far simulated co-runs are from measured ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jostle._report import Table
from studies.accelerator.tables import AcceleratorEvaluation, errors_of
from studies.accelerator.v100_kernels import KernelPair, simulated_pairs

WITHIN = 0.05


def evaluate_accelerator_v100(folder: Path) -> AcceleratorEvaluation:
    """Kernels of known launch shape, two at a time, on a V100. Raises UnreadableFile."""
    rows = simulated_pairs(folder)
    described = [row for row in rows if row.flag is None]
    tested = [row for row in described if not row.fitted]
    metrics = {
        **errors_of(
            np.array([row.predicted_seconds for row in tested], float),
            np.array([row.measured_seconds for row in tested]),
        ),
        "sequential_error_mean_ratio": float(
            np.mean([row.error(row.sequential_seconds) for row in tested])
        ),
        "constant_error_mean_ratio": float(
            np.mean([row.error(row.alone_seconds) for row in tested])
        ),
        "rows": float(len(rows)),
        "flagged_rows": float(len(rows) - len(described)),
        "fitted_rows": float(len(described) - len(tested)),
        "within_5_percent_rows": float(sum(row.error() <= WITHIN for row in described)),
        "within_5_percent_tested_rows": float(sum(row.error() <= WITHIN for row in tested)),
        "three_resources_within_5_percent_rows": float(
            sum(row.error(row.with_three_seconds) <= WITHIN for row in rows)
        ),
    }
    columns = ("co-run", "measured ms", "predicted ms", "error", "")
    return AcceleratorEvaluation(
        metrics, Table(columns, [_cells(row) for row in rows], right=range(1, 5))
    )


def _cells(row: KernelPair) -> tuple[str, ...]:
    predicted = ("–", "–")
    if row.predicted_seconds is not None:
        predicted = f"{row.predicted_seconds * 1e3:.1f}", f"{100 * row.error():.1f}%"
    return (
        f"{row.experiment}: {row.condition}"[:84],
        f"{row.measured_seconds * 1e3:.1f}",
        *predicted,
        row.flag or ("a capacity is read from it" if row.fitted else ""),
    )
