"""Learning from runs whose company changed, with any method.

Work is done at the rate 1 / time, so a run of stretches with shares f_k of its time takes T = 1 / sum of
f_k / t_k, where t_k is how long it would take in that company throughout. A plain law of the t_k, additive
in logarithms, is learned from all runs through that equation by Gauss-Newton steps; then each run of
several stretches stands for its longest one, with the time that the law has for that company times the
run's own residual: log t_k + log T - log T(law). A run counts as one, whatever its number of stretches, and
one of a single company stays what it was measured to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute

from jostle.methods import Data, HeldOut
from jostle.models.timelines._acts import MOST, Acts
from jostle.runs import Colocations, Runs, StoredRuns, Stretches

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute

# Prior standard deviations of logarithms, of what each part of the plain law may add.
_PRIOR = {
    "workload": 10.0,
    "platform": 1.0,
    "cell": 0.3,
    "sensitivity": 0.3,
    "pressure": 0.3,
    "number": 0.2,
    "pair": 0.15,
}
_STEPS = 6
_LEARNED = 200_000  # runs that the plain law is learned from
_HUBER = 2.5  # standard deviations


@dataclass(frozen=True)
class PlainLaw:
    """log t = workload + platform + cell + per co-runner (sensitivity + pressure + pair) + number of
    co-runners.

    workload_names, platform_names: sorted. keys: of each part the sorted codes that were met. weights: of
    all of them, part by part.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    keys: dict[str, np.ndarray]
    weights: np.ndarray

    @classmethod
    def of(cls, runs: Runs, seed: int = 0) -> PlainLaw:
        """Learned from runs with status ok."""
        if len(runs) > _LEARNED:
            runs = runs.take(np.random.default_rng(seed).choice(len(runs), _LEARNED, replace=False))
        parts, observed = runs.stretches, np.log(runs.runtime_seconds)
        c = parts.colocations
        keys = {name: np.unique(code) for name, (_, code) in _parts(c).items()}
        law = cls(c.workload_names, c.platform_names, keys, np.zeros(sum(map(len, keys.values()))))
        return replace(law, weights=law._fitted(parts, observed))

    def log_times(self, colocations: Colocations) -> np.ndarray:
        """(n,) log seconds but for a constant; parts that were never met add nothing."""
        recoded = _recoded(colocations, self.workload_names, self.platform_names)
        return self._design(recoded) @ self.weights

    def _design(self, colocations: Colocations) -> Any:
        from scipy import sparse

        rows, columns, start = [], [], 0
        for name, (row, code) in _parts(colocations).items():
            known = self.keys[name]
            at = np.searchsorted(known, code)
            good = at < len(known)
            good[good] = known[at[good]] == code[good]
            rows.append(row[good])
            columns.append(at[good] + start)
            start += len(known)
        row, column = np.concatenate(rows), np.concatenate(columns)
        return sparse.csr_matrix((np.ones(len(row)), (row, column)), (len(colocations), start))

    def _fitted(self, parts: Stretches, observed: np.ndarray) -> np.ndarray:
        from scipy import sparse
        from scipy.sparse.linalg import lsqr

        design = self._design(parts.colocations)
        prior = np.concatenate([np.full(len(self.keys[name]), sd) for name, sd in _PRIOR.items()])
        center = float(np.median(observed))
        shape = (len(observed), len(parts.row))
        weights, noise = np.zeros(len(prior)), 0.3
        for _ in range(_STEPS):
            log_times = design @ weights
            jacobian = (
                sparse.csr_matrix((parts.work(log_times), (parts.row, np.arange(shape[1]))), shape)
                @ design
            )
            residual = observed - center - parts.log_runtime(log_times)
            trust = np.minimum(1.0, _HUBER * noise / np.maximum(np.abs(residual), 1e-12)) ** 0.5
            scaled = sparse.diags(trust) @ jacobian @ sparse.diags(prior)
            wanted = trust * (residual + jacobian @ weights)
            weights = prior * lsqr(scaled, wanted, damp=noise, iter_lim=200)[0]
            residual = observed - center - parts.log_runtime(design @ weights)
            noise = float(np.clip(1.4826 * np.median(np.abs(residual)), 0.01, 1.0))
        return weights


def _recoded(c: Colocations, workloads: tuple[str, ...], platforms: tuple[str, ...]) -> Colocations:
    """In other vocabularies; unknown names get a code that nothing was learned of."""
    if c.workload_names == workloads and c.platform_names == platforms:
        return c
    workload, platform, corunner = c.recode(workloads, platforms)
    return Colocations(
        (*workloads, "\uffff"),
        (*platforms, "\uffff"),
        np.where(workload < 0, len(workloads), workload),
        np.where(platform < 0, len(platforms), platform),
        c.corunner_offsets,
        np.where(corunner < 0, len(workloads), corunner),
    )


