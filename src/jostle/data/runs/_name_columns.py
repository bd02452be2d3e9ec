"""Arrow columns of names to integer codes and back, without a Python step per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._colocations import sort_inside_rows
from jostle.data.tables.arrow_compute import pc


def encode_text(column: Any) -> tuple[np.ndarray, list[str]]:
    """Return (codes (n,) int32 into the names, -1 where null; the names that occur, sorted)."""
    unique = pc.unique(pc.drop_null(column))
    # Sorted by Python, not by Arrow: by code point, as Colocations does it.
    names = sorted(unique.to_pylist())
    codes = pc.index_in(column, value_set=pa.array(names, pa.string()))
    return filled(codes, -1).astype(np.int32), names


def number_text(column: Any) -> np.ndarray:
    """Return (n,) int64 codes by first appearance, -1 where null; fast even where all values differ."""
    encoded = pc.dictionary_encode(column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries()
        indices = pa.chunked_array([part.indices for part in encoded.chunks], pa.int32())
    else:
        indices = encoded.indices
    return filled(indices, -1).astype(np.int64)


def encode_lists(column: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return (offsets (n + 1,) int64, codes (m,) int32, sorted names) of a column of lists of text.

    A null list counts as empty, a null in a list as code -1.
    """
    counts = filled(pc.list_value_length(column), 0).astype(np.int64)
    codes, names = encode_text(pc.list_flatten(column))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), codes, names


def text_from_codes(codes: np.ndarray, names: Any) -> pa.Array:
    """Return (n,) text; null where the code is negative."""
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string())).cast(pa.string())


def lists_from_codes(
    offsets: np.ndarray, codes: np.ndarray, names: Any, null: np.ndarray | None = None
) -> pa.ListArray:
    """Return a column of lists of text, each sorted by name when the names are. null: (n,) bool."""
    values = text_from_codes(sort_inside_rows(codes, offsets), names)
    mask = None if null is None or not null.any() else pa.array(null)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


def sorted_inside_lists(column: Any) -> Any:
    """Return the column of lists of text with each list sorted; the column itself when they are."""
    offsets, codes, names = encode_lists(column)
    if sort_inside_rows(codes, offsets) is codes:
        return column
    return lists_from_codes(offsets, codes, names, flags(pc.is_null(column)))


def repeated(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows whose value stood in an earlier row, the first row of each such value)."""
    codes = number_text(column)
    first = np.full(int(codes.max(initial=-1)) + 1, len(codes))
    valid = np.flatnonzero(codes >= 0)
    np.minimum.at(first, codes[valid], valid)
    rows = valid[first[codes[valid]] != valid]
    return rows, first[codes[rows]]


def flags(mask: Any) -> np.ndarray:
    """Return (n,) bool from an Arrow or NumPy mask; null counts as false."""
    return mask if isinstance(mask, np.ndarray) else filled(mask, False).astype(bool)


def filled(column: Any, value: Any) -> np.ndarray:
    """Return (n,) NumPy array with nulls replaced by `value`."""
    column = pc.fill_null(column, value)
    if isinstance(column, pa.ChunkedArray):  # its to_numpy has no zero_copy_only
        return column.to_numpy()
    return column.to_numpy(zero_copy_only=False)


def numbers_of(table: pa.Table, column: str) -> np.ndarray:
    """Return (n,) float64, NaN where it is null or no number."""
    cells = table.column(column)
    if not (pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)):
        return np.full(len(cells), np.nan)
    return pc.fill_null(cells.cast(pa.float64()), np.nan).to_numpy()
