"""One cell: a method learns from what is known, as a user calls it, and is measured on what is asked."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.data import Colocations
from jostle.learn import Data
from jostle.models import Model, fit
from jostle.operations import bound_measures
from studies.one_model.campaigns import KnownData
from studies.one_model.rules import RULES, fit_rule
from studies.one_model.splits import SetsLeftOut

CONFIDENCE = 0.9
DEFAULT = "default"
SINGLE = ("factorization", "slowdown", "bag", "probes", "alignment", "accelerator")
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
