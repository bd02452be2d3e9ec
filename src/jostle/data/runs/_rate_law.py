"""A plain law of rates: how long runs take in each company, learned from runs whose company changed.

Work is done at the rate 1 / time, so a run of stretches with shares f_k of its time takes T = 1 / sum of
f_k / t_k, where t_k is how long it would take in that company throughout. A law of the t_k, additive in
logarithms, is learned from all runs through that equation by Gauss-Newton steps; then each run of several
stretches stands for its longest one, with the time that the law has for that company times the run's own
residual: log t_k + log T - log T(law). A run counts as one, whatever its number of stretches, and one of a
single company stays what it was measured to be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.data.runs._colocations import Colocations
from jostle.data.runs._runs import Runs
from jostle.data.runs._segments import Stretches

# Prior standard deviations of logarithms, of what each part of the plain law may add.
_PRIOR = {"workload": 10.0, "platform": 1.0, "cell": 0.3, "sensitivity": 0.3}
_PRIOR |= {"pressure": 0.3, "number": 0.2, "pair": 0.15}
_STEPS = 6
_LEARNED = 200_000  # runs that the plain law is learned from
_HUBER = 2.5  # standard deviations
SHARES = (0.0, 0.5, 1.0)  # of what the law says that co-runners cost, that are tried
TIME_BLOCKS = 8  # of a log, of which every second one is left out
FEWEST = 20  # runs in either half, to tell how far the law is believed
EVIDENCE = 2.0  # standard errors by which it must be closer than no cost at all


@dataclass(frozen=True)
class PlainLaw:
    """Additive law of log runtimes.

    log t = workload + platform + cell + per co-runner (sensitivity + pressure + pair) + number of co-runners.

    workload_names, platform_names: sorted. keys: of each part the sorted codes that were met. weights: of all
    of them, part by part.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    keys: dict[str, np.ndarray]
    weights: np.ndarray

    @classmethod
    def of(cls, runs: Runs, seed: int = 0) -> PlainLaw:
        """Learn from runs with status ok, and whose co-runners are known."""
        runs = runs.take(~runs.unknown_corunners) if runs.unknown_corunners.any() else runs
        if len(runs) > _LEARNED:
            runs = runs.take(np.random.default_rng(seed).choice(len(runs), _LEARNED, replace=False))
        law = cls._learned(runs)
        return law._believed(_share_believed(runs))

    @classmethod
    def _learned(cls, runs: Runs) -> PlainLaw:
        parts, observed = runs.stretches, np.log(runs.runtime_seconds)
        c = parts.colocations
        keys = {name: np.unique(code) for name, (_, code) in _parts(c).items()}
        law = cls(c.workload_names, c.platform_names, keys, np.zeros(sum(map(len, keys.values()))))
        return replace(law, weights=law._fitted(parts, observed))

    def _believed(self, share: float) -> PlainLaw:
        """Return the same with this share of what co-runners cost."""
        of_names = ("workload", "platform", "cell")
        factor = [np.full(len(k), 1 if n in of_names else share) for n, k in self.keys.items()]
        return replace(self, weights=self.weights * np.concatenate(factor))

    def log_times(self, colocations: Colocations) -> np.ndarray:
        """Return (n,) log seconds but for a constant; parts that were never met add nothing."""
        recoded = _recoded(colocations, self.workload_names, self.platform_names)
        return self._design(recoded) @ self.weights

    def of_longest(self, runs: Runs) -> Runs:
        """Return those with status ok, each in the company of its longest stretch."""
        runs = runs.ok()
        if runs.is_stretched:
            return stands_for_longest(runs, self.log_times(runs.stretches.colocations))
        return runs

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


def time_blocks(runs: Runs, blocks: int) -> np.ndarray:
    """Number the parts of a log by the time at which runs began, each part with as many runs. blocks: how
    many parts; runs without a time are first. Returns (n,) int64."""
    start = runs.table.column("measured_at").cast("int64").fill_null(0).to_numpy()
    rank = np.argsort(np.argsort(start, kind="stable"), kind="stable")
    return rank * blocks // max(len(runs), 1)


def _share_believed(runs: Runs) -> float:
    """Return all of what the law says that co-runners cost, or none: all where that is closest about runs of
    other times, each over the median of its workload. What is closest when half of it is believed is no law
    of rates, but that some co-runners and some sizes of work come at the same time."""
    half = time_blocks(runs, TIME_BLOCKS) % 2
    error = np.full((len(SHARES), len(runs)), np.nan)
    for one in (0, 1):
        known, asked = np.flatnonzero(half != one), np.flatnonzero(half == one)
        if len(known) < FEWEST or len(asked) < FEWEST:
            return 1.0
        some = runs.take(known)
        law, rest = PlainLaw._learned(some), runs.take(asked)
        names = law.workload_names
        for place, share in enumerate(SHARES):
            own = law._believed(share)
            off = [
                np.log(each.runtime_seconds)
                - each.stretches.log_runtime(own.log_times(each.stretches.colocations))
                for each in (some, rest)
            ]
            code = some.colocations.recode(names, law.platform_names)[0]
            usual = {c: np.median(off[0][code == c]) for c in np.unique(code).tolist()}
            mine = rest.colocations.recode(names, law.platform_names)[0]
            centre = np.array([usual.get(c, np.nan) for c in mine.tolist()])
            error[place, asked] = np.abs(off[1] - centre)
    best = int(np.argmin(np.nanmean(error, axis=1)))
    gain = error[0] - error[best]
    gain = gain[np.isfinite(gain)]
    if not len(gain) or gain.mean() <= EVIDENCE * gain.std() / np.sqrt(len(gain)):
        return 0.0
    return float(SHARES[best] == 1.0)


def _recoded(c: Colocations, workloads: tuple[str, ...], platforms: tuple[str, ...]) -> Colocations:
    """Express co-locations in other vocabularies; unknown names get a code of which nothing was learned."""
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
    """Return {part: (row (k,), code (k,))}: what is added up in each row."""
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


def stands_for_longest(runs: Runs, log_times: np.ndarray) -> Runs:
    """Return the same runs, each with one company, that of its longest stretch. log_times: (m,) of all
    stretches; where one is NaN the run's own time stays."""
    parts = runs.stretches
    log_ratio = log_times[parts.longest] - parts.log_runtime(log_times)
    changed = ~runs.is_steady & np.isfinite(log_ratio)
    return runs.with_one_company(runs.runtime_seconds * np.exp(np.where(changed, log_ratio, 0.0)))
