"""Bounds over another mix of platforms or workloads than was measured, where that mix is known.

Two theorems, each for what is known. Let a stratum be the runs of one platform (or workload), N_g the units
of stratum g that are calibrated on, and k_g(t) the weight of them over a threshold t; a new run is of stratum
g with probability Q_g, and within its stratum is drawn as those runs were.

- Nothing is known of how strata were drawn: the threshold is the least t with
  sum_g Q_g (k_g(t) + 1) / (N_g + 1) <= 1 - confidence. Think of one more unit in every stratum: the threshold
  that counts these too is never larger, every unit of a stratum is as likely over it as any other, so that a
  run of the mix is over it with probability sum_g Q_g k'_g / (N_g + 1), which is at most 1 - confidence.
- It is known that strata were drawn with probabilities P_g: weights Q_g / P_g (Tibshirani et al. 2019,
  Conformal prediction under covariate shift, Theorem 2), where the new unit weighs as much as the heaviest.

Where a unit (a window, a set) has runs of several strata, one of its runs, drawn without looking at how long
it took, stands for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.conformal._conformal_rank import one_run_of_each
from jostle.errors import UnknownName, UsageError

KINDS = ("platform", "workload")


def name_codes(names: Sequence[str]) -> np.ndarray:
    """Hash names to (n,) int64, the same in every model: the first eight bytes of the BLAKE2b hash."""
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.array([int.from_bytes(one, "little", signed=True) for one in digests], np.int64)


def codes_of(colocations: Any, kind: str) -> np.ndarray:
    """Return the name code of each co-location's platform or workload, (n,) int64."""
    names = getattr(colocations, f"{kind}_names")
    return name_codes(names)[getattr(colocations, kind)]


@dataclass(frozen=True)
class NameMix:
    """Mix of names that will be asked about.

    by: `platform` or `workload`. shares: of each name, above 0, in sum 1. measured: with which probability a
    run that was measured is of each name, where that is known. of_category: shares of each category of
    questions, where they differ.
    """

    by: str
    shares: Mapping[str, float]
    measured: Mapping[str, float] | None = None
    of_category: Mapping[int, Mapping[str, float]] | None = None

    @classmethod
    def of(
        cls,
        by: str,
        shares: Mapping[str, float],
        known: Sequence[str],
        measured: Mapping[str, float] | None = None,
    ) -> NameMix:
        """Make a mix from shares of the names.

        shares, measured: of any sum. known: the names there are. Raises UnknownName, UsageError.
        """
        mix = _in_sum_one(shares, "shares", by, known)
        if measured is None:
            return cls(by, mix)
        drawn = _in_sum_one(measured, "measured shares", by, known)
        if missing := sorted(set(mix) - set(drawn)):
            raise UsageError(
                f"{missing[0]!r} has a share of the mix and none of what was measured",
                fix="Give its measured share, or leave the measured shares out.",
            )
        return cls(by, mix, drawn)

    @classmethod
    def like(cls, by: str, colocations: Any, category: np.ndarray) -> NameMix:
        """Make the mix that co-locations of the categories (n,) have, each category by itself. Raises
        UsageError if there are none."""
        require_kind(by)
        names, code = getattr(colocations, f"{by}_names"), getattr(colocations, by)

        def shares(at: np.ndarray) -> Mapping[str, float]:
            times = np.bincount(code[at], minlength=len(names)).tolist()
            return cls.of(by, dict(zip(names, times, strict=True)), names).shares

        every = shares(np.arange(len(code)))
        kinds = np.unique(category).tolist()
        return cls(by, every, None, {k: shares(np.flatnonzero(category == k)) for k in kinds})

    def at(self, category: int) -> NameMix:
        """Return the mix of one category."""
        if self.of_category is None:
            return self
        return NameMix(self.by, self.of_category.get(int(category), {}), self.measured)

    def has(self, code: np.ndarray) -> np.ndarray:
        """Tell whether each name, by its code, has a share. Returns (n,) bool."""
        return np.isin(code, name_codes(tuple(self.shares)))

    def weights(
        self, code: np.ndarray, unit: np.ndarray, *, one_of_each: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (rows that count (m,), weight of each, as a share of all with the new unit).

        code: (n,) name codes of runs; unit: (n,) codes of what was drawn as one. one_of_each: one run stands
        for a unit with runs of several strata; else each stratum's part of a unit counts for itself.
        """
        rows = np.arange(len(code))
        parts = np.unique(np.stack([unit, code]), axis=1)
        if one_of_each and (np.diff(parts[0]) == 0).any():
            rows = one_run_of_each(unit)
        rows = rows[self.has(code[rows])]
        part = np.stack([code[rows], unit[rows]])
        parts, of_part, size = np.unique(part, axis=1, return_inverse=True, return_counts=True)
        strata, of_stratum, units = np.unique(parts[0], return_inverse=True, return_counts=True)
        weight = self._each(strata, units)[of_stratum.reshape(-1)] / size
        return rows, weight[of_part.reshape(-1)]

    def _each(self, strata: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Weigh a unit of each stratum, as a share of the weight of all units and the new one."""
        codes, shares = name_codes(tuple(self.shares)), np.array([*self.shares.values()])
        order = np.argsort(codes)
        place = order[np.searchsorted(codes, strata, sorter=order)]
        if self.measured is None:
            return shares[place] / (units + 1)
        ratio = shares / np.array([self.measured[name] for name in self.shares])
        return ratio[place] / (ratio[place] @ units + ratio.max(initial=0.0))


def require_kind(by: str) -> None:
    """Raise UsageError unless a mix can be by this kind of name."""
    if by not in KINDS:
        raise UsageError(f"a mix of {by!r}", fix=f"Known: {', '.join(KINDS)}.")


def _in_sum_one(
    shares: Mapping[str, float], what: str, by: str, known: Sequence[str]
) -> dict[str, float]:
    require_kind(by)
    names = frozenset(known)
    for name, share in shares.items():
        if name not in names:
            raise UnknownName(by, name, tuple(known))
        if not isinstance(share, (int, float, np.number)) or not 0 <= share < np.inf:
            raise UsageError(f"the share of {name!r} is {share!r}", fix="Give a number from 0 up.")
    above = {name: float(share) for name, share in shares.items() if share > 0}
    total = sum(above.values())
    if not total:
        raise UsageError(f"no {by} has a share above 0 in the {what}", fix="Give one to each name.")
    return {name: share / total for name, share in above.items()}
