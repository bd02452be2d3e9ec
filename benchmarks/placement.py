"""How fast workloads are ranked and assigned, on one core.

    python benchmarks/placement.py MODEL [--nodes 5000] [--requests 1000] [--platforms 200] [--slots 2]

The model is any folder written by `jostle fit`. Nodes, tenants, requests and their limits are drawn with a
seed. Goals: rank over 5 000 nodes with their tenants in 50 ms; assign 1 000 requests to 200 platforms in 5 s,
10 000 to 2 000 in two minutes.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from _data import one_core

LIMITS = (1.1, 1.25, 1.5, 2.0)


ROWS = 600_000


def rows_of_bounds(model: Any, random: Any) -> None:
    """Pairs that were never asked about before, each of which is a row for either side."""
    import numpy as np

    from jostle.placement import SetBounds, Standard

    sets = SetBounds(model, Standard())
    members = np.sort(random.integers(0, len(sets.workload_names), (ROWS // 2, 2)), axis=1)
    platform = random.integers(0, len(sets.platform_names), len(members))
    asked = sets._colocations(platform, members)
    for what in ("in one call", "the same again"):
        began = time.process_time()
        model.bound(asked, 0.9)
        spent = time.process_time() - began
        print(
            f"{len(asked)} rows of bounds {what}: {len(asked) / spent / 1e6:.2f} million/s of CPU"
        )
    began = time.process_time()
    sets.of(platform, members)
    spent = time.process_time() - began
    print(
        f"{len(members)} sets, alike ones once: {2 * len(members) / spent / 1e6:.2f} million rows/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--platforms", type=int, default=200)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    one_core()
    import numpy as np

    import jostle
    from jostle.placement import Node, Request

    model = jostle.load(given.model)
    names, places = model.predictor.workload_names, model.predictor.platform_names
    random = np.random.default_rng(given.seed)

    def request(name: str) -> Request:
        return Request(str(random.choice(names)), name, slowdown=float(random.choice(LIMITS)))

    nodes = []
    for number in range(given.nodes):
        tenants = tuple(request(f"t{number}.{n}") for n in range(random.integers(0, given.slots)))
        nodes.append(Node(f"n{number}", str(random.choice(places)), given.slots, tenants=tenants))
    placed = jostle.place(model, nodes)
    placed.rank(request("first"))
    asked = request("again")
    for what in ("another workload", "the same again"):
        wall, began = time.perf_counter(), time.process_time()
        found = placed.rank(asked)[0]
        print(
            f"rank over {given.nodes} nodes, {what}: {1e3 * (time.process_time() - began):.0f} ms of CPU, "
            f"{1e3 * (time.perf_counter() - wall):.0f} ms ({len(found)} safe)"
        )
    rows_of_bounds(model, random)
    empty = [Node(f"n{n}", str(random.choice(places)), given.slots) for n in range(given.platforms)]
    requests = [request(f"r{n}") for n in range(given.requests)]
    fresh = jostle.place(model, empty)
    wall, began = time.perf_counter(), time.process_time()
    result = fresh.assign(requests)
    print(
        f"assign {given.requests} requests to {given.platforms} platforms: "
        f"{time.process_time() - began:.1f} s of CPU, {time.perf_counter() - wall:.1f} s; "
        f"{len(result.placed)} placed of at most {result.worth_at_most:.0f}, "
        f"{fresh.sets.rows / 1e6:.2f} million rows of bounds"
    )


if __name__ == "__main__":
    main()
