"""How far the default is from the best of the others: by cell, by method, and in all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle._base.report import Table, percent
from studies.one_model.measure import DEFAULT, SINGLE
from studies.one_model.rules import RULES

Records = Sequence[dict[str, Any]]
Key = tuple[str, str, float]


def by_cell(records: Records) -> dict[Key, dict[str, dict[str, float]]]:
    """{(data, way, share): {method: its measures, means over the seeds that the default has, too}}."""
    cells: dict[Key, dict[str, dict[int, dict[str, Any]]]] = {}
    for r in records:
        if "error" in r:
            methods = cells.setdefault((r["data"], r["way"], r["share"]), {})
            methods.setdefault(r["method"], {})[r["seed"]] = r
    return {
        key: {
            name: _means([of_seed[seed] for seed in seeds])
            for name, of_seed in methods.items()
            if (seeds := sorted(set(of_seed) & set(methods.get(DEFAULT, of_seed))))
        }
        for key, methods in cells.items()
    }


def _means(records: Records) -> dict[str, float]:
    names = [name for name, value in records[0].items() if isinstance(value, (int, float))]
    return {
        name: float(np.mean([v for r in records if (v := r.get(name)) is not None] or [math.nan]))
        for name in names
    }


def best_of(methods: dict[str, dict[str, float]], names: Sequence[str]) -> str | None:
    """Whose error is least of those with these names."""
    here = [name for name in names if name in methods]
    return min(here, key=lambda name: methods[name]["error"], default=None)


def ratios(cells: dict[Key, Any], name: str, beside: Sequence[str]) -> dict[Key, float]:
    """Error of a method over that of the best of others, in every cell that has both."""
    others = [other for other in beside if other != name]
    return {
        key: methods[name]["error"] / max(methods[best]["error"], 1e-12)
        for key, methods in cells.items()
        if name in methods and (best := best_of(methods, others)) is not None
    }


def summary(values: dict[Key, float]) -> dict[str, Any]:
    """Geometric mean, the worst and where that is."""
    if not values:
        return {"cells": 0}
    worst = max(values, key=lambda key: values[key])
    mean = math.exp(sum(map(math.log, values.values())) / len(values))
    return {
        "cells": len(values),
        "geometric_mean_ratio": mean,
        "worst_ratio": values[worst],
        "worst_cell": list(worst),
    }


def cell_table(cells: dict[Key, Any]) -> Table:
    """The default beside the best, and its bounds, in every cell."""
    ratio = {group: ratios(cells, DEFAULT, names) for group, names in GROUPS.items()}
    rows = []
    for key, methods in cells.items():
        if DEFAULT not in methods:
            continue
        m = methods[DEFAULT]
        row = [*_words(key), percent(m["error"], 2)]
        for group, names in GROUPS.items():
            best = best_of(methods, names)
            shown = "–" if best is None else f"{best} {100 * methods[best]['error']:.2f}%"
            row += [shown, _number(ratio[group].get(key))]
        row += [percent(m.get(name, math.nan)) for name in ("coverage", "margin", "no_bound")]
        rows.append([*row, f"{m['cpu_seconds']:.1f}"])
    columns = ["data", "way", "known", "default", "best method", "over it", "best rule", "over it"]
    return Table(
        [*columns, "coverage 90", "margin 90", "no bound", "CPU s"],
        rows,
        title="The default beside the best single method and the best simple rule, both chosen on the test",
    )


GROUPS = {"method": SINGLE, "rule": tuple(RULES)}


def error_table(cells: dict[Key, Any]) -> Table:
    """The error of everything everywhere."""
    names = [
        name
        for name in (DEFAULT, *SINGLE, *RULES)
        if any(name in methods for methods in cells.values())
    ]
    rows = [
        [*_words(key), *(_share(methods.get(name)) for name in names)]
        for key, methods in cells.items()
    ]
    return Table(
        ["data", "way", "known", *names],
        rows,
        title="Mean relative error, %",
    )


def summary_table(cells: dict[Key, Any]) -> Table:
    """Every method over the best of the other single methods, and over the best simple rule."""
    rows = []
    for name in (DEFAULT, *SINGLE):
        for way in (None, *dict.fromkeys(way for _, way, _ in cells)):
            some = {key: methods for key, methods in cells.items() if way in (None, key[1])}
            results = [summary(ratios(some, name, names)) for names in GROUPS.values()]
            if results[1]["cells"]:
                rows.append([name, way or "all", str(results[1]["cells"]), *_summed(results)])
    columns = ["method", "way", "cells"]
    for group in ("other method", "rule"):
        columns += [f"over best {group}: mean", "worst", "where"]
    return Table(columns, rows, "Error over the best of the others")


def _summed(results: Sequence[dict[str, Any]]) -> list[str]:
    cells = []
    for one in results:
        where = " ".join(_words(tuple(one["worst_cell"]))) if one["cells"] else "–"
        numbers = (one.get("geometric_mean_ratio"), one.get("worst_ratio"))
        cells += [*(_number(number) for number in numbers), where]
    return cells


def _words(key: Key) -> list[str]:
    data, way, share = key
    return [data, way, percent(share, 0)]


def _number(value: float | None) -> str:
    return "–" if value is None or value != value else f"{value:.3f}"


def _share(measures: dict[str, float] | None) -> str:
    return "–" if measures is None else f"{100 * measures['error']:.2f}"
