"""Whole methods as experts: those that learn from more than runs, by the names that the data have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.ensemble._canonical import CanonicalRuns
from jostle.errors import JostleError
from jostle.methods import Data, method_named
from jostle.rules import Ground, SlowdownRows
from jostle.runs import Colocations


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """label: of its answers. fitted: by the method, None where it could not learn. names: (workloads,
    platforms) by their codes. log_alone: (cells,) log seconds alone."""

    label: str
    fitted: Any
    names: tuple[tuple[str, ...], tuple[str, ...]]
    log_alone: np.ndarray

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,)

    def log_slowdowns(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        """(1, n); NaN where the method has no answer."""
        out = np.full((1, len(rows)), np.nan)
        if self.fitted is None:
            return out
        workloads, platforms = (np.array(each, object) for each in self.names)
        w, count = len(workloads), np.cumsum(rows.degree)[:-1]
        order = np.argsort(rows.row, kind="stable")
        beside = np.split(workloads[rows.corunner[order] % w], count)
        asked = Colocations.from_columns(
            workload=workloads[rows.target % w].tolist(),
            platform=platforms[rows.target // w].tolist(),
            corunners=[names.tolist() for names in beside] if len(rows) else [],
        )
        known = self._is_known(asked)
        if known.any():
            known_ones = asked.take(np.flatnonzero(known))
            if hasattr(self.fitted, "slowdown"):  # over times alone of its own kind
                out[0, known] = np.log(self.fitted.slowdown(known_ones))
            else:
                seconds = self.fitted.predict(known_ones)
                out[0, known] = np.log(seconds) - self.log_alone[rows.target[known]]
        return out

    def _is_known(self, asked: Colocations) -> np.ndarray:
        """(n,) bool: rows all of whose names the method has met."""
        workload = np.isin(asked.workload_names, self.fitted.workload_names)
        platform = np.isin(asked.platform_names, self.fitted.platform_names)
        known = workload[asked.workload] & platform[asked.platform]
        row = np.repeat(np.arange(len(asked)), asked.number_of_corunners)
        known[row[~workload[asked.corunner]]] = False
        return known

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON)."""
        document: dict[str, Any] = {"label": self.label, "names": self.names, "fitted": None}
        arrays = {"log_alone": self.log_alone}
        if self.fitted is not None:
            own, document["fitted"] = self.fitted.to_arrays()
            arrays |= {f"fitted.{name}": value for name, value in own.items()}
        return arrays, document


class MethodExpert:
    """A method that learns from more than runs. method: its name."""

    name: ClassVar[str]
    method: ClassVar[str]
    simulates: ClassVar[bool] = True

    def labels(self, campaign: CanonicalRuns) -> tuple[str, ...]:
        """Its own name where the data have what it needs."""
        data: Data = campaign.shared["data"]
        try:
            method = method_named(self.method)()
            if "profiles" in method.needs and not data.profiles:
                return ()
            method.prepare(data)
        except (JostleError, ModuleNotFoundError):
            return ()
        return (self.name,)

    def fit(
        self,
        campaign: CanonicalRuns,
        wanted: Collection[str],
        *,
        seed: int = 0,
        best: bool = False,
    ) -> FittedMethod:
        """What it cannot learn from is no reason to go without the others."""
        source = campaign.shared["source"]
        data: Data = campaign.shared["data"]
        method = method_named(self.method)()
        try:
            part = data.with_runs(source.take(np.sort(campaign.origin)))
            fitted = method.fit(method.prepare(part), seed=seed)
        except JostleError:
            fitted = None
        log_alone = campaign.log_alone + np.log(campaign.shared["usual"])
        return FittedMethod(self.name, fitted, campaign.shared["names"], log_alone.ravel())

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> FittedMethod:
        """The inverse of to_arrays."""
        fitted = None
        if document["fitted"] is not None:
            start = "fitted."
            own = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            fitted = method_named(cls.method).restore(own, document["fitted"])
        names = tuple(tuple(map(str, each)) for each in document["names"])
        if len(names) != 2:
            raise ValueError("names are of workloads and of platforms")
        return FittedMethod(cls.name, fitted, names, arrays["log_alone"])


class AcceleratorExpert(MethodExpert):
    """Simulation of solo profiles, and what was learned beside it (Prophet)."""

    name: ClassVar[str] = "accelerator"
    method: ClassVar[str] = "accelerator"
    needs: ClassVar[frozenset[str]] = frozenset({"runs", "profiles"})
