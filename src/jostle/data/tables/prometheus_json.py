"""The JSON of Prometheus, of which series are read.

https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries: a `matrix` of series, each with its
labels and pairs [seconds since 1970, "value"]. A value may be "NaN" (a stale series, or 0 / 0) or infinite:
nothing was read then.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.untrusted import printable
from jostle.data.tables._read_table import read_text
from jostle.data.tables.cells import float_of
from jostle.errors import BadData, UnreadableFile

RECORD = "Record it with: curl 'http://HOST:9090/api/v1/query_range?query=…&start=…&end=…&step=15s'"
Matrix = list[tuple[str, dict[str, str], list[Any]]]
"""(name, labels, pairs) of each series; name: of those without one."""


def read_matrix(
    document: Any, name: str, where: str, kinds: Collection[str] = ("matrix",)
) -> Matrix:
    """Return the series of one answer, or of a list of answers. kinds: of answers that are taken; in a
    `vector` each has one pair. Raises BadData for what is none."""
    if isinstance(document, list):
        return [one for part in document for one in read_matrix(part, name, where, kinds)]
    if not isinstance(document, Mapping):
        raise BadData("JSON, but not an answer of Prometheus", where=where, fix=RECORD)
    if document.get("status") == "error":
        reason = printable(str(document.get("error", "")))[:300]
        raise BadData(f"Prometheus answered with an error: {reason}", where=where)
    data = document.get("data", document)
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    if kind not in kinds or not isinstance(data.get("result"), list):
        what = f"a {printable(str(kind))[:40]}" if kind else "no result"
        raise BadData(f"it holds {what}, not a matrix of series over time", where=where, fix=RECORD)
    matrix: Matrix = []
    for number, one in enumerate(data["result"]):
        series = one if isinstance(one, Mapping) else {}
        labels = series.get("metric")
        pairs = [series.get("value")] if kind == "vector" else series.get("values", [])
        if not isinstance(labels, Mapping) or not isinstance(pairs, list):
            raise BadData(f"series {number} has no metric or no values", where=where)
        own = {str(key): printable(str(value)) for key, value in labels.items()}
        matrix.append((own.pop("__name__", name), own, pairs))
    return matrix


def read_answers(path: Path, kinds: Collection[str] = ("matrix",)) -> Matrix:
    """Read the series of a file; those without a name are named after the file. Raises UnreadableFile,
    BadData."""
    text = read_text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        text = f"cannot be read as JSON: {error}"
        raise UnreadableFile(text, where=str(path), fix=RECORD) from None
    return read_matrix(document, plain_name(path.stem), str(path), kinds)


def points_of(pairs: Sequence[Any], where: str) -> np.ndarray:
    """Return (n, 2) seconds and values; NaN for a value that is not a finite number."""
    points = np.empty((len(pairs), 2))
    for row, pair in enumerate(pairs):
        try:
            points[row] = float_of(pair[0]), float_of(pair[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            text = f'value {row} is not [seconds, "number"]'
            raise BadData(text, where=where, fix=RECORD) from None
        if not math.isfinite(points[row, 0]):
            raise BadData(f"the time of value {row} is not finite", where=where)
    points[~np.isfinite(points[:, 1]), 1] = np.nan
    return points


def plain_name(name: str) -> str:
    """Rewrite the name of a series in letters that every file and table takes."""
    return re.sub(r"[^A-Za-z0-9_:.+]+", "_", name).strip("_") or "value"
