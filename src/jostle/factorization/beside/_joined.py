"""Names that joined a fitted model after its rules were learned, and what was measured of cells since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.factorization._codes import Codes, slowdown_rows
from jostle.factorization.beside._rules import BesideNetwork
from jostle.rules import SlowdownRows, looked_up


@dataclass(frozen=True)
class Joined:
    """workload (w,), platform (p,): codes among the names that rules were learned with, of the most alike
    such name where the name is not one of them, as new_workload (w,) and new_platform (p,) say. sizes:
    (2,) how many workloads and platforms rules know. cell: (c,) ascending, platform * w + workload;
    beyond: (c,) log seconds to add to what the cell takes alone."""

    workload: np.ndarray
    platform: np.ndarray
    new_workload: np.ndarray
    new_platform: np.ndarray
    sizes: np.ndarray
    cell: np.ndarray
    beyond: np.ndarray

    @classmethod
    def none(cls, workloads: int, platforms: int) -> Joined:
        """As after fitting."""
        every = np.arange(workloads), np.arange(platforms)
        new = np.zeros(workloads, bool), np.zeros(platforms, bool)
        nothing = np.zeros(0, np.int64), np.zeros(0)
        return cls(*every, *new, np.array([workloads, platforms]), *nothing)

    def more_alone(self, cell: np.ndarray) -> np.ndarray:
        """(n,) log seconds to add alone in the cells (n,), as measured since."""
        return looked_up(self.cell, self.beyond, cell)

    def beyond_alone(self, codes: Codes, rules: BesideNetwork | None) -> np.ndarray:
        """(n,) log seconds to add to what the network says alone."""
        beyond = self.more_alone(
            codes.platform.astype(np.int64) * len(self.workload) + codes.workload
        )
        if rules is not None and len(rules.alone):
            known = ~(self.new_workload[codes.workload] | self.new_platform[codes.platform])
            there = self.platform[codes.platform] * self.sizes[0]
            beyond += known * rules.alone[there + self.workload[codes.workload]]
        return beyond

    def log_slowdown(
        self, codes: Codes, rules: BesideNetwork | None, network: Callable[[Codes], np.ndarray]
    ) -> np.ndarray:
        """(n,) where names joined: theirs are answered by the network and, as far as rules count, by rules on
        the names most like them. network: log slowdown of codes as they are now."""
        if rules is None or not len(codes.corunner):
            return network(codes)
        if rules.is_silent:
            return np.zeros(len(codes))
        new = self.is_new(codes)
        alike = Codes(
            self.workload[codes.workload],
            self.platform[codes.platform],
            self.workload[codes.corunner],
            codes.row,
        )
        w = int(self.sizes[0])
        now_workload = _inverse(self.workload, self.new_workload, w)
        now_platform = _inverse(self.platform, self.new_platform, int(self.sizes[1]))

        def now(rows: SlowdownRows) -> np.ndarray:
            names = now_workload[rows.target % w], now_workload[rows.corunner % w]
            return network(Codes(names[0], now_platform[rows.target // w], names[1], rows.row))

        out = np.zeros(len(codes))
        if not new.all():
            out[~new] = rules.of_codes(alike.take(~new), w, now)
        if new.any():
            mine, like = codes.take(new), slowdown_rows(alike.take(new), w)
            log_ratio, beside = np.zeros(len(mine)), like.degree > 0
            if beside.any():
                own = network(mine.take(beside))
                log_ratio[beside] = rules.of_new_names(like.take(beside), own, now)
            out[new] = log_ratio
        return out

    def is_new(self, codes: Codes) -> np.ndarray:
        """(n,) bool: a name in the row is not one that rules know."""
        new = self.new_workload[codes.workload] | self.new_platform[codes.platform]
        new[codes.row[self.new_workload[codes.corunner]]] = True
        return new


def _inverse(code: np.ndarray, new: np.ndarray, count: int) -> np.ndarray:
    """(count,) the codes now of the names that rules know."""
    inverse = np.zeros(count, np.int64)
    inverse[code[~new]] = np.flatnonzero(~new)
    return inverse
