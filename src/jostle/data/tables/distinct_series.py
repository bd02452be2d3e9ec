"""Series of Prometheus that are told twice or are sums of others, left out: no part is added to its sum."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from jostle.data.tables.prometheus_json import Matrix

# Labels of who asked and where, which say nothing of what was measured.
_SCRAPE = {
    *("job", "service", "endpoint", "metrics_path", "prometheus", "prometheus_replica", "replica"),
    "monitor",
}
_IDENTITY = ("id", "uid", "container", "container_name", "exported_pod")  # of one measured thing
_CONTAINER = ("container", "container_name")
_NOBODY = ("", "POD")  # a pod's own cgroup, and the container that holds its network
_TOTALS = ("total", "all", "sum", "_total")


def distinct(matrix: Matrix) -> tuple[Matrix, list[str]]:
    """Return (the series without equal ones and sums, a sentence for each kind that was left out)."""
    once = _once(matrix)
    parts = _parts(once)
    notes = []
    if left := len(matrix) - len(once):
        notes.append(f"{left} series left out as equal to others, scraped twice")
    if left := len(once) - len(parts):
        kept = {id(one) for one in parts}
        gone = next(one[1] for one in once if id(one) not in kept)
        shown = ", ".join(f'{key}="{value}"' for key, value in sorted(gone.items())[:4])
        notes.append(
            f"{left} series left out as sums of others, or pauses: such as {{{shown}}}"[:300]
        )
    return parts, notes


def _once(matrix: Matrix) -> Matrix:
    alike: dict[Any, list[tuple[str, dict[str, str], list[Any]]]] = defaultdict(list)
    for one in matrix:
        name, labels, _ = one
        core = tuple(sorted((key, value) for key, value in labels.items() if key not in _SCRAPE))
        alike[name, core].append(one)
    kept: Matrix = []
    for group in alike.values():
        own: Matrix = []
        for one in sorted(group, key=lambda one: -len(one[2])):
            if not any(_equal(one, other) for other in own):
                own.append(one)
        kept += [one for one in group if any(one is other for other in own)]
    return kept


def _equal(
    one: tuple[str, dict[str, str], list[Any]], other: tuple[str, dict[str, str], list[Any]]
) -> bool:
    """Return whether two series tell the same, at the times that they share or one after the other."""
    if one[1] == other[1]:
        return False  # parts of one series, in several answers
    try:
        mine, theirs = (dict(map(tuple, points)) for points in (one[2], other[2]))
    except (TypeError, ValueError):
        return False
    shared = mine.keys() & theirs.keys()
    varies = len({mine[at] for at in shared}) > 1
    is_named = any(label in one[1] for label in _IDENTITY)
    return bool(shared) and (varies or is_named) and all(mine[at] == theirs[at] for at in shared)


def _parts(matrix: Matrix) -> Matrix:
    """Drop series that count others again: pods' own control groups beside those of their containers, groups
    above others, and totals."""
    named: set[Any] = set()
    ids: dict[Any, set[str]] = defaultdict(set)
    values: dict[Any, set[str]] = defaultdict(set)
    for name, labels, _ in matrix:
        place = _place(name, labels)
        if any(labels.get(label, "") not in _NOBODY for label in _CONTAINER):
            named.add(place)
        if labels.get("id", "").startswith("/"):
            ids[name, labels.get("node"), labels.get("instance")].add(labels["id"])
        for label, value in labels.items():
            rest = tuple(sorted((key, text) for key, text in labels.items() if key != label))
            values[name, label, rest].add(value)

    def is_sum(name: str, labels: dict[str, str]) -> bool:
        is_container = any(labels.get(label, "") not in _NOBODY for label in _CONTAINER)
        if (
            not is_container
            and _place(name, labels) in named
            and ({"id", *_CONTAINER} & labels.keys() or name.startswith("container_"))
        ):
            return True
        own = labels.get("id", "")
        below = own.rstrip("/") + "/"
        others = ids[name, labels.get("node"), labels.get("instance")]
        if (
            own.startswith("/")
            and not is_container
            and any(o.startswith(below) and o != own for o in others)
        ):
            return True
        for label, value in labels.items():
            if value in _TOTALS:
                rest = tuple(sorted((key, text) for key, text in labels.items() if key != label))
                if len(values[name, label, rest]) > 1:
                    return True
        return False

    return [one for one in matrix if not is_sum(one[0], one[1])]


def _place(name: str, labels: dict[str, str]) -> tuple[Any, ...]:
    return (
        name,
        labels.get("namespace"),
        labels.get("pod") or labels.get("pod_name"),
        labels.get("node"),
    )
