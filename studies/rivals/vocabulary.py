"""The names that a rival knows, with their features as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jostle.data import Colocations
    from jostle.learn import Prepared


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """All names that runs, validation or feature tables mention, sorted, with their features.

    workload_matrix (w, d), platform_matrix (p, e): see feature_matrix.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workload_matrix: np.ndarray
    platform_matrix: np.ndarray

    @classmethod
    def of(cls, prepared: Prepared) -> Vocabulary:
        runs = prepared.runs
        parts = (runs.colocations, prepared.validation.colocations)
        workloads = set().union(*(part.workload_names for part in parts))
        platforms = set().union(*(part.platform_names for part in parts))
        workload_rows, workload_table = runs.features_of("workload")
        platform_rows, platform_table = runs.features_of("platform")
        workload_names = tuple(sorted(workloads.union(workload_rows)))
        platform_names = tuple(sorted(platforms.union(platform_rows)))
        return cls(
            workload_names,
            platform_names,
            feature_matrix(workload_names, workload_rows, workload_table),
            feature_matrix(platform_names, platform_rows, platform_table),
        )

    def codes(self, colocations: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(workload, platform, co-runner) codes; -1 for a name it does not have."""
        return colocations.recode(self.workload_names, self.platform_names)


def feature_matrix(names: tuple[str, ...], rows: tuple[str, ...], table: Any) -> np.ndarray:
    """(names, d) float64: numbers z-scored (through log1p where not negative and past 1000), text and
    boolean columns one-hot, missing at the mean; constants vanish. rows: names of the table's rows."""
    if table is None:
        return np.zeros((len(names), 0))
    import pyarrow as pa

    position = {name: row for row, name in enumerate(rows)}
    row = np.array([position.get(name, -1) for name in names])
    columns = []
    for column in table.columns:
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
            values = np.where(row < 0, np.nan, values[row])
            known = values[np.isfinite(values)]
            if len(known) and known.min() >= 0 and known.max() > 1000:
                values = np.log1p(values)
            columns.append(values)
            continue
        texts = column.to_pylist()
        here = [texts[r] if r >= 0 else None for r in row]
        levels = sorted({str(text) for text in here if text is not None})
        if 1 < len(levels) <= len(names) // 2:
            columns += [np.array([float(str(t) == level) for t in here]) for level in levels]
    scaled = []
    for values in columns:
        known = values[np.isfinite(values)]
        if len(known) and known.std() > 1e-9:
            scaled.append(np.nan_to_num((values - known.mean()) / known.std(), posinf=0, neginf=0))
    return np.column_stack(scaled) if scaled else np.zeros((len(names), 0))
