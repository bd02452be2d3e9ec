"""How fast workloads are ranked and assigned, on one core.

    python benchmarks/placement.py MODEL [--nodes 5000] [--requests 1000] [--platforms 200] [--slots 2]

The model is any folder written by `jostle fit`. Nodes, tenants, requests and their limits are drawn with a
seed. Goals: rank over 5 000 nodes with their tenants in 50 ms; assign 1 000 requests to 200 platforms in 5 s,
10 000 to 2 000 in two minutes.
"""

from __future__ import annotations

import argparse
import time

from _data import one_core

LIMITS = (1.1, 1.25, 1.5, 2.0)


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
