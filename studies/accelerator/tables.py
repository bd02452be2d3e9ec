"""What every evaluation of the accelerator has in common: measurements read, errors, and what it returns."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle._report import Table
from jostle.errors import UnreadableFile


@dataclass(frozen=True, eq=False)
class AcceleratorEvaluation:
    """metrics: names with units. table: for people. drawn: what pictures are made of."""

    metrics: dict[str, float]
    table: Table
    drawn: Any = None


def errors_of(predicted: np.ndarray, measured: np.ndarray, prefix: str = "") -> dict[str, float]:
    """Mean, 95th percentile and largest of |predicted - measured| / measured."""
    off = np.abs(predicted - measured) / measured
    return {
        f"{prefix}error_mean_ratio": float(off.mean()),
        f"{prefix}error_p95_ratio": float(np.percentile(off, 95)),
        f"{prefix}error_max_ratio": float(off.max()),
    }


def error_table(models: Iterable[tuple[str, dict[str, float]]], title: str) -> Table:
    """A row for each (label, errors_of it). title: what the labels are."""
    rows = [(label, *(f"{100 * v:.2f}%" for v in errors.values())) for label, errors in models]
    return Table((title, "mean", "p95", "max"), rows, right=range(1, 4))


def read_measurements(path: Path, columns: Iterable[str], title: str) -> list[dict[str, str]]:
    """The rows of a CSV file that must have these columns. Raises UnreadableFile."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    if not rows or set(columns) - set(rows[0]):
        raise UnreadableFile(f"not the table of {title}", where=str(path))
    return rows
