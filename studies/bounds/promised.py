"""Every promise of every verb, on ten made laws that differ in kind and on public pairs: asked, and kept.

    python -m studies.bounds.promised [--draws 20] [--laws NAME,...] [--method NAME] [--fitted 900]
        [--workers 1] [--kept FILE]

24 workloads on 8 platforms, alone or beside one or two others, with errors of five kinds. Each draw is a
campaign of its own, learned by `jostle.fit` with a method that adds up effects and leaves sets out in turn,
as the default does, but is quick, unless --method names another. Then runs to come are asked about, and
requests with limits (1.2, 1.5, 2 or 3 times alone, of four in five) about a fleet of 12 nodes, some with a
tenant; the first 16 of them are assigned; whatever is chosen is then measured. Beside them stand the
quantile by name and platform, conformalised quantiles of boosted trees, and at most two a node. Shares of
each draw, their mean over draws and laws, and its standard error over draws (each the mean of its laws).
--kept: a file that every draw of a law is added to, and whose draws are not made again; Ctrl-C prints what
was drawn until then. Public ($JOSTLE_DATA) are pairs measured once; those that were not learned count.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

import jostle
from jostle.learn import method_named
from jostle.operations import quantile_rivals
from jostle.placement import Node, Placement, Request
from studies.bounds.kept import add_options, drawn
from studies.worlds.noisy_worlds import LAWS, Additive, MeasuredWorld, NoisyWorld

CONFIDENCES = (0.9, 0.95, 0.99)
PUBLIC = ("gavel-oracle", "gavel-simulation", "magus13-runs")
TO_COME, NODES, REQUESTS, ASSIGNED, TOGETHER = 1500, 12, 24, 16, 6
LIMITS = (1.2, 1.5, 2.0, 3.0, None)
PROMISED = "yes"
TWO = "at most two a node"
# (verb, --promise) -> what is counted; whether it is promised.
ROWS = {
    ("predict", ""): ("runs at or under their bound", PROMISED),
    ("walltime", "each"): ("runs on a random node within the time to ask for", PROMISED),
    ("safe", "each"): ("not both accepted and over the limit, of those asked", PROMISED),
    ("safe --together", "joint"): ("not both accepted and anybody over the limit", PROMISED),
    ("rank", "chosen"): ("first of the list at or under its bound", "where it says so"),
    ("rank", "each"): ("first of the list at or under its bound", "no"),
    ("assign", "chosen"): ("placed, at or under the bound", "where it says so"),
    ("assign", "each"): ("placed, at or under the bound", "no"),
    ("rank", "chosen, limits"): ("first of the list within its limit", "where it says so"),
    **{(name, ""): ("runs at or under their bound", "no") for name in quantile_rivals()},
    (TWO, ""): ("placed at random, within the limit", "no"),
}
Found = dict[tuple[str, str], dict[str, list[float]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--laws", default=",".join((*LAWS, *PUBLIC)))
    parser.add_argument("--method")
    parser.add_argument("--fitted", type=int, default=900)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    chosen, seeds = options.laws.split(","), range(options.seed, options.seed + options.draws)
    known = drawn(_rows, ((law, seed) for seed in seeds for law in chosen), options)
    for what, some in (("made laws", LAWS), ("public", PUBLIC)):
        if laws := [law for law in chosen if law in some]:
            _show(what, laws, known, options)


def _rows(options: Any, law: str, seed: int) -> list[list[Any]]:
    rows = ([*key, value] for key, value in of_draw(law, seed, options).items())
    return [row for row in rows if np.isfinite(row[-1])]


def _show(what: str, laws: list[str], known: dict[Any, list[list[Any]]], options: Any) -> None:
    shares: dict[Any, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    by_law: dict[Any, list[float]] = defaultdict(list)
    mine = {key: rows for key, rows in known.items() if key[0] in laws}
    for (law, seed), rows in mine.items():
        for *key, value in rows:
            shares[tuple(key)][seed].append(value)
            by_law[(*key, law)].append(value)
    draws = len({seed for _, seed in mine})
    method = options.method or "additive effects"
    print(f"{len(laws)} {what}, {draws} draws, {options.fitted} runs, {method}\n")
    heads = "--promise | counted | asked | promised | kept | s.e. | least of a law | answered"
    print(f"verb of {what} | {heads}")
    for confidence in CONFIDENCES:
        for (verb, promise), (counted, is_promised) in ROWS.items():
            key = (confidence, verb, promise, "kept")
            kept, error = _mean(shares[key])
            each = (np.mean(by_law[(*key, law)]) for law in laws if (*key, law) in by_law)
            answered, _ = _mean(shares[(confidence, verb, promise, "answered")])
            cells = [f"{kept:.3f}", f"{error:.3f}", f"{min(each, default=np.nan):.3f}"]
            cells = ["–" if "nan" in cell else cell for cell in (*cells, f"{answered:.0%}")]
            # A dash: nothing was promised.
            print(verb, promise or "–", counted, f"{confidence:g}", is_promised, *cells, sep=" | ")
    print("\nlaw | errors | kept at 0.9 | 0.95 | 0.99 | margin at 0.9 | 0.95 | 0.99")
    for law in laws:
        cells = [
            f"{np.mean(by_law[c, 'predict', '', name, law] or [np.nan]):.3f}"
            for name in ("kept", "margin")
            for c in CONFIDENCES
        ]
        print(law, _world(law, 0).kind, *cells, sep=" | ")
    print()


def _mean(of_seeds: dict[int, list[float]]) -> tuple[float, float]:
    """(mean, its standard error) over draws, each the mean of its laws."""
    means = np.array([np.mean(values) for values in of_seeds.values()])
    if len(means) < 2:
        return float(means.mean()) if len(means) else float("nan"), float("nan")
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def _world(law: str, seed: int) -> NoisyWorld | MeasuredWorld:
    return NoisyWorld(law, seed) if law in LAWS else MeasuredWorld(law, seed)


def of_draw(law: str, seed: int, options: Any) -> dict[tuple[Any, ...], float]:
    """{(confidence, verb, promise, measure): share}."""
    world = _world(law, seed)
    method = Additive() if options.method is None else method_named(options.method)()
    learned = world.runs(options.fitted)
    model = jostle.fit(learned, method, seed=seed)
    come, found = world.runs(TO_COME), {}
    r = np.random.default_rng([seed, 9])
    nodes, requests = _asked(world, r)
    for confidence in CONFIDENCES:
        bounds = model.bound(come.colocations, confidence)
        valid, took = bounds.is_valid, come.runtime_seconds
        found[confidence, "predict", "", "answered"] = float(valid.mean())
        if valid.any():
            found[confidence, "predict", "", "kept"] = float(
                np.mean((took <= bounds.seconds)[valid])
            )
            margin = jostle.conformal.margin(bounds.seconds[valid], took[valid])
            found[confidence, "predict", "", "margin"] = margin
        acts = {
            "each": _acts(
                world,
                jostle.place(model, nodes, confidence=confidence, promise="each"),
                requests,
                r,
            ),
            "chosen": _acts(world, jostle.place(model, nodes, confidence=confidence), requests, r),
            "joint": _together(
                world, jostle.place(model, nodes, confidence=confidence, promise="joint"), r
            ),
        }
        for promise, mine in acts.items():
            for (verb, note), (kept, of, there) in mine.items():
                key = confidence, verb, promise + note
                asked = {"safe --together": TOGETHER, "assign": ASSIGNED}.get(verb, REQUESTS)
                found[*key, "kept"] = kept / of if of else float("nan")
                found[*key, "answered"] = there / asked
    # After all else, so that what the world draws for that stays the same.
    placed = _two_a_node(world, nodes, requests, r)
    for confidence in CONFIDENCES:
        found[confidence, TWO, "", "kept"], found[confidence, TWO, "", "answered"] = placed
        for name, rival in quantile_rivals().items():
            told = rival.of(learned, seed).predict_and_bound(come.colocations, confidence)[1]
            valid = np.isfinite(told)
            found[confidence, name, "", "answered"] = float(valid.mean())
            if valid.any():
                kept = (come.runtime_seconds <= told)[valid].mean()
                found[confidence, name, "", "kept"] = float(kept)
    return found


def _two_a_node(
    world: NoisyWorld | MeasuredWorld,
    nodes: list[Node],
    requests: list[Request],
    r: np.random.Generator,
) -> tuple[float, float]:
    """Place each on a random node with at most one other. Returns (share within their limit, a slowdown of a
    run alone there, share of those whose time is known)."""
    kept = []
    for one in requests:
        free = [node for node in nodes if len(node.tenants) < 2]
        node = free[int(r.integers(0, len(free)))]
        beside = [tenant.workload for tenant in node.tenants]
        alone = world.took(node.platform, one.workload, [])
        took = world.took(node.platform, one.workload, beside)
        if np.isfinite(took) and (one.slowdown is None or np.isfinite(alone)):
            kept.append(one.slowdown is None or took <= one.slowdown * alone)
    return float(np.mean(kept)) if kept else float("nan"), len(kept) / len(requests)


def _asked(
    world: NoisyWorld | MeasuredWorld, r: np.random.Generator
) -> tuple[list[Node], list[Request]]:
    def one(names: Sequence[str]) -> str:
        return names[int(r.integers(0, len(names)))]

    def tenant() -> tuple[Request, ...]:
        return (Request(one(world.workload_names)),) if r.random() < 0.5 else ()

    nodes = [
        Node(f"n{i}", one(world.platform_names), world.most, tenants=tenant()) for i in range(NODES)
    ]
    limits = [LIMITS[i] for i in r.integers(0, len(LIMITS), REQUESTS).tolist()]
    who = [one(world.workload_names) for _ in range(REQUESTS)]
    return nodes, [
        Request(w, f"r{i}", slowdown=s) for i, (w, s) in enumerate(zip(who, limits, strict=True))
    ]


def _acts(
    world: NoisyWorld | MeasuredWorld,
    placed: Placement,
    requests: list[Request],
    r: np.random.Generator,
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """{(verb, note): (how many were kept, of how many, of how many asked there was an answer)}."""
    at = {node.name: node for node in placed.fleet.nodes}
    counts: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])

    def count(verb: str, took: float, bound: float | None, note: str = "") -> None:
        """What nobody measured tells nothing; without a bound nothing is broken."""
        if np.isfinite(took):
            counts[verb, note][0] += bound is None or took <= bound
            counts[verb, note][1] += 1
        counts[verb, note][2] += 1

    is_plain = placed.standard.promise == "each"
    for ranking in placed.rank(requests):
        # Where nothing is promised of it, nothing is counted.
        if ranking.best is not None and (is_plain or "replayed" in ranking.promise):
            best, node = ranking.best, at[ranking.best.node]
            took = world.took(node.platform, ranking.workload, [t.workload for t in node.tenants])
            count("rank", took, best.bound_seconds)
            if best.limit_seconds is not None and not is_plain:
                count("rank", took, best.limit_seconds, ", limits")
    plan = placed.assign(requests[:ASSIGNED], limit_seconds=0.1)
    by_node: dict[str, list[Any]] = defaultdict(list)
    for one in plan.placed:
        by_node[one.node].append(one)
    if is_plain or "replayed" in plan.promise:
        for name, there in by_node.items():
            for one in there:
                others = [o.workload for o in there if o is not one]
                others += [t.workload for t in at[name].tenants]
                took = world.took(at[name].platform, one.workload, others)
                count("assign", took, one.bound_seconds)
    if is_plain:
        items: Any = placed.safe(requests, explain=False).items
        for item in items:
            one = item.answers[int(r.integers(0, len(at)))]
            node = at[one.node]
            took = world.took(node.platform, one.workload, [t.workload for t in node.tenants])
            limit = one.members[-1].limit_seconds if one.members else None
            count("safe", took, limit if one.is_safe else None)
        for row in placed.walltime(requests).rows:
            node = placed.fleet.nodes[int(r.integers(0, len(at)))]
            took = world.took(node.platform, row.workload, [t.workload for t in node.tenants])
            # Whole seconds say little of runs under one: the bound itself.
            if row.bound_seconds is not None:
                count("walltime", took, row.bound_seconds)
    return {key: (kept, of, there) for key, (kept, of, there) in counts.items()}


def _together(
    world: NoisyWorld | MeasuredWorld, placed: Placement, r: np.random.Generator
) -> dict[tuple[str, str], tuple[float, float, float]]:
    kept = of = 0.0
    workloads = world.workload_names
    for number in range(TOGETHER):
        node = placed.fleet.nodes[int(r.integers(0, NODES))]
        pair = [
            Request(
                workloads[int(r.integers(0, len(workloads)))],
                f"p{number}-{i}",
                slowdown=LIMITS[int(r.integers(0, 4))],
            )
            for i in range(2)
        ]
        found = placed.safe(pair, on=node.name, together=True)
        tenants, late = [t.workload for t in node.tenants], False
        names = [one.workload for one in pair]
        for place, one in enumerate(found.answers):
            limit = next((m.limit_seconds for m in one.members if m.name == pair[place].name), None)
            others = [n for i, n in enumerate(names) if i != place] + tenants
            took = world.took(node.platform, one.workload, others)
            late |= limit is not None and took > limit
        kept, of = kept + (not (found.is_safe and late)), of + 1
    return {("safe --together", ""): (kept, of, of)}


if __name__ == "__main__":
    main()
