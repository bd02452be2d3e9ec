"""Feature tables as the towers' inputs: standardised numbers and category codes.

Numbers are z-scored, heavy-tailed ones (counts, sizes) through log1p first; a missing number is the mean,
with an indicator column where any is missing. Columns named `opcode_…` are counts of instructions: beside
their logarithms go the log of their total and, at half weight, the square roots of their shares (which
instructions a workload is made of matters beside how many). Of wide tables the first principal components
are kept, unscaled: what they leave out are directions in which names hardly differ. Text and boolean
columns become category codes, for which the towers learn tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

HEAVY_TAIL = 50.0  # times the median that the largest of a column is, whose log is taken then
# Numeric columns, past which principal components stand for them.
WIDEST = 96
OPCODE = "opcode_"


@dataclass(frozen=True)
class Features:
    """Features of names, as numbers and codes.

    numeric: (count, d) float32, standardised; category: (count, c) int32 codes, 0 = missing; category_sizes:
    number of codes per column, 0 included.
    """

    numeric: np.ndarray
    category: np.ndarray
    category_sizes: tuple[int, ...]

    @classmethod
    def none(cls, count: int) -> Features:
        """Make features of names that have none."""
        return cls(np.zeros((count, 0), np.float32), np.zeros((count, 0), np.int32), ())


def encode_features(names: tuple[str, ...], key: str, table: Any, weight: float = 1.0) -> Features:
    """Encode a table of features for the names of a vocabulary.

    names: the vocabulary; table: a pyarrow table with the column `key`, or None; names without a row have
    everything missing. weight: scale of the plain numeric columns.
    """
    if table is None or table.num_columns < 2:
        return Features.none(len(names))
    import pyarrow as pa

    place = {name: row for row, name in enumerate(table.column(key).to_pylist())}
    row = np.array([place.get(name, -1) for name in names])
    known, numeric, counts, codes, sizes = row >= 0, [], [], [], []
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.where(known, _numbers(column)[row], np.nan)
            if name.startswith(OPCODE):
                counts.append(np.nan_to_num(values))
            else:
                numeric.append(weight * _standardise(_tame(values)))
        elif name != key and (is_text or pa.types.is_boolean(column.type)):
            texts = column.to_pylist()
            levels = {t: i + 1 for i, t in enumerate(sorted({t for t in texts if t is not None}))}
            if len(levels) > 1:
                codes.append([levels.get(texts[r], 0) if r >= 0 else 0 for r in row])
                sizes.append(len(levels) + 1)
    if counts:
        matrix = np.column_stack(counts)
        total = matrix.sum(1, keepdims=True)
        share = np.sqrt(np.clip(matrix / np.maximum(total, 1.0), 0.0, None))
        logs = np.log1p(np.maximum(matrix, 0))
        for size, columns in ((1.0, logs), (0.5, share), (1.0, np.log1p(total))):
            numeric += [
                size * _standardise(np.where(known, column, np.nan)) for column in columns.T
            ]
    category = np.array(codes, np.int32).reshape(len(codes), len(names)).T
    whole = np.hstack([np.zeros((len(names), 0)), *numeric])
    return Features(_narrow(whole).astype(np.float32), category, tuple(sizes))


def _narrow(numeric: np.ndarray) -> np.ndarray:
    """Return (n, at most WIDEST): the table turned onto its principal components."""
    if numeric.shape[1] <= WIDEST:
        return numeric
    centred = numeric - numeric.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    main = directions[:, ::-1][:, :WIDEST]
    # An eigenvector has no sign of its own: its largest entry is made positive.
    largest = main[np.abs(main).argmax(0), np.arange(WIDEST)]
    return centred @ (main * np.sign(largest))


def _numbers(column: Any) -> np.ndarray:
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _tame(values: np.ndarray) -> np.ndarray:
    """log1p of a non-negative column whose largest value dwarfs its typical one."""
    known = values[np.isfinite(values) & (values != 0)]
    if (len(known) and known.min() > 0 and known.max() > HEAVY_TAIL * np.median(known)) or (
        len(known) and known.min() > 1e3
    ):
        return np.log1p(values)
    return values


def _standardise(values: np.ndarray) -> np.ndarray:
    """Make (n, 0 to 2) of (n,): z-scores clipped to 6, an indicator if some are missing; not of constants."""
    missing = ~np.isfinite(values)
    known = values[~missing]
    columns = []
    if len(known) and known.std() > 1e-12 * max(1.0, float(np.abs(known).max())):
        z = np.clip((values - known.mean()) / known.std(), -6.0, 6.0)
        columns.append(np.where(missing, 0.0, z))
    if 0 < missing.sum() < len(values):
        columns.append(missing.astype(float) - missing.mean())
    return np.column_stack(columns) if columns else np.zeros((len(values), 0))
