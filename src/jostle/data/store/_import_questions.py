"""What in a table is asked about before it is imported, and what each answer would change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from jostle.data.runs._runs import Runs
from jostle.data.store._import_doubts import SEPARATORS, units_off
from jostle.data.tables.arrow_compute import pc, with_column
from jostle.errors import UnknownName, UsageError

KINDS = ("names", "units", "separator", "corunners")
_SHOWN = 5


@dataclass(frozen=True)
class TableQuestion:
    """Doubt about a table, to be settled before its import.

    kind: what the answer is called. text: what stands out. remedy: what would be done. mend: does it, and
    says which runs, by run_id, are to be set aside.
    """

    kind: Literal["names", "units", "separator", "corunners"]
    text: str
    remedy: str
    mend: Callable[[Runs], tuple[Runs, tuple[str, ...]]] = field(repr=False, compare=False)


def mended(
    runs: Runs, there: Runs | None, answer: Callable[[TableQuestion], bool]
) -> tuple[Runs, tuple[str, ...]]:
    """Return (the runs, the run_ids to be set aside) after each question whose answer is yes: later ones are
    about what earlier ones made. there: the runs of the dataset that they are to join, whose names are
    known."""
    aside: tuple[str, ...] = ()
    for ask in (_workloads, _platforms, _unit, _joined, _corunners):
        question = ask(runs, there)
        if question is not None and answer(question):
            runs, rows = question.mend(runs)
            aside += rows
    return runs, aside


def _workloads(runs: Runs, there: Runs | None) -> TableQuestion | None:
    return _spellings(runs, there, "workload")


def _platforms(runs: Runs, there: Runs | None) -> TableQuestion | None:
    return _spellings(runs, there, "platform")


def _spellings(runs: Runs, there: Runs | None, key: str) -> TableQuestion | None:
    """Return names that are the same but for case and blanks: they become that of the dataset, or the usual
    one."""
    known = Counter() if there is None else _counts(there, key)
    alike: dict[str, Counter[str]] = defaultdict(Counter)
    for name, count in _counts(runs, key).items():
        alike[_folded(name)][name] += count
    old: dict[str, str] = {}
    usual = {_folded(name): name for name, _ in reversed(known.most_common())}
    for folded, spellings in alike.items():
        best = usual.get(folded) or min(spellings, key=lambda name: (-spellings[name], name))
        old |= {name: best for name in spellings if name != best and name not in known}
    if not old:
        return None
    changed = [f"{name!r} to {best!r}" for name, best in sorted(old.items())]
    differ = "differs" if len(old) == 1 else "differ"
    return TableQuestion(
        "names",
        f"{_count(len(old), f'{key} name')} that {differ} from another in case or blanks only",
        f"change {_some(changed)}",
        lambda runs: (_renamed(runs, key, old), ()),
    )


def _unit(runs: Runs, there: Runs | None) -> TableQuestion | None:
    """Return runtimes that are a thousand, a million or a billion times off the others."""
    factor = units_off(runs)
    off = np.flatnonzero(factor != 1)
    if not len(off):
        return None
    ids = pc.take(runs.table.column("run_id"), pa.array(off)).to_pylist()
    by = dict(zip(ids, factor[off].tolist(), strict=True))
    parts = [
        f"{'multiply' if value > 1 else 'divide'} {count} by {max(value, 1 / value):g}"
        for value, count in Counter(by.values()).most_common()
    ]
    return TableQuestion(
        "units",
        f"{_count(len(off), 'runtime')} a thousand times or more off the others of their workload and "
        f"platform: {_some([repr(name) for name in ids])}",
        " and ".join(parts),
        lambda runs: (_scaled(runs, by), ()),
    )


def _known(runs: Runs, there: Runs | None) -> set[str]:
    """Return the workloads' names, folded."""
    every = [runs] if there is None else [runs, there]
    return {_folded(name) for one in every for name in one.table.column("workload").to_pylist()}


