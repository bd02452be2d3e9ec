"""Tables that were imported otherwise than they were meant: what gives it away, and what to do.

Nothing here is an error: a table of runs alone with a column of notes is as good as any. Each finding is a
sentence, for the import and for the summary of a dataset.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.runs._runs import Runs
from jostle.data.runs._schema import COLUMNS, covariates_of
from jostle.data.tables.arrow_compute import pc


def medians(codes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (distinct codes, median of the values of each)."""
    if not len(codes):
        return np.zeros(0, np.int64), np.zeros(0)
    order = np.lexsort((values, codes))
    distinct, start, count = np.unique(codes[order], return_index=True, return_counts=True)
    ordered = values[order]
    low, high = start + (count - 1) // 2, start + count // 2
    return distinct, (ordered[low] + ordered[high]) / 2


def polished(row: np.ndarray, column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return what is left of the values when medians by row and column are taken away in turn (Tukey's
    median polish), which a few wild values do not move."""
    left = values.copy()
    for _ in range(4):
        for codes in (row, column):
            distinct, median = medians(codes, left)
            left -= median[np.searchsorted(distinct, codes)]
    return left


SEPARATORS = (";", ",", "|", "+", "&", "/", ":", " ")
_FEWEST = 2  # names that a column must hold before it can look like one of co-runners
_ALIKE = 0.8  # of its names that are workloads
_NAMED_LIKE = re.compile(
    r"co-?_?run|co-?_?locat|beside|neighbou?r|interfer|adversar|background", re.I
)
# A unit off is a factor of 60, a thousand or a million, give or take what co-runners do.
_UNIT_FACTORS = (1e3, 1e6, 1e9)
_GIVE = 2.5
_MANY = 20
# A free column of few texts, by which runs of one set differ by so much, is no note.
_MOST_VALUES, _TELLS, _MOST_ROWS = 8, 1.2, 20_000
_OWN = ("estimator", "metric", "node")  # that collection and logs bring
_SHUFFLES = 199  # of the texts within each set, none of which may tell as much


def doubts(runs: Runs) -> tuple[str, ...]:
    """Return a sentence for each sign that names or units are not what they were meant to be."""
    sentences = [*_columns_of_corunners(runs), *_separators(runs), *_units(runs), *_names(runs)]
    return (*sentences, *_columns_that_tell(runs))


def _columns_of_corunners(runs: Runs) -> list[str]:
    """Free columns of text that hold names of workloads."""
    workloads = set(pc.unique(runs.table.column("workload")).to_pylist())
    sentences = []
    for name in runs.table.column_names:
        column = runs.table.column(name)
        if name in COLUMNS or not _is_text(column.type) or len(workloads) < _FEWEST:
            continue
        values = [v for v in pc.unique(_flat(column)).to_pylist() if v and v.strip()]
        names, separator = _best_split(values, workloads)
        known = len(names & workloads)
        alike = bool(names) and known >= _FEWEST and known >= _ALIKE * len(names)
        if alike or (known and _NAMED_LIKE.search(name)):
            parted = f", parted by {separator!r}" if separator else ""
            sentences.append(
                f"the column {name!r} holds names of workloads ({known} of its {len(names)}{parted}) and was "
                "not taken as co-runners: all these runs count as without them. If they are, import the "
                f"table again with {name!r} as `corunners`"
                + (f" and the `separator` {separator!r}" if separator and separator != ";" else "")
            )
    return sentences


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _flat(column: Any) -> Any:
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    return pc.list_flatten(column) if is_list else column


def _best_split(values: list[str], workloads: set[str]) -> tuple[set[str], str]:
    """Return (the names in the cells, what parts them): as they are, or by what makes most of them
    workloads."""
    best: tuple[float, set[str], str] = (-1.0, set(), "")
    for separator in ("", *SEPARATORS):
        names = _split(values, separator)
        share = len(names & workloads) / len(names) if names else 0.0
        if share > best[0] + 1e-9:
            best = share, names, separator
    return best[1], best[2]


def _split(values: list[str], separator: str) -> set[str]:
    pieces = (v.split(separator) if separator else [v] for v in values)
    return {piece.strip() for cell in pieces for piece in cell if piece.strip()}


def _separators(runs: Runs) -> list[str]:
    """Return names of co-runners that are several workloads in one."""
    workloads = set(pc.unique(runs.table.column("workload")).to_pylist())
    beside = set(pc.unique(pc.list_flatten(runs.table.column("corunners"))).to_pylist())
    strange = sorted(beside - workloads)
    counted: Counter[str] = Counter()
    example: dict[str, str] = {}
    for name in strange:
        for separator in SEPARATORS:
            pieces = [piece.strip() for piece in name.split(separator)]
            if len(pieces) > 1 and all(piece in workloads for piece in pieces):
                counted[separator] += 1
                example.setdefault(separator, name)
                break
    return [
        f"{count} co-runners are called like several workloads in one, such as {example[separator]!r:.80}: "
        f"were they parted by {separator!r}? Import the table again into a new folder, "
        "with that `separator`"
        for separator, count in counted.most_common(1)
    ]


def units_off(runs: Runs) -> np.ndarray:
    """Return (n,) what to multiply each runtime by for it to be in the unit of the others of its workload and
    platform: 1 but for those about a thousand, a million or a billion times off, unless they are the most."""
    factor = np.ones(len(runs))
    at = np.flatnonzero(runs.is_ok)
    if not len(at):
        return factor
    ok = runs.take(at)
    c, log_seconds = ok.colocations, np.log(ok.runtime_seconds)
    base = len(c.workload_names)
    key = c.platform.astype(np.int64) * base + c.workload
    cells, median = medians(key, log_seconds)
    usual = median - polished(cells // base, cells % base, median)
    off = log_seconds - usual[np.searchsorted(cells, key)]
    for value in _UNIT_FACTORS:
        near = np.abs(np.abs(off) - math.log(value)) < math.log(_GIVE)
        if near.sum() < 0.5 * len(ok):
            factor[at[near]] = np.where(off[near] > 0, 1 / value, value)
    return factor


def _units(runs: Runs) -> list[str]:
    """Return runtimes a thousand, a million or a billion times off what their workload and platform
    suggest."""
    factor, sentences = units_off(runs), []
    for value in _UNIT_FACTORS:
        near = np.flatnonzero(np.isclose(np.maximum(factor, 1 / factor), value))
        if len(near):
            first = runs.table.column("run_id")[int(near[0])].as_py()
            sentences.append(
                f"{len(near)} runtimes are about {value:g} times off the others of their workload and "
                f"platform, the first is {first!r}: are they in another unit? Import them apart, each part "
                "with its own `unit`, or set them aside"
            )
    ok = runs.ok()
    if not len(ok):
        return sentences
    c, log_seconds = ok.colocations, np.log(ok.runtime_seconds)
    effect = np.array(
        [np.median(log_seconds[c.platform == p]) for p in range(len(c.platform_names))]
    )
    for place in np.flatnonzero(
        np.abs(effect - np.median(effect)) > math.log(_UNIT_FACTORS[0] / _GIVE)
    ):
        if len(effect) > 2:
            times = math.exp(abs(effect[place] - float(np.median(effect))))
            sentences.append(
                f"runtimes on {c.platform_names[place]!r} are {times:.3g} times off those on others: are "
                "they in another unit? Import its rows apart, with their own `unit`"
            )
    return sentences


def _names(runs: Runs) -> list[str]:
    """More names than measurements of them."""
    workloads = pc.unique(runs.table.column("workload"))
    n, alone = len(runs), len(workloads)
    sentences = []
    if n >= _MANY and alone > 0.9 * n:
        sentences.append(
            f"{alone} workloads in {n} runs: nearly every run has one of its own, such as "
            f"{workloads[0].as_py()!r:.80}. Is the right column the `workload`, and does its name hold what "
            "changes from run to run?"
        )
    beside = set(pc.unique(pc.list_flatten(runs.table.column("corunners"))).to_pylist())
    never = sorted(beside - set(workloads.to_pylist()))
    if len(never) >= max(3, alone):
        sentences.append(
            f"{len(never)} names stand only beside others and were never measured, such as {never[0]!r:.80}, "
            f"and {alone} were: were names parted by another `separator`, or spelled otherwise?"
        )
    return sentences


def _columns_that_tell(runs: Runs) -> list[str]:
    """Free columns of a few texts by which runs of one set differ: how a device was shared, a version."""
    ok = runs.ok()
    ok = ok.take(np.arange(min(len(ok), _MOST_ROWS)))
    free = set(ok.table.column_names) - {*COLUMNS, *_OWN, *covariates_of(ok.table.schema)}
    sentences = []
    for name in sorted(free):
        column = ok.table.column(name)
        if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
            continue
        values = pc.unique(column.drop_null()).to_pylist()
        if not 2 <= len(values) <= _MOST_VALUES:
            continue
        place = {value: at for at, value in enumerate(values)}
        code = np.array([place.get(value, -1) for value in column.to_pylist()])
        known = code >= 0
        cell = np.unique(ok.colocations.group[known], return_inverse=True)[1].reshape(-1)
        level = _level_of_values(cell, code[known], np.log(ok.runtime_seconds[known]), len(values))
        if level is None:
            continue
        least, most = int(np.nanargmin(level)), int(np.nanargmax(level))
        sentences.append(
            f"runs of the same workloads on the same platform take {np.exp(level[most] - level[least]):.2g} "
            f"times as long where {name!r} is {values[most]!r:.40} as where it is {values[least]!r:.40}, and "
            f"count as repeats: make {name!r} a part of the platform's name, or a covariate"
        )
    return sentences


def _level_of_values(
    cell: np.ndarray, code: np.ndarray, log_seconds: np.ndarray, size: int
) -> np.ndarray | None:
    """Return (size,) mean log seconds of each value beyond the mean of the cell, NaN where it never stands in
    a cell beside another value; None where values tell no more than they would if shuffled."""
    counts = np.zeros((int(cell.max(initial=-1)) + 1, size))
    np.add.at(counts, (cell, code), 1)
    mixed = ((counts > 0).sum(1) > 1)[cell]
    if mixed.sum() < _MANY:
        return None
    cell, code, log_seconds = cell[mixed], code[mixed], log_seconds[mixed]
    number = np.bincount(cell)
    left = log_seconds - (np.bincount(cell, log_seconds) / np.maximum(number, 1))[cell]
    random, order = np.random.default_rng(0), np.argsort(cell, kind="stable")

    def told(value: np.ndarray) -> tuple[np.ndarray, float]:
        n = np.bincount(value, minlength=size)
        level = np.bincount(value, left, size) / np.where(n, n, np.nan)
        return level, float(np.nansum(n * level**2))

    level, most = told(code)
    if np.nanmax(level) - np.nanmin(level) < np.log(_TELLS):
        return None
    for _ in range(_SHUFFLES):
        shuffled = np.empty_like(code)
        shuffled[order] = code[np.lexsort((random.random(len(cell)), cell))]
        if told(shuffled)[1] >= most:
            return None
    return level
