"""A split as a file of row numbers says, in the order of the files that Pitot published."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, UnreadableFile
from studies.splits import Split, checked_split

if TYPE_CHECKING:
    from jostle.data import Runs


def file_split(runs: Runs, path: str | os.PathLike[str], seed: int) -> Split:
    """A split from an .npz file: row numbers `mf_train`, `mf_val`, `mf_test` among the runs alone and
    `if2_…` (`if3_…`) among those with one (two) co-runners, in the order of the published files.

    The validation rows are divided, with the seed, into a part that picks checkpoint and candidate and a
    part that calibrates. Raises UnreadableFile and BadData.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"not a readable .npz file: {error}", where=str(path)) from None
    degree = runs.colocations.number_of_corunners
    order = _published_order(runs)
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "calibrate": [], "test": []}
    random = np.random.default_rng(seed)
    for prefix, corunners in (("mf", 0), *((f"if{k + 1}", k) for k in range(1, 16))):
        if f"{prefix}_train" not in given:
            continue
        inside = order[degree[order] == corunners]
        for part in ("train", "val", "test"):
            name = f"{prefix}_{part}"
            if name not in given:
                raise BadData(f"there is no {name!r}", where=str(path))
            rows = given[name]
            if len(rows) and (rows.min() < 0 or rows.max() >= len(inside)):
                raise BadData(
                    f"{name} names row {int(rows.max())}, but the dataset has {len(inside)} runs "
                    f"with {corunners} co-runners",
                    where=str(path),
                )
            index = inside[rows]
            if part == "val":
                index = random.permutation(index)
                cut = round(0.6 * len(index))
                parts["calibrate"].append(np.sort(index[cut:]))
                index = np.sort(index[:cut])
            parts[part].append(index)
    if not parts["train"]:
        raise BadData("there is no 'mf_train'", where=str(path), fix="See the documentation.")
    merged = {k: np.sort(np.concatenate(v)) for k, v in parts.items()}
    split = Split(merged["train"], merged["val"], merged["calibrate"], merged["test"], by="row")
    return checked_split(split, runs)


def _published_order(runs: Runs) -> np.ndarray:
    """Row order of the published files: the dataset's own, or by `source_row` where it is kept."""
    if "source_row" not in runs.table.column_names:
        return np.arange(len(runs))
    rows = np.asarray(runs.table.column("source_row").to_numpy(), np.float64)
    files = np.asarray(runs.table.column("source_file").to_pylist(), object).astype(str)
    return np.lexsort([rows, files])