def _joined(runs: Runs, there: Runs | None) -> TableQuestion | None:
    """Return names of co-runners that are several workloads in one cell, by another separator."""
    known, parts = _known(runs, there), {}
    for name in set(pc.list_flatten(runs.table.column("corunners")).to_pylist()):
        for separator in SEPARATORS if _folded(name) not in known else ():
            pieces = [piece.strip() for piece in name.split(separator)]
            if len(pieces) > 1 and all(_folded(piece) in known for piece in pieces):
                parts[name] = separator, pieces
                break
    if not parts:
        return None

    def split(runs: Runs) -> tuple[Runs, tuple[str, ...]]:
        rows = runs.table.column("corunners").to_pylist()
        beside = [
            sorted(one for name in row for one in parts.get(name, ("", [name]))[1]) for row in rows
        ]
        column = pa.array(beside, pa.list_(pa.string()))
        table = with_column(runs.table, "corunners", column)
        return Runs(table, runs.workload_features, runs.platform_features), ()

    ((common, _),) = Counter(separator for separator, _ in parts.values()).most_common(1)
    shown = [repr(name) for name in sorted(parts)]
    return TableQuestion(
        "separator",
        f"{_count(len(parts), 'co-runner')} called like several workloads in one: {_some(shown)}",
        f"split them at {common!r}, as --separator {common!r} does",
        split,
    )


def _corunners(runs: Runs, there: Runs | None) -> TableQuestion | None:
    """Return names that stand only beside others."""
    folded = _known(runs, there)
    beside = runs.table.column("corunners").to_pylist()
    strange = Counter(
        name for names in beside for name in set(names) if _folded(name) not in folded
    )
    if not strange:
        return None
    ids = runs.table.column("run_id").to_pylist()
    rows = tuple(
        i for i, names in zip(ids, beside, strict=True) if not strange.keys().isdisjoint(names)
    )
    if 2 * len(rows) > len(ids):  # never most of a table
        return None
    shown = [f"{name!r} ({_count(n, 'run')})" for name, n in strange.most_common()]
    return TableQuestion(
        "corunners",
        f"{_count(len(strange), 'name')} only beside others, never a workload: {_some(shown)}",
        f"set the {_count(len(rows), 'run')} with them aside; jostle runs --take-back brings them back",
        lambda runs: (runs, rows),
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _folded(name: str) -> str:
    return "".join(name.split()).casefold()


def _some(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


def _counts(runs: Runs, key: str) -> Counter[str]:
    """Return how often each name stands there; as a co-runner, too."""
    column = runs.table.column(key).to_pylist()
    if key == "workload":
        column += pc.list_flatten(runs.table.column("corunners")).to_pylist()
    return Counter(column)


def _renamed(runs: Runs, key: str, names: Mapping[str, str]) -> Runs:
    """Rename names in runs. If an old and a new name both have features, those of the new name stay."""

    def changed(values: Iterable[str]) -> list[str]:
        return [names.get(name, name) for name in values]

    table = with_column(
        runs.table, key, pa.array(changed(runs.table.column(key).to_pylist()), pa.string())
    )
    if key == "workload":
        beside = [sorted(changed(row)) for row in table.column("corunners").to_pylist()]
        table = with_column(table, "corunners", pa.array(beside, pa.list_(pa.string())))
    features = {"workload": runs.workload_features, "platform": runs.platform_features}
    own = features[key]
    if own is not None:
        listed = own.column(key).to_pylist()
        first: dict[str, int] = {}
        for row in sorted(range(len(listed)), key=lambda row: listed[row] in names):
            first.setdefault(names.get(listed[row], listed[row]), row)
        rows = pa.array([first[name] for name in sorted(first)])
        features[key] = with_column(own.take(rows), key, pa.array(sorted(first), pa.string()))
    return Runs(table, *features.values())


def _scaled(runs: Runs, by: Mapping[str, float]) -> Runs:
    """Multiply the runtimes of these runs. by: {run_id: factor}."""
    ids = runs.table.column("run_id").to_pylist()
    factor = pa.array([by.get(name, 1.0) for name in ids], pa.float64())
    seconds = pc.multiply(runs.table.column("runtime_seconds"), factor)
    return Runs(
        with_column(runs.table, "runtime_seconds", seconds),
        runs.workload_features,
        runs.platform_features,
    )


def rows_named(ids: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Return those of the run_ids that are meant: each as it is, or the number of the line it was imported
    from.

    Raises UnknownName, UsageError for a line of several imports.
    """
    ids = list(ids)
    known, by_line = set(ids), defaultdict(list)
    for name in ids:
        by_line[name.rpartition(":")[2]].append(name)
    meant = []
    for name in names:
        fits = [name] if name in known else by_line.get(name, [])
        if not fits:
            raise UnknownName("run_id", name, ids)
        if len(fits) > 1:
            raise UsageError(
                f"{name!r} is a line of several imports", fix=f"Name one: {_some(fits)}."
            )
        meant += fits
    return tuple(meant)
