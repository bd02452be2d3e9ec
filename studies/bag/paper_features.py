"""Table IV of Moolchandani et al.: their eleven features, and what stands for each in a data set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._report import Table

if TYPE_CHECKING:
    from jostle.bag import FittedBag

# (the paper's name, what it is, columns of ours)
PAPER_FEATURES = (
    ("CPU_time", "seconds alone on the CPU", r"cpu_time"),
    ("GPU_time", "seconds alone where it is asked about", r"solo_time"),
    ("SSE", "share of vector instructions", r"mix_vector_\w+"),
    ("ALU", "share of integer arithmetic", r"mix_(integer|int\d*)_\w+"),
    ("MEM", "share of loads and stores", r"mix_(memory(_read|_write)?|load_store)_\w+"),
    ("FP", "share of floating point", r"mix_(float|fp\d+)_\w+"),
    ("Stack", "share of the stack's traffic", r"mix_stack_\w+"),
    ("String", "share of string operations", r"mix_string_\w+"),
    ("Shift", "share of shifts and products", r"mix_shift_multiply_\w+"),
    ("Control", "share of branches and calls", r"mix_control_\w+"),
    ("Fairness", "least over greatest slowdown of a bag on the CPU", r"fairness"),
)


def paper_features(fitted: FittedBag) -> list[dict[str, Any]]:
    """A row for each: number, feature, description, columns, and over them the smallest and largest value
    (seconds for times, None where there is no column); last all that the data has besides."""
    assert fitted.trees is not None
    described, usual = fitted.trees.described, float(fitted.weighed.usual_seconds)
    values = {name: described.numbers[:, at] for at, name in enumerate(described.columns)}
    asked = [place for place in range(len(described.log_solo)) if place != described.cpu]
    values["solo_time"] = usual * np.exp(described.log_solo[asked]).ravel()
    if described.cpu >= 0:
        values["cpu_time"] = usual * np.exp(described.log_solo[described.cpu])
    if described.has_core_share:
        values["core_share"] = described.core_share[asked].ravel()
    if described.has_fairness:
        values["fairness"] = described.fairness
    rows, taken = [], set()
    for number, (name, what, pattern) in enumerate(PAPER_FEATURES, 1):
        columns = [column for column in values if re.fullmatch(pattern, column)]
        taken.update(columns)
        rows.append({"number": number, "feature": name, "description": what})
        rows[-1] |= _range(columns, [values[column] for column in columns])
    rest = [column for column in values if column not in taken]
    return [*rows, {"number": None, "feature": "besides", "description": "", **_range(rest, [])}]


def _range(columns: list[str], values: list[np.ndarray]) -> dict[str, Any]:
    known = np.concatenate(values) if values else np.zeros(0)
    known = known[np.isfinite(known)]
    ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
    return {"columns": columns, "smallest": ends[0], "largest": ends[1]}


def features_table(rows: list[dict[str, Any]]) -> Table:
    """For people."""
    cells = []
    for row in rows:
        ends = [row["smallest"], row["largest"]]
        span = "" if ends[0] is None else f"{ends[0]:.3g} to {ends[1]:.3g}"
        columns = row["columns"]
        shown = ", ".join(columns) if len(columns) <= 3 else f"{len(columns)} columns"
        number = "" if row["number"] is None else str(row["number"])
        cells.append([number, row["feature"], row["description"], shown or "none", span])
    head = ["Table IV", "feature", "what it is", "here", "values"]
    return Table(head, cells, (0,))
