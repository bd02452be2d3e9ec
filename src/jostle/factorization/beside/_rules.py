"""What a fitted factorization answers beyond its network: measured times alone, and simple rules.

    log runtime = network alone + share of what was measured alone beyond that + log slowdown
    log slowdown = weighed mean of the network's and of simple rules' + bias + what was measured of the set

Weights, by number of co-runners, are those of runs that neither the network nor the rules had seen. More
co-runners than any run had are answered by rules on smaller sets, see jostle.rules.LargerSets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from jostle.factorization._codes import Codes, slowdown_rows
from jostle.rules import (
    Ground,
    LargerSets,
    Memory,
    SimpleRule,
    SlowdownRows,
)

Slowdown_of = Callable[[SlowdownRows], np.ndarray]  # (n,) log slowdown of rows, all with co-runners


@dataclass(frozen=True)
class BesideNetwork:
    """alone: (cells,) what to add to the network's log runtime alone. network: (most + 1,) weight of the
    network's slowdown by number of co-runners. parts: (weights (most + 1,), rule). bias: (platforms, most +
    1). level: (cells,) of the ground. memory: of sets that were measured. more: what answers about more than
    `most` co-runners; None where every slowdown is 1."""

    alone: np.ndarray
    network: np.ndarray
    parts: tuple[tuple[np.ndarray, SimpleRule], ...]
    bias: np.ndarray
    level: np.ndarray
    memory: Memory | None = None
    more: LargerSets | None = None

    @classmethod
    def silent(cls, alone: np.ndarray, platforms: int) -> BesideNetwork:
        """Every slowdown is 1."""
        return cls(alone, np.zeros(1), (), np.zeros((platforms, 1)), np.zeros(0))

    @property
    def is_silent(self) -> bool:
        return self.more is None

    def log_slowdown(self, rows: SlowdownRows, network: Slowdown_of) -> np.ndarray:
        """(n,) of rows with co-runners."""
        if self.more is None:
            return np.zeros(len(rows))
        past = rows.degree > self.more.most
        if not past.any():
            return self.known(rows, network)
        out = np.empty(len(rows))
        out[~past] = self.known(rows.take(~past), network)
        out[past] = self.more.log_slowdown(
            rows.take(past), self._ground, lambda part: self.known(part, network)
        )
        return out

    def known(self, rows: SlowdownRows, network: Slowdown_of) -> np.ndarray:
        """(n,) of rows with no more co-runners than some run had."""
        degree = np.minimum(rows.degree, len(self.network) - 1)
        total = self.bias[rows.target // self._ground.workloads, degree].copy()
        if self.network.any():
            total += self.network[degree] * network(rows)
        for weight, part in self.parts:
            total += weight[degree] * part.value(rows, self._ground)
        return total if self.memory is None else total + self.memory.of(rows)

    def of_codes(self, codes: Codes, workloads: int, network: Slowdown_of) -> np.ndarray:
        """(n,) log slowdown of codes among so many workloads, all of which the rules know; 0 alone."""
        slowdown = np.zeros(len(codes))
        if len(codes.corunner) and not self.is_silent:
            rows = slowdown_rows(codes, workloads)
            inside = rows.degree > 0
            if not inside.all():
                rows = rows.take(inside)
            slowdown[inside] = self.log_slowdown(rows, network)
        return slowdown

    def of_new_names(
        self, alike: SlowdownRows, own: np.ndarray, network: Slowdown_of
    ) -> np.ndarray:
        """(n,) of rows with names that rules do not know. alike: the rows with the names most like them that
        they do; own: (n,) what the network says of the names themselves."""
        if self.more is None:
            return np.zeros(len(alike))
        past = alike.degree > self.more.most
        degree = np.minimum(alike.degree, len(self.network) - 1)
        total = (
            self.bias[alike.target // self._ground.workloads, degree] + self.network[degree] * own
        )
        for weight, part in self.parts:
            total += weight[degree] * part.value(alike, self._ground)
        if past.any():
            # What is known of larger sets is a matter of their number; the network says how these differ.
            rest = alike.take(past)
            total[past] = replace(self, memory=None).log_slowdown(rest, network)
            total[past] += self.network[degree[past]] * (own[past] - network(rest))
        return total

    @property
    def _ground(self) -> Ground:
        platforms = len(self.bias)
        workloads = len(self.alone) // max(platforms, 1)
        return Ground(platforms, workloads, np.zeros((len(self.alone), 0)), self.level)
