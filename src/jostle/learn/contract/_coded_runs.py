"""Runs that a model keeps, so that it can learn more later and calibrate its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from jostle._base.tensors import Codec, Serializable
from jostle.data import Colocations

if TYPE_CHECKING:
    from jostle.data import Runs

MOST = 20_000  # runs that are kept of those that were learned from
OF_A_NAME = 60  # at least so many of each name, where there are
KINDS = ("workload", "platform")


def _columns(table: Any) -> dict[str, list[Any]] | None:
    """Return numbers and text as JSON has them; what is no finite number is none."""
    if table is None:
        return None
    columns = {}
    for name in table.column_names:
        values = table.column(name).to_pylist()
        columns[name] = [None if isinstance(v, float) and not np.isfinite(v) else v for v in values]
    return columns


def _table(columns: Mapping[str, list[Any]] | None) -> Any:
    if columns is None:
        return None
    import pyarrow as pa

    return pa.table({name: pa.array(values) for name, values in columns.items()})


Table = Annotated[Any, Codec(_columns, _table)]


@dataclass(frozen=True, eq=False)
class KeptRuns(Serializable):
    """Runs, n of them, as far as learning online needs them. runtime_seconds: (n,). unit: (n,) what was drawn
    as one. Features: tables of names, or None. window: (n,) which were measured together, None where each
    unit is. campaign: (n,) codes of campaign_names, the campaigns, None where all runs are of one without
    a name. error: (n,) standard errors of the runtimes as shares of them, None where all are known."""

    colocations: Colocations
    runtime_seconds: np.ndarray
    unit: np.ndarray
    workload_features: Table = None
    platform_features: Table = None
    window: np.ndarray | None = None
    campaign: np.ndarray | None = None
    campaign_names: tuple[str, ...] = ("",)
    error: np.ndarray | None = None

    @property
    def runtime_error_ratio(self) -> np.ndarray:
        """Standard errors as in Runs, (n,)."""
        return np.zeros(len(self)) if self.error is None else self.error

    def __len__(self) -> int:
        return len(self.runtime_seconds)

    @classmethod
    def of(cls, runs: Runs, unit: str) -> KeptRuns:
        """Keep the runs with status ok and known co-runners."""
        runs = runs.ok()
        runs = runs.take(~runs.unknown_corunners) if runs.unknown_corunners.any() else runs
        seconds = np.asarray(runs.runtime_seconds, np.float64)
        tables = runs.workload_features, runs.platform_features
        window = None if unit == "window" else runs.window
        labels = [name or "" for name in runs.table.column("campaign").to_pylist()]
        names = tuple(sorted({*labels})) or ("",)
        place = {name: code for code, name in enumerate(names)}
        campaign = None if names == ("",) else np.array([place[one] for one in labels], np.int64)
        error = runs.runtime_error_ratio if runs.runtime_error_ratio.any() else None
        units = runs.units(unit)
        return cls(runs.colocations, seconds, units, *tables, window, campaign, names, error)

    def as_runs(self) -> Runs:
        """Return the runs again, in the same order, without what is not kept of them."""
        from jostle.data import Runs

        window = self.unit if self.window is None else self.window
        more: dict[str, Any] = dict(self.colocations.covariates)
        if self.error is not None:
            more["runtime_error_ratio"] = self.error
        return Runs.from_columns(
            **self.colocations.to_columns(),
            runtime_seconds=self.runtime_seconds,
            window_id=[f"{code}" for code in window.tolist()],
            run_id=[f"{place}" for place in range(len(self))],
            campaign=[self.campaign_names[code] for code in self._campaigns.tolist()],
            **more,
            covariates=list(self.colocations.covariates),
            workload_features=self.workload_features,
            platform_features=self.platform_features,
        )

    def units(self, unit: str) -> np.ndarray:
        """Return (n,) as they were drawn."""
        return self.unit

    def ok(self) -> KeptRuns:
        """Return all of them, as Runs.ok does."""
        return self

    def take(self, index: np.ndarray) -> KeptRuns:
        """Take the runs at these positions, in this order."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        taken = {name: one[index] for name, one in columns.items() if one is not None}
        return replace(self, colocations=self.colocations.take(index), **taken)

    @property
    def _campaigns(self) -> np.ndarray:
        return np.zeros(len(self), np.int64) if self.campaign is None else self.campaign

    def without_features(self) -> KeptRuns:
        """Drop the feature tables."""
        return replace(self, workload_features=None, platform_features=None)

    def joined(self, other: KeptRuns) -> KeptRuns:
        """Concatenate both, units kept apart; the other's features replace those of the same names."""
        both, names = (self, other), tuple(sorted({*self.campaign_names, *other.campaign_names}))
        window = campaign = error = None
        if self.window is not None or other.window is not None:
            window = _apart(*(part.unit if part.window is None else part.window for part in both))
        if names != ("",):
            place = [np.array([names.index(name) for name in part.campaign_names]) for part in both]
            coded = zip(place, both, strict=True)
            campaign = np.concatenate([code[part._campaigns] for code, part in coded])
        if self.error is not None or other.error is not None:
            error = np.concatenate([part.runtime_error_ratio for part in both])
        return KeptRuns(
            Colocations.concatenate([part.colocations for part in both]),
            np.concatenate([part.runtime_seconds for part in both]),
            _apart(self.unit, other.unit),
            *(features_joined(kind, *both) for kind in KINDS),
            window=window,
            campaign=campaign,
            campaign_names=names,
            error=error,
        )

    def sampled(self, seed: int) -> KeptRuns:
        """Sample at most MOST runs: of every name the first so many in random order."""
        n = len(self)
        place = np.random.default_rng([seed, 31]).permutation(n)
        c = self.colocations
        turn = np.minimum(turns_of(c.workload, place), turns_of(c.platform, place))
        sample = np.flatnonzero(turn < OF_A_NAME)
        if len(sample) > MOST:
            sample = sample[np.argsort(turn[sample] * n + place[sample], kind="stable")[:MOST]]
        return self.take(np.sort(sample))


_COLUMNS = ("runtime_seconds", "unit", "window", "campaign", "error")


def _apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return codes of both, none of the one in the other."""
    return np.concatenate([first, second + int(first.max(initial=-1)) + 1])


def features_joined(kind: str, first: Any, second: Any) -> Any:
    """Join two feature tables, the later where both have a name; None without any."""
    tables = [getattr(runs, f"{kind}_features") for runs in (first, second)]
    tables = [table for table in tables if table is not None and len(table)]
    if len(tables) < 2:
        return tables[0] if tables else None
    import pyarrow as pa

    old, new = tables
    fresh = set(new.column(kind).to_pylist())
    rest = old.filter(pa.array([name not in fresh for name in old.column(kind).to_pylist()]))
    return pa.concat_tables([rest, new], promote_options="permissive")


def turns_of(codes: np.ndarray, place: np.ndarray | None = None) -> np.ndarray:
    """Count the entries with the same code before each, (n,), in the order of place or as they stand."""
    order = np.lexsort((np.arange(len(codes)) if place is None else place, codes))
    _, first, counts = np.unique(codes[order], return_index=True, return_counts=True)
    turns = np.empty(len(codes), np.int64)
    turns[order] = np.arange(len(codes)) - np.repeat(first, counts)
    return turns
