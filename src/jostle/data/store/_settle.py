"""What writers say of the same thing who could not see each other, settled when it is read.

The word of the earlier file stands, in the order of the files' names, whoever reads and however often; a
later value is passed over with a sentence, and null where none is left. Files never change, so that what was
passed over can still be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._name_columns import repeated

_SHOWN = 3


def rows_settled(
    run_id: Any, file_of_row: np.ndarray, files: Sequence[str], notes: list[str]
) -> np.ndarray | None:
    """Return (n,) false for a run whose run_id stands in an earlier file; None where there is none.

    A run_id that stands twice in one file is not settled: nobody else was in the way of its writer.
    """
    rows, first = repeated(run_id)
    again = file_of_row[rows] != file_of_row[first]
    if not again.any():
        return None
    rows, first = rows[again], first[again]
    for number in np.unique(file_of_row[rows]):
        mine = file_of_row[rows] == number
        named, earlier = int(rows[mine][0]), int(file_of_row[first[mine][0]])
        notes.append(
            f"{int(mine.sum())} runs of {files[number]} were passed over, because their run_ids stand in an "
            f"earlier file already, the first is {run_id[named].as_py()!r} in {files[earlier]}"
        )
    settled = np.ones(len(run_id), bool)
    settled[rows] = False
    return settled


def with_rows_for(
    features: pa.Table | None, key: str, names: set[str], notes: list[str]
) -> pa.Table | None:
    """Return the features with a row of nulls for each of these names that has none, sorted by name."""
    if features is None:
        return None
    lost = sorted(names - {*features.column(key).to_pylist(), "", None})
    if not lost:
        return features
    notes.append(
        f"{len(lost)} {key}s have no row in the {key} features, which are unknown for them: "
        f"{', '.join(map(repr, lost[:_SHOWN]))}{' …' if len(lost) > _SHOWN else ''}"
    )
    columns = {key: pa.array(lost, pa.string())}
    more = pa.table(
        [columns.get(field.name, pa.nulls(len(lost), field.type)) for field in features.schema],
        schema=features.schema,
    )
    every = pa.concat_tables([features, more])
    listed = every.column(key).to_pylist()
    # Sorted by Python, by code point, as all feature tables are.
    order = sorted(range(len(listed)), key=listed.__getitem__)
    return every.take(pa.array(order, pa.int64()))
