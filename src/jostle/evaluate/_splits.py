"""Which runs a fit may see and which test it: drawn with a seed, or as a file says.

Source: Pitot (MLSys 2025), Sec. 4. Of the observed runs 80% are trained on and 20% held for validation
and calibration.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, NotEnoughRuns, UnreadableFile, UsageError

if TYPE_CHECKING:
    from jostle.runs import Runs


@dataclass(frozen=True)
class Split:
    """Indices into the runs: to fit, to validate, to calibrate, to test; by: how they were drawn."""

    train: np.ndarray
    validation: np.ndarray
    calibration: np.ndarray
    test: np.ndarray
    by: str


def observed_split(runs: Runs, observed: float, seed: int, by: str = "window") -> Split:
    """The paper's split: `observed` of the runs, 80% of them to train on; the rest is the test."""
    from jostle.runs import split_rows

    if not 0 < observed < 1:
        raise UsageError(f"observed {observed} is not between 0 and 1")
    shares = (0.8 * observed, 0.12 * observed, 0.08 * observed, 1 - observed)
    parts = split_rows(runs, shares, seed, by=by)
    return _checked(Split(*parts, by=by), runs)


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
    return _checked(split, runs)


def _published_order(runs: Runs) -> np.ndarray:
    """Row order of the published files: the dataset's own, or by `source_row` where it is kept."""
    if "source_row" not in runs.table.column_names:
        return np.arange(len(runs))
    rows = np.asarray(runs.table.column("source_row").to_numpy(), np.float64)
    files = np.asarray(runs.table.column("source_file").to_pylist(), object).astype(str)
    return np.lexsort([rows, files])


def _checked(split: Split, runs: Runs) -> Split:
    ok = runs.is_ok
    kept = {
        name: index[ok[index]]
        for name, index in vars(split).items()
        if isinstance(index, np.ndarray)
    }
    empty = [name for name, index in kept.items() if len(index) == 0]
    if empty:
        raise NotEnoughRuns(
            f"the {' and '.join(empty)} part of the split is empty ({len(runs)} runs in all)",
            fix="Observe a larger share, or measure more runs.",
        )
    return Split(**kept, by=split.by)
