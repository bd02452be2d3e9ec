"""One cell: a method learns from what is known, as a user calls it, and is measured on what is asked."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.data import Colocations, Runs
from jostle.learn import Data
from jostle.models import Model, fit
from jostle.operations import bound_measures
from studies.one_model.campaigns import KnownData
from studies.one_model.rules import RULES, fit_rule
from studies.one_model.splits import SetsLeftOut

CONFIDENCE = 0.9
DEFAULT = "default"
SINGLE = ("factorization", "slowdown", "bag", "probes", "alignment", "accelerator")
CHANGED = tuple(
    f"default, {how}" for how in ("other order", "other names", "milliseconds", "copies")
)
COPIES = 10
NO_ANSWER = 1.0  # the relative error of a row that a method says nothing about


@dataclass(frozen=True)
class FitCell:
    """Where a method is measured."""

    data: str
    way: SetsLeftOut
    seed: int


@dataclass(frozen=True, eq=False)
class Examined:
    """A cell's rows: what a user has, what is asked, and how long that took (n,) seconds."""

    cell: FitCell
    known: Data
    query: Colocations
    seconds: np.ndarray

    @classmethod
    def of(cls, cell: FitCell, campaign: KnownData) -> Examined | None:
        """None where the campaign has no such sets."""
        known, asked = cell.way.rows(campaign, cell.seed)
        if not len(asked):
            return None
        test = campaign.runs.take(asked)
        return cls(cell, campaign.data(known), test.colocations, test.runtime_seconds)

    def measure(self, method: str) -> dict[str, Any]:
        """What a method is worth; the default also says which method it was. Raises what fitting raises."""
        if method in RULES:
            began = time.process_time()
            answer = fit_rule(method, self.known.runs, self.cell.seed)
            cpu_seconds = time.process_time() - began
            return self._errors(answer(self.query)) | {"cpu_seconds": cpu_seconds}
        if method in CHANGED:
            return self._changed(method)
        began = time.process_time()
        model = self._fitted(self.known, None if method == DEFAULT else method)
        cpu_seconds = time.process_time() - began
        bound = model.bound(self.query, CONFIDENCE)
        names, counts = np.unique(bound.outcome, return_counts=True)
        return {
            **self._errors(model.predict(self.query)),
            **bound_measures(bound.seconds, self.seconds),
            "cpu_seconds": cpu_seconds,
            "fitted": model.metadata["method"],
            "outcomes": dict(zip(names.tolist(), (counts / len(self.query)).tolist(), strict=True)),
        }

    def _fitted(self, data: Data, method: str | None) -> Model:
        return fit(data, method, seed=self.cell.seed)

    def _errors(self, predicted: np.ndarray) -> dict[str, float]:
        known = np.isfinite(predicted)
        error = np.where(known, np.abs(predicted / self.seconds - 1), NO_ANSWER)
        beside = self.query.number_of_corunners
        by_size = {
            f"error_{size}": float(error[beside == size].mean())
            for size in np.unique(beside).tolist()
        }
        share = float(1 - known.mean())
        return {"error": float(error.mean()), "unanswered": share, "asked": len(error), **by_size}

    @cached_property
    def _usual(self) -> Model:
        return self._fitted(Data(written(self.known.runs)), None)

    def _changed(self, method: str) -> dict[str, float]:
        """How far the default's answers move, as ratios, where only the writing of the data differs."""
        runs, query, unit = self.known.runs, self.query, 1.0
        order = np.arange(len(runs))
        if method == CHANGED[0]:
            data = written(runs, np.random.default_rng(self.cell.seed).permutation(order))
        elif method == CHANGED[1]:
            data, query = written(runs, respelt=True), respelt_query(query)
        elif method == CHANGED[2]:
            unit = 1e3
            data = written(runs, unit=unit)
        else:
            data = written(runs, np.repeat(order, COPIES))
        usual, model = self._usual, self._fitted(Data(data), None)
        before, after = usual.predict(self.query), model.predict(query) / unit
        bounds = usual.bound(self.query, CONFIDENCE), model.bound(query, CONFIDENCE)
        both = np.isfinite(bounds[0].seconds) & np.isfinite(bounds[1].seconds)
        moved = np.abs(np.log(bounds[1].seconds[both] / unit / bounds[0].seconds[both]))
        error = self._errors(after)["error"]
        return {
            "error": error,
            "error_ratio": error / self._errors(before)["error"],
            "change": float(np.nanmax(np.abs(after / before - 1))),
            "bound_change": float(np.expm1(moved.max(initial=0.0))),
            "outcomes_changed": float(np.mean(bounds[0].outcome != bounds[1].outcome)),
        }


def spelt(name: str) -> str:
    """Another name that sorts elsewhere."""
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def respelt_query(query: Colocations) -> Colocations:
    columns = query.to_columns()
    return Colocations.from_columns(
        workload=[spelt(name) for name in columns["workload"]],
        platform=[spelt(name) for name in columns["platform"]],
        corunners=[[spelt(name) for name in names] for names in columns["corunners"]],
    )


def written(
    runs: Runs, order: np.ndarray | None = None, respelt: bool = False, unit: float = 1.0
) -> Runs:
    """The same measurements as another user would write them down: in this order, which may repeat rows, with
    other names, or in units of which a second has so many. Their run_ids are made anew; repeated rows are
    runs of windows of their own."""
    order = np.arange(len(runs)) if order is None else order
    _, copy = np.unique(np.sort(order), return_index=True)
    turn = np.arange(len(order)) - copy[np.searchsorted(np.unique(order), np.sort(order))]
    number = np.empty(len(order), int)
    number[np.argsort(order, kind="stable")] = turn
    spell = spelt if respelt else str
    c = runs.colocations.take(order).to_columns()
    optional: Mapping[str, Any] = {
        name: runs.table.column(name).take(order).to_pylist()
        for name in ("campaign",)
        if name in runs.table.column_names and runs.table.column(name).null_count == 0
    }
    features: dict[str, Any] = {
        f"{key}_features": None if table is None else _spelt_features(table, key, spell)
        for key in ("workload", "platform")
        for table in [getattr(runs, f"{key}_features")]
    }
    windows = runs.table.column("window_id").take(order).to_pylist()
    return Runs.from_columns(
        workload=[spell(name) for name in c["workload"]],
        platform=[spell(name) for name in c["platform"]],
        corunners=[[spell(name) for name in names] for names in c["corunners"]],
        runtime_seconds=runs.runtime_seconds[order] * unit,
        window_id=[f"{window}, {k}" for window, k in zip(windows, number, strict=True)],
        **optional,
        **features,
    )


def _spelt_features(table: Any, key: str, spell: Any) -> dict[str, Any]:
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    return columns | {key: [spell(name) for name in columns[key]]}
