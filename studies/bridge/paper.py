"""Everything that the bridge's paper tabulates, on the data there is.

Source: Bondar, Gifford, Phan, Halder, Stochastic Learning of Computational Resource Usage as Graph Structured
Multimarginal Schrödinger Bridge, Tables I to III; cycle ends as in Table I of their ACC 2023 paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table
from jostle.usage import Bridge, Cloud, Forecast, Snapshots
from studies.bridge.data import COUNTERS, PAPER_SCALE
from studies.bridge.experiments import (
    GRAPHS,
    PAPER_UNITS,
    MultiCore,
    SingleCore,
    distance,
)

BETWEEN = (0, 1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class BridgePaper:
    """single, multi: the experiments."""

    single: SingleCore
    multi: MultiCore

    def tables(self, progress: Progress | None = None) -> tuple[list[Table], dict[str, Any]]:
        """The tables for people, and all their numbers as a document."""
        steps = (
            ("table_1", lambda: table_one(self.single, self.multi)),
            ("cycle_ends", lambda: cycle_end_table(self.single)),
            ("table_2", lambda: table_two(self.single, BETWEEN)),
            ("table_3", lambda: table_three(self.multi)),
        )
        shown: list[Table] = []
        found: dict[str, Any] = {}
        for number, (name, made) in enumerate(steps, start=1):
            tables, found[name] = made()
            shown += tables
            if progress:
                progress(number, len(steps), 0.0)
        return shown, found


Found = tuple[list[Table], Any]


def table_one(single: SingleCore, multi: MultiCore) -> Found:
    """Table I: what each graph's nodes are, how large its problem is, and how its solver did."""
    times, clouds, _ = single.read(4, False)
    paper = Forecast(Snapshots.from_arrays(times, clouds, COUNTERS), Bridge.paper(PAPER_SCALE))
    paths = [paper.coupling(k).convergence for k in range(len(paper.snapshots) - 1)]
    n, s = len(clouds[0]), len(clouds)
    rows = [["path", "(1, 1..s)", s, f"{s * np.log10(n):.0f}", s * n]]
    done = [(max(c.sweeps for c in paths), max(c.hilbert for c in paths))]
    cores, s = len(multi.train.cores), len(multi.train)
    n = max(len(shot.cloud) for shot in multi.train.of(0))
    m = multi.barycentre_atoms
    sizes = {
        "barycentric": ("(0..J, 1..s)", s * (cores + 1), s * np.log10(m) + s * cores * np.log10(n)),
        "series_parallel": ("(1, 1), (1..J, 2..s-1), (1, s)", 2 + cores * (s - 2), 0.0),
    }
    for graph in GRAPHS:
        nodes, count, digits = sizes[graph]
        duals = count * n + (s * (m - n) if graph == "barycentric" else 0)
        rows.append(
            [graph.replace("_", "-"), nodes, count, f"{digits or count * np.log10(n):.0f}", duals]
        )
        found = multi.forecast(graph).coupling(0, 0).convergence
        done.append((found.sweeps, found.hilbert))
    columns = ["graph", "nodes (core, time)", "nodes", "log10 of entries", "potentials", "sweeps"]
    columns.append("Hilbert residual")
    printed = [
        [*map(str, row), str(sweeps), f"{residual:.1e}"]
        for row, (sweeps, residual) in zip(rows, done, strict=True)
    ]
    kinds = f"one core {_kind(single.source)}, four {_kind(multi.source)}"
    title = f"Table I: the graphs, and how the paper's settings were solved ({kinds})"
    document = [
        {
            "graph": row[0],
            "nodes": row[2],
            "potentials": row[4],
            "sweeps": sweeps,
            "hilbert": residual,
        }
        for row, (sweeps, residual) in zip(rows, done, strict=True)
    ]
    return [Table(columns, printed, title)], document


def cycle_end_table(single: SingleCore) -> Found:
    """When control cycles end, over runs."""
    levels = (0.05, 0.5, 0.95)
    rows, document = [], []
    for number, ends in enumerate(single.ends.T, start=1):
        values = [ends.mean(), ends.std(ddof=1), ends.min(), *np.quantile(ends, levels), ends.max()]
        rows.append([f"{number}", *(f"{value:.4f}" for value in values)])
        document.append([float(value) for value in values])
    columns = ["cycle", "mean s", "std", "least", *(f"{level:.0%}" for level in levels), "most"]
    title = f"Ends of control cycles in seconds ({_kind(single.ends_source)})"
    return [Table(columns, rows, title)], document


def table_two(single: SingleCore, between: Sequence[int]) -> Found:
    """Table II: W2 in the paper's units, [snapshots inside a cycle][time in the third cycle].

    Of the published snapshots all 500 runs are on both sides, as the paper has it: a low score can be a
    shared run's. None where the held-out snapshot is itself a training snapshot.
    """
    times, truth, prints = single.read(5, True)
    inside = [k for k in range(len(times)) if 2 < times[k] < 3]
    methods = {"paper": Bridge.paper(PAPER_SCALE), "default": Bridge(), "ot": Bridge("ot")}
    found: dict[str, list[list[float | None]]] = {name: [] for name in methods}
    for count in between:
        train_times, clouds, known = single.read(count, False)
        snapshots = Snapshots.from_arrays(train_times, clouds, COUNTERS)
        for name, method in methods.items():
            forecast = Forecast(snapshots, method)
            found[name].append(
                [
                    None
                    if prints[k] in known
                    else distance(
                        forecast.at(float(times[k])).cloud,
                        Cloud.of(truth[k]),
                        PAPER_UNITS,
                        len(truth[k]),
                    )
                    for k in inside
                ]
            )
    columns = ["inside a cycle", *(f"{times[k]:.2f}" for k in inside)]
    told = "W2 in the paper's units; = is a training snapshot"
    shown = [
        Table(
            columns,
            [
                [str(count), *("=" if value is None else f"{value:.4f}" for value in row)]
                for count, row in zip(between, table, strict=True)
            ],
            f"Table II, {name} settings: {told} ({_kind(single.source)})",
        )
        for name, table in found.items()
    ]
    moments = [float(times[k]) for k in inside]
    return shown, {"times_cycles": moments, "between": list(between)} | found


def table_three(multi: MultiCore) -> Found:
    """Table III: W2 in scaled units of each core at the held-out times, by each graph; and the oracle."""
    scale = multi.forecast("ot").scale
    document: dict[str, list[list[float]]] = {}
    rows = []
    for graph in (*GRAPHS, "path", "ot", "oracle"):
        document[graph] = []
        for core in sorted(multi.train.cores):
            errors = []
            for at in multi.held_out_seconds:
                oracle, truth = (multi.measured(core, at, learned=one) for one in (True, False))
                guess = oracle if graph == "oracle" else multi.forecast(graph).at(at, core).cloud
                errors.append(distance(guess, truth, scale, len(oracle.atoms)))
            document[graph].append(errors)
            name = graph.replace("_", "-")
            rows.append([name, f"core {core}", *(f"{value:.3f}" for value in errors)])
    columns = ["graph", "", *(f"{at:g} s" for at in multi.held_out_seconds)]
    title = f"Table III: W2 in units of the noise ({_kind(multi.source)})"
    return [Table(columns, rows, title)], document


def _kind(source: str) -> str:
    """Whose data, in a word: made, published or recorded."""
    return next(
        word for word in ("published", "recorded", "made") if word in source.lower().split(":")[0]
    )