def _parts(c: Colocations) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """{part: (row (k,), code (k,))}: what is added up in each row."""
    n, width = np.arange(len(c)), np.int64(1 << 32)
    row = np.repeat(n, c.number_of_corunners)
    own = c.workload[row].astype(np.int64)
    beside = np.flatnonzero(c.number_of_corunners)
    return {
        "workload": (n, c.workload),
        "platform": (n, c.platform),
        "cell": (n, c.workload * width + c.platform),
        "sensitivity": (row, c.workload[row]),
        "pressure": (row, c.corunner),
        "number": (beside, c.number_of_corunners[beside]),
        "pair": (row, own * width + c.corunner),
    }


class OverTime:
    """Runs of a fit, of which some changed company. data: what to learn from, each run in one company."""

    def __init__(self, source: Data, seed: int) -> None:
        self._before = source.runs_in_memory.ok()
        self._law = PlainLaw.of(self._before, seed)
        self.data = source.with_runs(self.of_longest(self._before))
        self.data.has_given_runs = source.has_given_runs

    @classmethod
    def of(cls, source: Data, needs: frozenset[str], seed: int) -> OverTime | None:
        """None where every run has one company, or none is learned from."""
        if "runs" not in needs or not source.has_runs or isinstance(source.runs, StoredRuns):
            return None
        return None if bool(source.runs.ok().is_steady.all()) else cls(source, seed)

    @property
    def changing(self) -> int:
        """How many runs changed company."""
        return int((~self._before.is_steady).sum())

    def of_longest(self, runs: Runs) -> Runs:
        """The same, each run in the company of its longest stretch, by the plain law."""
        runs = runs.ok()
        if runs.is_stretched:
            return stands_for_longest(runs, self._law.log_times(runs.stretches.colocations))
        return runs

    def calibrated(self, held: HeldOut, fitted: Any) -> HeldOut:
        """With calibration runs taken to one company by what was learned, which has not seen them: their
        errors are then those of its answers for their whole timelines."""
        return replace(held, calibration=self.taken_by(fitted, held.calibration))

    def taken_by(self, fitted: Any, runs: Runs) -> Runs:
        """Runs that were not learned from, those of the data taken to one company by what was learned."""
        own, at = self._own(runs)
        before = self._before.take(at)
        if not len(own) or bool(before.is_steady.all()):
            return runs
        seconds = runs.runtime_seconds.copy()
        seconds[own] = np.where(
            before.is_steady, seconds[own], taken_by(fitted, before).runtime_seconds
        )
        return runs.with_one_company(seconds)

    def acts(self, runs: Runs, without: Sequence[tuple[Any, np.ndarray]], seed: int) -> Acts:
        """How what is told over time comes out. without: (what was learned without some of the runs, which
        they are)."""
        parts = []
        for fitted, rows in without:
            at = self._own(runs.take(rows))[1]
            parts.append(Acts.of(fitted, self._before, at, seed, MOST // len(without)))
        return Acts.joined(parts)

    def _own(self, runs: Runs) -> tuple[np.ndarray, np.ndarray]:
        """(which of the runs are of the data, where they are there)."""
        ids = self._before.table.column("run_id").combine_chunks()
        at = pc.index_in(runs.table.column("run_id"), value_set=ids)
        return np.flatnonzero(np.asarray(pc.is_valid(at))), pc.drop_null(at).to_numpy()


def taken_by(fitted: Any, runs: Runs) -> Runs:
    """The same runs, each in the company of its longest stretch, by what a method has learned (or a model);
    one with a name that it does not know keeps its time."""
    if not runs.is_stretched:
        return runs
    company = runs.stretches.colocations
    known = company.known_in(*_names(fitted))
    log_times = np.full(len(company), np.nan)
    if known.any():
        log_times[known] = np.log(fitted.predict(company.take(known)))
    return stands_for_longest(runs, log_times)


def _names(fitted: Any) -> tuple[Any, Any]:
    known = getattr(fitted, "predictor", fitted)
    return known.workload_names, known.platform_names


def stands_for_longest(runs: Runs, log_times: np.ndarray) -> Runs:
    """The same runs, each with one company, that of its longest stretch. log_times: (m,) of all stretches;
    where one is NaN the run's own time stays."""
    parts = runs.stretches
    log_ratio = log_times[parts.longest] - parts.log_runtime(log_times)
    changed = ~runs.is_steady & np.isfinite(log_ratio)
    return runs.with_one_company(runs.runtime_seconds * np.exp(np.where(changed, log_ratio, 0.0)))
