"""Policies over the lives of jobs: each has a limit, goes to a node when it comes, and stays to its end.

    python -m studies.placement.lives [--laws repeats,crowded] [--loads 0.3,0.7] [-c 0.9]

Printed for each policy: the share of jobs that break their limit, hours of nodes that somebody was on, and
the share of jobs that break the bound that `at` told as they were placed. The model and the rivals learned
from a log of the same names. A policy fills the fullest node that it accepts, and an empty one where it
accepts none; where none is empty the job waits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jostle
from jostle.data import Colocations
from jostle.placement import Fleet, Node, Placement, Request, SetBounds, Standard
from studies.data import one_core
from studies.live.log_bounds import first_companies, rivals_of
from studies.worlds.node_logs import LAWS, NODES, SLOTS, LoggedJob, Names, lives, node_log

RATIOS = (1.2, 1.5, 2.0, 3.0)  # limits, over the time alone
WARM = 50  # jobs that come before and after those that count
# Which of these nodes, who is on each of them, accept a job of this name at a time.
Policy = Callable[[int, dict[int, Sequence[LoggedJob]], float], list[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", default="repeats,inputs,crowded", help="separated by commas")
    parser.add_argument("--loads", default="0.3,0.7", help="of nodes, separated by commas")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-c", "--confidence", type=float, default=0.9)
    options = parser.parse_args()
    one_core()
    print("law and load | policy | limits broken | node hours | bounds broken")
    for law in options.laws.split(","):
        world = World(law, options.seed, options.confidence)
        for load in map(float, options.loads.split(",")):
            for name, policy in world.policies().items():
                cells = world.lived(policy, load, options.jobs)
                print(f"{law} {load:g}", name, *cells, sep=" | ", flush=True)


class World:
    """A law, a log of it, and what was learned from that."""

    def __init__(self, law: str, seed: int, c: float) -> None:
        self.seed, self.c, at = seed, c, list(LAWS).index(law)
        self.names = Names.of(LAWS[law], np.random.default_rng([seed, at]))
        log = node_log(law, 2000, seed)
        self.known, self.platforms = log.colocations.workload_names, log.colocations.platform_names
        self.sets = SetBounds(jostle.fit(log, seed=seed), Standard(c))
        self.rivals = rivals_of(first_companies(log), log.runtime_seconds)
        ratio = np.random.default_rng([seed, at, 1]).choice(RATIOS, len(self.names.seconds))
        self.limit = ratio * self.names.seconds

    def policies(self) -> dict[str, Policy]:
        """Each by its name, simple ones first."""
        return {
            "one a node": lambda name, here, clock: [],
            "at most two a node": lambda name, here, clock: [n for n in here if len(here[n]) < 2],
            **{name: self._all_below(rival) for name, rival in self.rivals.items()},
            "rank": self._ranked,
        }

    def lived(self, policy: Policy, load: float, jobs: int) -> list[str]:
        """Figures of a policy."""
        told: dict[tuple[int, float, int], float] = {}

        def put(name: int, here: Sequence[Sequence[LoggedJob]], clock: float) -> int | None:
            some = {n: on for n, on in enumerate(here) if 0 < len(on) < SLOTS}
            good = policy(name, some, clock) if some else []
            empty = [n for n, on in enumerate(here) if not on]
            if not good and not empty:
                return None
            node = max(good, key=lambda n: len(here[n])) if good else empty[0]
            there = Placement(Fleet((self._node(node, here[node], clock),)), self.sets)
            (end,) = there.at([self._request(name, "it")]).items
            told[node, clock, name] = getattr(end, "bound_seconds", None) or np.inf
            return node

        random = np.random.default_rng([self.seed, 2])
        done = lives(self.names, jobs, random, put, load, WARM)
        late = np.mean([job.seconds > self.limit[job.name] for job in done])
        over = [job.seconds > told[job.node, job.start, job.name] for job in done]
        hours = sum(_hours([job for job in done if job.node == node]) for node in range(NODES))
        return [f"{late:.3f}", f"{hours:.1f}", f"{np.mean(over):.3f}"]

    def _request(self, name: int, of: str, elapsed: float | None = None) -> Request:
        limit = float(self.limit[name])
        return Request(f"job{name:02d}", of, deadline_seconds=limit, elapsed_seconds=elapsed)

    def _node(self, node: int, on: Sequence[LoggedJob], clock: float) -> Node:
        tenants = tuple(
            self._request(job.name, f"{n}", clock - job.start) for n, job in enumerate(on)
        )
        return Node(f"{node}", ("fast", "slow")[node % 2], SLOTS, tenants=tenants)

    def _ranked(self, name: int, here: dict[int, Sequence[LoggedJob]], clock: float) -> list[int]:
        nodes = tuple(self._node(node, on, clock) for node, on in here.items())
        ranked = Placement(Fleet(nodes), self.sets).rank([self._request(name, "it")], top=NODES)
        return [int(one.node) for one in ranked[0].rows()]

    def _all_below(self, rival: Any) -> Policy:
        """Accept where the rival's bounds of all who would be there are below their limits."""

        def accepts(name: int, here: dict[int, Sequence[LoggedJob]], clock: float) -> list[int]:
            sets = [(node, [name, *(job.name for job in on)]) for node, on in here.items()]
            people = [(node, who, n) for node, who in sets for n in range(len(who))]
            asked = Colocations.from_columns(
                workload=[f"job{who[n]:02d}" for _, who, n in people],
                platform=[("fast", "slow")[node % 2] for node, _, _ in people],
                corunners=[[f"job{o:02d}" for o in (*w[:n], *w[n + 1 :])] for _, w, n in people],
            )
            most = rival.predict_and_bound(asked, self.c)[1]
            late = {
                node
                for (node, who, n), m in zip(people, most, strict=True)
                if m > self.limit[who[n]]
            }
            return [node for node in here if node not in late]

        return accepts


def _hours(jobs: Sequence[LoggedJob]) -> float:
    """Hours in which any of them ran."""
    total, until = 0.0, 0.0
    for job in sorted(jobs, key=lambda one: one.start):
        end = job.start + job.seconds
        total += max(end - max(job.start, until), 0.0)
        until = max(until, end)
    return total / 3600


if __name__ == "__main__":
    main()
