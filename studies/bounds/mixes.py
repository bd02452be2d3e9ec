"""Coverage over mixes of names other than the measured one, of plain bounds and of bounds for that mix.

    python -m studies.bounds.mixes [--data PITOT] [--observed 0.5] [--mixes 40] [--confidence 0.9] [--seed 0]

On the public Pitot data, through `jostle.fit` and `Model.for_mix`. Each mix is of 1, 5 or 25 platforms (or
workloads), drawn among all or among the tenth with the widest errors, with shares drawn evenly from all that
there are. The runs that were not observed are asked about, each weighed by the share of its name; coverage
and margin are means over the numbers of co-runners, then over mixes. `known` are mixes where it is known how
often each name was measured: here its share of all runs with as many co-runners.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from studies.data import one_core, pitot_folder
from studies.data.pitot import read_pitot

SIZES = (1, 5, 25)
WAYS = ("plain", "for the mix", "for the mix, known")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", help="the folder with the public Pitot files")
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--mixes", type=int, default=40, help="of each kind")
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    one_core()
    import jostle
    from jostle.runs import split_rows

    runs = read_pitot(options.data or pitot_folder()).ok()
    learn, asked = split_rows(runs, (options.observed, 1 - options.observed), options.seed)
    model = jostle.fit(runs.take(learn), jostle.Factorization(), seed=options.seed)
    asked = runs.take(asked)
    late = np.log(asked.runtime_seconds) - np.log(model.predict(asked.colocations))
    print(
        f"{len(learn)} runs learned from, {len(asked)} asked about, confidence {options.confidence}"
    )
    head = "".join(f" {way}: covered | worst tenth | no bound | margin |" for way in WAYS)
    print(f"| mix of | among |{head}\n|{'---|' * (2 + 4 * len(WAYS))}")
    random = np.random.default_rng([options.seed, 5])
    for by in ("platform", "workload"):
        names = getattr(runs.colocations, f"{by}_names")
        code = getattr(asked.colocations, by)
        wide = np.argsort([-np.nan_to_num(late[code == k].std()) for k in range(len(names))])
        for number in SIZES:
            for among, pool in (("all", wide), ("the widest tenth", wide[: len(names) // 10])):
                if number <= len(pool):
                    results = [
                        one_mix(model, runs, asked, by, drawn(random, pool, number, names), options)
                        for _ in range(options.mixes)
                    ]
                    told(f"{number} {by}{'s' * (number > 1)} | {among}", np.array(results))


def drawn(random: Any, pool: np.ndarray, number: int, names: tuple[str, ...]) -> dict[str, float]:
    """Shares of names of a pool."""
    chosen = random.choice(pool, number, replace=False)
    return {
        names[k]: float(s) for k, s in zip(chosen, random.dirichlet(np.ones(number)), strict=True)
    }


def one_mix(
    model: Any, runs: Any, asked: Any, by: str, mix: dict[str, float], options: Any
) -> list[tuple[float, float, float]]:
    """(coverage of what has a bound, share without one, margin) of each of WAYS."""
    names = (
        asked.colocations.platform_names if by == "platform" else asked.colocations.workload_names
    )
    code = getattr(asked.colocations, by)
    rows = np.flatnonzero(np.isin(code, [names.index(name) for name in mix]))
    asked, code = asked.take(rows), code[rows]
    degree = asked.colocations.number_of_corunners
    everyone = getattr(runs.colocations, by)
    results: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    for d in np.unique(degree):
        at = np.flatnonzero(degree == d)
        times = np.bincount(code[at], minlength=len(names))
        # The share of each name that was measured with as many co-runners; what was not cannot be asked of.
        share = np.array([mix.get(name, 0.0) for name in names]) * (times > 0)
        if not share.sum():
            continue
        weight = (share / np.maximum(times, 1))[code[at]] / share.sum()
        there = {name: s for name, s in zip(names, share.tolist(), strict=True) if s > 0}
        n = np.bincount(everyone[runs.colocations.number_of_corunners == d], minlength=len(names))
        measured = {name: int(k) for name, k in zip(names, n, strict=True) if k > 0}
        for way, answering in zip(
            WAYS,
            (model, model.for_mix(there, by), model.for_mix(there, by, measured=measured)),
            strict=True,
        ):
            bounds = answering.bound(asked.colocations.take(at), options.confidence)
            ok = bounds.is_valid
            ratio = bounds.seconds[ok] / asked.runtime_seconds[at][ok]
            mass = weight[ok] / max(weight[ok].sum(), 1e-12)
            covered = float(mass @ (ratio >= 1)) if ok.any() else np.nan
            margin = float(mass @ np.maximum(ratio - 1, 0)) if ok.any() else np.nan
            results[way].append((covered, 1 - float(weight[ok].sum()), margin))
    return [tuple(np.nanmean(np.array(results[way]), axis=0)) for way in WAYS]


def told(title: str, results: np.ndarray) -> None:
    """results: (mixes, ways, 3)."""
    cells = []
    for k in range(len(WAYS)):
        covered, without, margin = results[:, k].T
        cells.append(
            f"{np.nanmean(covered):.3f} | {np.nanquantile(covered, 0.1):.3f} | "
            f"{without.mean():.2f} | {np.nanmean(margin):.3f}"
        )
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
