"""Cells of a log: node lists, rules for workloads, and hours that a clock has twice."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.moments import NO_TIME
from jostle.errors import UnknownName, UsageError

_MOST_NODES = 100_000


def in_one_pass(
    starts: Sequence[np.ndarray], ends: Sequence[np.ndarray], took: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return (start, end, whether they are not as far apart as the job took, whether another pass would do as
    well) of n jobs. starts, ends: in the first and the second pass of an hour that the clock has twice, as
    `times_of` gives them. took: microseconds, NaN where it is not known."""
    is_both = (starts[0] != NO_TIME) & (ends[0] != NO_TIME)
    is_known = is_both & np.isfinite(took)
    start, end = starts[0].copy(), ends[0].copy()
    is_found, unsure = np.zeros(len(took), bool), np.zeros(len(took), bool)
    for begin, until in ((0, 0), (0, 1), (1, 1)):
        length = ends[until].astype(float) - starts[begin]
        fits = np.where(is_known, np.abs(length - took) <= 1.5e6, is_both & (length > 0))
        is_other = (starts[begin] != start) | (ends[until] != end)
        unsure |= is_found & fits & is_other
        start, end = (
            np.where(fits & ~is_found, one, now)
            for one, now in ((starts[begin], start), (ends[until], end))
        )
        is_found |= fits
    # One that still runs has no end.
    unsure |= (ends[0] == NO_TIME) & (starts[0] != starts[1])
    return start, end, is_known & ~is_found, unsure


def nodes_of(text: str) -> tuple[str, ...]:
    """Return the nodes of a list such as `rack[1-2]n[01-03,07],gpu1`; () where it is none. Raises
    ValueError."""
    names: list[str] = []
    text = re.sub(r"/\d+(\*\d+)?(?=[+,\s:]|$)|\b\d+\*", "", text)  # slots of PBS and LSF
    for part in re.split(r"[,+\s](?![^\[]*\])|:(?=[A-Za-z])", text.replace("None assigned", "")):
        pieces = [_ranges(piece) for piece in re.split(r"(\[[^\]]*\])", part) if piece]
        if np.prod([len(piece) for piece in pieces], dtype=float) + len(names) > _MOST_NODES:
            raise ValueError(f"over {_MOST_NODES} nodes")
        names += ["".join(one).strip() for one in product(*pieces)] if pieces else []
    return tuple(name for name in names if name)


def _ranges(piece: str) -> list[str]:
    if not piece.startswith("["):
        if "[" in piece or "]" in piece:
            raise ValueError("brackets that do not close")
        return [piece]
    numbers: list[str] = []
    for part in piece[1:-1].split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise ValueError(f"{part!r} is not a number")
        if int(last or first) - int(first) > _MOST_NODES:
            raise ValueError(f"over {_MOST_NODES} nodes")
        width = len(first) if first.startswith("0") else 0
        numbers += [f"{n:0{width}d}" for n in range(int(first), int(last or first) + 1)]
    return numbers


class WorkloadRule:
    """Rule for the name of a row's workload: a column, or text with columns in braces, each with a regular
    expression if need be, of which the first group counts: `{User}/{JobName:^[a-z]+}`. not_matched: how many
    rows an expression did not fit, whose cells count whole. Raises UsageError."""

    def __init__(self, rule: str) -> None:
        self.not_matched = 0
        try:
            self._parts = list(string.Formatter().parse(rule if "{" in rule else f"{{{rule}}}"))
            self._patterns = [re.compile(spec) if spec else None for *_, spec, _ in self._parts]
        except (ValueError, re.error) as error:
            raise UsageError(
                f"the rule {rule!r} of workloads cannot be read: {error}",
                fix="A column, or such as {user}/{name:^[a-z]+}.",
            ) from None
        self.columns = tuple(field for _, field, *_ in self._parts if field)
        if not self.columns:
            raise UsageError(f"the rule {rule!r} of workloads names no column")

    def names(self, cells: Mapping[str, Any], where: str, empty: str = "no name") -> Any:
        """Return (n,) text. cells: columns by name, in any case. empty: of blank cells. Raises
        UnknownName."""
        known = {name.lower(): column for name, column in cells.items()}
        pieces: list[Any] = []
        for (literal, field, *_), pattern in zip(self._parts, self._patterns, strict=True):
            if literal:
                pieces.append(pa.scalar(literal))
            if field is None:
                continue
            if field.lower() not in known:
                raise UnknownName("`workload` column", field, list(cells), where=where)
            pieces.append(self._cut(known[field.lower()], pattern))
        whole = pc.binary_join_element_wise(
            *pieces, "", null_handling="replace", null_replacement=""
        )
        whole = pc.utf8_trim_whitespace(whole)
        return pc.if_else(pc.equal(whole, ""), empty, whole) if empty else whole

    def _cut(self, column: Any, pattern: re.Pattern[str] | None) -> Any:
        if pattern is None:
            return column

        def read(cell: str | None) -> tuple[str, bool]:
            match = pattern.search(cell or "")
            if match is None:
                return cell or "", False
            return (match[1] or "" if pattern.groups else match[0]), True

        pairs = by_value(column, read)
        self.not_matched += sum(not good for _, good in pairs)
        return pa.array([name for name, _ in pairs], pa.string())


def by_value(column: Any, read: Callable[[str | None], Any]) -> list[Any]:
    """Return what `read` gives of each cell, asked once for each value."""
    encoded = pc.dictionary_encode(column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = [read(value) for value in encoded.dictionary.to_pylist()]
    nothing = read(None)
    return [nothing if code is None else values[code] for code in encoded.indices.to_pylist()]
