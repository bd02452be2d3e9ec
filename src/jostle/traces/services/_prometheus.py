"""Answers of Prometheus to range queries: its JSON, from a file or over HTTP.

https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries: a `matrix` of series, each with its
labels and pairs [seconds since 1970, "value"]. A value may be "NaN" (a stale series, or 0 / 0) or infinite:
nothing was read then.
"""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle._untrusted import printable
from jostle.errors import BadData, NotPermitted, UnreadableFile, UsageError
from jostle.traces.services._series import Kind, Series, usual_kind

_INSTANCE = ("pod", "instance")  # labels that tell instances apart, the first that all series have
_SPLIT = ("le", "quantile")  # series that differ in these are never added up
_POINTS = 10_000  # of a series in one answer: Prometheus gives 11,000 at most
_MOST_BYTES = 1 << 30
_RECORD = (
    "Record it with: curl 'http://HOST:9090/api/v1/query_range?query=…&start=…&end=…&step=15s'"
)


@dataclass(frozen=True)
class Reading:
    """How series are understood. by: labels that tell instances apart, None for `pod` or `instance` where all
    have it. per: labels of which each value is a quantity of its own. kinds: of names, where their endings
    do not say. metrics: only these, all where empty."""

    by: tuple[str, ...] | None = None
    per: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] | None = None
    metrics: tuple[str, ...] = ()


Matrix = list[tuple[str, dict[str, str], list[Any]]]
"""(name, labels, pairs) of each series; name: of those without one."""


def read_matrix(document: Any, name: str, where: str) -> Matrix:
    """The series of one answer, or of a list of answers. Raises BadData for what is none."""
    if isinstance(document, list):
        return [one for part in document for one in read_matrix(part, name, where)]
    if not isinstance(document, Mapping):
        raise BadData("not an answer of Prometheus", where=where, fix=_RECORD)
    if document.get("status") == "error":
        reason = printable(str(document.get("error", "")))[:300]
        raise BadData(f"Prometheus answered with an error: {reason}", where=where)
    data = document.get("data", document)
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    if kind != "matrix" or not isinstance(data.get("result"), list):
        what = f"a {printable(str(kind))[:40]}" if kind else "no result"
        raise BadData(
            f"it holds {what}, not a matrix of series over time", where=where, fix=_RECORD
        )
    matrix: Matrix = []
    for number, one in enumerate(data["result"]):
        labels, pairs = (
            (one.get("metric"), one.get("values", [])) if isinstance(one, Mapping) else (None, None)
        )
        if not isinstance(labels, Mapping) or not isinstance(pairs, list):
            raise BadData(f"series {number} has no metric or no values", where=where)
        own = {str(key): printable(str(value)) for key, value in labels.items()}
        matrix.append((own.pop("__name__", name), own, pairs))
    return matrix


def read_file(path: Path) -> Matrix:
    """Of a file; series without a name are called as the file. Raises UnreadableFile, BadData."""
    try:
        document = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"cannot be read as JSON: {error}", where=str(path)) from None
    return read_matrix(document, _plain(path.stem), str(path))


def range_queries(
    url: str, queries: Mapping[str, str], start: float, end: float, step: float, token: str | None
) -> Iterator[Matrix]:
    """Of a server: every query from `start` to `end` every `step` seconds, some thousand steps at a time.

    queries: {name of series without one: PromQL}. Raises UsageError, BadData, NotPermitted where it does not
    answer.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"{url!r} is no address of a server", fix="Give http://HOST:9090.")
    if not (start < end and step > 0):
        raise UsageError("the time asked for is empty", fix="Give a `start` before the `end`.")
    for name, query in queries.items():
        begin = start
        while begin <= end:
            last = min(end, begin + (_POINTS - 1) * step)
            words = {"query": query, "start": begin, "end": last, "step": step}
            yield read_matrix(_posted(url, words, token), name, f"{url}, {name}")
            begin = last + step


def _posted(url: str, words: Mapping[str, Any], token: str | None) -> Any:
    place = url.rstrip("/") + "/api/v1/query_range"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    body = urllib.parse.urlencode(words).encode()
    request = urllib.request.Request(place, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        text = error.read(_MOST_BYTES)
        if not text.lstrip().startswith(b"{"):
            raise NotPermitted(
                f"it answers {error.code} {error.reason}",
                where=place,
                fix="Check address and token.",
            ) from None
    except (OSError, ValueError) as error:
        raise NotPermitted(
            f"it does not answer: {error}", where=place, fix="Check the address, or give files."
        ) from None
    if len(text) > _MOST_BYTES:
        raise BadData("the answer is larger than 1 GiB", where=place, fix="Ask for less at once.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadData(
            "what it answers is not JSON", where=place, fix="Check the address."
        ) from None


def series_of(matrices: Sequence[Matrix], reading: Reading, where: str) -> list[Series]:
    """The series of several answers; parts of one in several answers are put together. Raises BadData."""
    points: dict[tuple[str, tuple[tuple[str, str], ...]], list[np.ndarray]] = {}
    for matrix in matrices:
        for name, labels, pairs in matrix:
            if reading.metrics and name not in reading.metrics:
                continue
            key = (name, tuple(sorted(labels.items())))
            points.setdefault(key, []).append(_numbers(pairs, f"{where}, {name}"))
    if not points:
        known = sorted({name for matrix in matrices for name, _, _ in matrix})
        raise BadData(
            f"it holds no series{' of ' + ', '.join(reading.metrics) if reading.metrics else ''}",
            where=where,
            fix=f"It has {', '.join(known[:8])}." if known else "Ask for a time with data.",
        )
    by = _by(reading, [dict(labels) for _, labels in points], where)
    kinds = reading.kinds or {}
    series = []
    for (name, labels), parts in points.items():
        has = dict(labels)
        whole = np.concatenate(parts)
        whole = whole[np.argsort(whole[:, 0], kind="stable")]
        again, differ = np.zeros((2, len(whole)), bool)
        again[1:] = np.diff(whole[:, 0]) <= 0
        differ[1:] = again[1:] & (np.diff(np.nan_to_num(whole[:, 1])) != 0)
        if differ.any():
            raise BadData(
                f"{name} has two values at {whole[np.argmax(differ), 0]:g} s", where=where
            )
        apart = [has[label] for label in (*reading.per, *_SPLIT) if label in has]
        series.append(
            Series(
                _plain("_".join([name, *apart])),
                kinds.get(name, usual_kind(name)),
                "-".join(has[label] for label in by if label in has),
                whole[~again, 0],
                whole[~again, 1],
            )
        )
    return series


def _by(reading: Reading, labels: Sequence[Mapping[str, str]], where: str) -> tuple[str, ...]:
    if reading.by is None:
        return next(((one,) for one in _INSTANCE if all(one in has for has in labels)), ())
    for one in (*reading.by, *reading.per):
        if not any(one in has for has in labels):
            known = ", ".join(sorted({name for has in labels for name in has})) or "none"
            raise BadData(f"no series has the label {one!r}; there are: {known}", where=where)
    return reading.by


def _numbers(pairs: Sequence[Any], where: str) -> np.ndarray:
    """(n, 2) seconds and values; NaN for a value that is not a finite number."""
    points = np.empty((len(pairs), 2))
    for row, pair in enumerate(pairs):
        try:
            points[row] = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError):
            raise BadData(f'value {row} is not [seconds, "number"]', where=where) from None
        if not math.isfinite(points[row, 0]):
            raise BadData(f"the time of value {row} is not finite", where=where)
    points[~np.isfinite(points[:, 1]), 1] = np.nan
    return points


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_:.+]+", "_", name).strip("_") or "value"
