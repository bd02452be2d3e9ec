"""Queries to Prometheus over HTTP, and which of its series are of one quantity."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

import numpy as np

from jostle.data.read._series import Kind, Series, usual_kind
from jostle.data.tables.prometheus_json import Matrix, plain_name, points_of, read_matrix
from jostle.errors import BadData, NotPermitted, UsageError

_INSTANCE = ("pod", "instance")  # labels that tell instances apart, the first that all series have
_SPLIT = ("le", "quantile")  # series that differ in these are never added up
_POINTS = 10_000  # of a series in one answer: Prometheus gives 11,000 at most
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Reading:
    """Options that say how series of Prometheus are understood. by: labels that tell instances apart, None
    for `pod` or `instance` where all have it. per: labels of which each value is a quantity of its own.
    kinds: of names, where their endings do not say. metrics: only these, all where empty."""

    by: tuple[str, ...] | None = None
    per: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] | None = None
    metrics: tuple[str, ...] = ()


def range_queries(
    url: str, queries: Mapping[str, str], start: float, end: float, step: float, token: str | None
) -> Iterator[Matrix]:
    """Ask a server every query from `start` to `end`, every `step` seconds, some thousand steps at a time.

    queries: {name of series without one: PromQL}. Raises UsageError, BadData, NotPermitted if the server does
    not answer.
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
            what = f"it answers {error.code} {error.reason}"
            raise NotPermitted(what, where=place, fix="Check address and token.") from None
    except (OSError, ValueError, HTTPException) as error:
        what, fix = f"it does not answer: {error}", "Check the address, or give files."
        raise NotPermitted(what, where=place, fix=fix) from None
    if len(text) > _MOST_BYTES:
        raise BadData("the answer is larger than 1 GiB", where=place, fix="Ask for less at once.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        what = "what it answers is not JSON"
        raise BadData(what, where=place, fix="Check the address.") from None


def series_of(matrices: Sequence[Matrix], reading: Reading, where: str) -> list[Series]:
    """Return the series of several answers; parts of one in several answers are put together. Raises
    BadData."""
    points: dict[tuple[str, tuple[tuple[str, str], ...]], list[np.ndarray]] = {}
    for matrix in matrices:
        for name, labels, pairs in matrix:
            if reading.metrics and name not in reading.metrics:
                continue
            key = (name, tuple(sorted(labels.items())))
            points.setdefault(key, []).append(points_of(pairs, f"{where}, {name}"))
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
            at = whole[np.argmax(differ), 0]
            raise BadData(f"{name} has two values at {at:g} s", where=where)
        apart = [has[label] for label in (*reading.per, *_SPLIT) if label in has]
        called, kind = plain_name("_".join([name, *apart])), kinds.get(name, usual_kind(name))
        instance = "-".join(has[label] for label in by if label in has)
        series.append(Series(called, kind, instance, *whole[~again].T))
    return series


def _by(reading: Reading, labels: Sequence[Mapping[str, str]], where: str) -> tuple[str, ...]:
    if reading.by is None:
        return next(((one,) for one in _INSTANCE if all(one in has for has in labels)), ())
    for one in (*reading.by, *reading.per):
        if not any(one in has for has in labels):
            known = ", ".join(sorted({name for has in labels for name in has})) or "none"
            raise BadData(f"no series has the label {one!r}; there are: {known}", where=where)
    return reading.by
