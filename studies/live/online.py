"""What a model knows of new names and new runs that it learns without being fitted again.

    python -m studies.live.online [--observed 0.5] [--names 0.2] [--refit | --suggest]

On the public Pitot data, through `jostle.fit` and `Model.update`. A fifth of the workloads, then a fifth of
the platforms, is left out of the fit but for their features; then the model learns 0, 1, 3, 10 and 30 runs of
each and is asked about all others of theirs. Beside it stands the plain rule (the level of the opposite name
times the median ratio of the given runs), and with --refit a model fitted again on everything, which takes
minutes. At last new runs of known names. With --suggest only this: of each new name runs that the model
suggests, among CANDIDATES of its runs drawn at random, against as many runs drawn; then for a whole fleet, of
which a tenth was measured, as many of all other runs, against runs drawn and the names with the fewest first,
each time fitted again to what is there then. CPU time is of one core.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from studies.data import one_core, pitot_folder

GIVEN = (0, 1, 3, 10, 30)
LATER = (1_000, 5_000, 23_000)
ASKED = 30_000
CANDIDATES, CHOSEN = 200, (1, 2, 4, 8, 15)
FLEET, OF_FLEET, ASKED_OF_FLEET = 0.1, (2_000, 4_000, 6_000, 8_000), 40_000
CONFIDENCE = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observed", type=float, default=0.5)
    parser.add_argument("--names", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--refit", action="store_true")
    parser.add_argument("--suggest", action="store_true")
    options = parser.parse_args()
    one_core()
    from studies.data.pitot import read_pitot

    runs = read_pitot(pitot_folder()).ok()
    for kind in ("workload", "platform"):
        new_names(runs, kind, options)
    if options.suggest:
        of_fleet(runs, options)
    else:
        new_runs(runs, options)


def new_names(runs: Any, kind: str, options: Any) -> None:
    """Errors and coverage about names of which so many runs were learned."""
    import jostle

    random = np.random.default_rng([options.seed, 99])
    c = runs.colocations
    names = c.workload_names if kind == "workload" else c.platform_names
    out = np.zeros(len(names), bool)
    out[random.permutation(len(names))[: round(options.names * len(names))]] = True
    code = c.workload if kind == "workload" else c.platform
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    beside = np.zeros(len(c), bool)
    if kind == "workload":
        beside[row[out[c.corunner]]] = True
    old = runs.take(~out[code] & ~beside & (random.random(len(c)) < options.observed))
    model = jostle.fit(old, jostle.Factorization(), seed=options.seed)
    mine = np.flatnonzero(out[code] & ~beside)
    mine = mine[random.permutation(len(mine))]
    turn = number_within(code[mine])
    asked = runs.take(mine[turn >= GIVEN[-1]])
    of_asked = code[mine[turn >= GIVEN[-1]]]
    print(f"\n{int(out.sum())} new {kind}s, asked about {len(asked)} runs of theirs")
    if options.suggest:
        suggested(model, runs, mine, code)
        return
    for number in GIVEN:
        shown = runs.take(mine[turn < number])
        began = time.process_time()
        results = model.update(shown)
        took = time.process_time() - began
        again = time.process_time()
        results.update(shown.take(np.zeros(0, np.int64)))
        again = time.process_time() - again
        bounds = results.bound(asked.colocations, CONFIDENCE)
        covered = asked.runtime_seconds <= bounds.seconds
        by_name = [covered[of_asked == name].mean() for name in np.unique(of_asked)]
        line = f"{number:3} runs each: error {error(results, asked):5.1f}%"
        line += f", plain rule {plain(old, shown, asked, kind):5.1f}%"
        if options.refit and number:
            both = type(old).concatenate([old, shown])
            anew = jostle.fit(both, jostle.Factorization(), seed=options.seed)
            line += f", fitted again {error(anew, asked):5.1f}%"
        line += f"; covered at {CONFIDENCE:g}: {covered.mean():.3f} of runs, "
        line += f"{np.mean(by_name):.3f} of a name's"
        outcomes, counts = np.unique(bounds.outcome, return_counts=True)
        line += f" ({outcomes[counts.argmax()]}); {took:.2f} CPU-s, {again:.2f} once begun"
        print(line, flush=True)


def suggested(model: Any, runs: Any, mine: np.ndarray, code: np.ndarray) -> None:
    """Errors after so many suggested runs of each name, and after as many that were drawn; asked about the
    runs that are no candidates. mine: rows of runs of new names, in random order."""
    turn = number_within(code[mine])
    rest = runs.take(mine[turn >= CANDIDATES])
    order: list[list[int]] = []
    for name in np.unique(code[mine]):
        there = mine[(code[mine] == name) & (turn < CANDIDATES)]
        others = mine[(code[mine] == name) & (turn >= CANDIDATES)]
        if not len(others):
            continue
        candidates = runs.take(there).colocations
        asked = runs.take(others[:CANDIDATES]).colocations
        results = model.suggest(candidates, asked=asked, most=CHOSEN[-1])
        columns = candidates.to_columns()
        names = ("workload", "platform", "corunners")
        key = {}
        for place in range(len(candidates)):
            one = (*(columns[k][place] for k in names[:2]), tuple(columns["corunners"][place]))
            key.setdefault(one, place)
        order.append(
            [int(there[key[one.workload, one.platform, one.corunners]]) for one in results.runs]
        )
    for number in CHOSEN:
        chosen = np.unique([row for rows in order for row in rows[:number]])
        by_choice = model.update(runs.take(chosen), chosen=True)
        by_chance = model.update(runs.take(mine[turn < number]), chosen=True)
        line = f"{number:3} runs each: suggested {error(by_choice, rest):5.1f}%"
        print(f"{line}, drawn {error(by_chance, rest):5.1f}%", flush=True)


def of_fleet(runs: Any, options: Any) -> None:
    """Errors about other runs of the fleet after so many more runs of it, chosen in three ways; a model of
    the first ones suggests."""
    import jostle

    order = np.random.default_rng([options.seed, 98]).permutation(len(runs))
    first = round(FLEET * len(runs))
    old, pool, asked = order[:first], order[first:-ASKED_OF_FLEET], order[-ASKED_OF_FLEET:]
    calibration, validation, old = np.split(old, [first // 8, first // 4])

    def fitted(more: np.ndarray) -> Any:
        return jostle.fit(
            runs.take(np.concatenate([old, more])),
            jostle.Factorization(),
            seed=options.seed,
            validation=runs.take(validation),
            calibration=runs.take(calibration),
            calibrate_by="row",
        )

    model, questions = fitted(pool[:0]), runs.take(asked)
    candidates = runs.take(pool).colocations
    print(f"\na fleet with {len(old)} runs learned, {len(pool)} candidates: ", end="")
    print(f"error {error(model, questions):.3f}% about {len(asked)} others", flush=True)
    began = time.process_time()
    results = model.suggest(candidates, asked=questions.colocations, most=OF_FLEET[-1])
    took = time.process_time() - began
    columns, places = candidates.to_columns(), {}
    for row, (w, p, c) in enumerate(zip(*columns.values(), strict=True)):
        places.setdefault((w, p, tuple(c)), []).append(int(pool[row]))
    ways = {
        "suggested": np.array(
            [places[one.workload, one.platform, one.corunners].pop(0) for one in results.runs]
        ),
        "drawn": pool,
        "fewest first": fewest_first(runs, old, pool, OF_FLEET[-1]),
    }
    print(f"{len(results.runs)} suggested in {took:.1f} CPU-s", flush=True)
    for number in OF_FLEET:
        errors = [
            f"{way} {error(fitted(rows[:number]), questions):.3f}%" for way, rows in ways.items()
        ]
        print(f"{number:6} more: " + ", ".join(errors), flush=True)


def fewest_first(runs: Any, old: np.ndarray, pool: np.ndarray, most: int) -> np.ndarray:
    """Rows of the pool, always one whose workload or platform has the fewest runs so far."""
    c = runs.colocations
    count = {0: np.bincount(c.workload[old], minlength=len(c.workload_names))}
    count[1] = np.bincount(c.platform[old], minlength=len(c.platform_names))
    codes, left = (c.workload[pool], c.platform[pool]), np.ones(len(pool), bool)
    chosen = []
    for _ in range(most):
        fewest = np.minimum(count[0][codes[0]], count[1][codes[1]])
        place = int(np.argmin(np.where(left, fewest, np.iinfo(np.int64).max)))
        left[place] = False
        chosen.append(int(pool[place]))
        for kind in (0, 1):
            count[kind][codes[kind][place]] += 1
    return np.array(chosen)


def new_runs(runs: Any, options: Any) -> None:
    """Errors after so many new runs of known names."""
    import jostle

    random = np.random.default_rng([options.seed, 98])
    order = random.permutation(len(runs))
    first = round(options.observed * len(runs))
    old, rest = runs.take(np.sort(order[:first])), order[first:]
    asked = runs.take(rest[-ASKED:])
    model = jostle.fit(old, jostle.Factorization(), seed=options.seed)
    print(
        f"\nnew runs of known names, asked about {len(asked)} others: error {error(model, asked):.3f}%"
    )
    begun = model.update(old.take(np.zeros(0, np.int64)))
    for number in LATER:
        later = runs.take(rest[:number])
        began = time.process_time()
        results = begun.update(later)
        took = time.process_time() - began
        line = f"{number:6} learned: {error(results, asked):.3f}% in {took:.2f} CPU-s"
        if options.refit:
            anew = jostle.fit(
                type(old).concatenate([old, later]), jostle.Factorization(), seed=options.seed
            )
            line += f", fitted again {error(anew, asked):.3f}%"
        print(line, flush=True)


def error(model: Any, asked: Any) -> float:
    """Mean relative error, %."""
    return 100 * float(np.abs(model.predict(asked.colocations) / asked.runtime_seconds - 1).mean())


def plain(old: Any, shown: Any, asked: Any, kind: str) -> float:
    """Of the level of the opposite name times the median ratio of the runs given, nan without any."""
    other = "platform" if kind == "workload" else "workload"

    def keys(runs: Any, which: str) -> np.ndarray:
        c = runs.colocations
        names = c.workload_names if which == "workload" else c.platform_names
        return np.array(names, dtype=object)[getattr(c, which)]

    if not len(shown):
        return float("nan")
    log = {}
    of_kind, of_other, y = keys(old, kind), keys(old, other), np.log(old.runtime_seconds)
    level = dict.fromkeys(of_kind, 0.0)
    for _ in range(5):  # levels of both by turns
        rest = y - np.array([level[name] for name in of_kind])
        log = means(of_other, rest)
        rest = y - np.array([log[name] for name in of_other])
        level = means(of_kind, rest)
    usual = float(np.mean(list(log.values())))

    def of_others(runs: Any) -> np.ndarray:
        return np.array([log.get(name, usual) for name in keys(runs, other)])

    beyond = np.log(shown.runtime_seconds) - of_others(shown)
    mine = keys(shown, kind)
    middle = {name: float(np.median(beyond[mine == name])) for name in set(mine)}
    answered = of_others(asked) + np.array([middle[name] for name in keys(asked, kind)])
    return 100 * float(np.abs(np.exp(answered) / asked.runtime_seconds - 1).mean())


def means(names: np.ndarray, values: np.ndarray) -> dict[str, float]:
    """Of the values of each name."""
    results, code = np.unique(names, return_inverse=True)
    total = np.bincount(code, values) / np.bincount(code)
    return dict(zip(results.tolist(), total.tolist(), strict=True))


def number_within(codes: np.ndarray) -> np.ndarray:
    """(n,) how many before each have the same code."""
    order = np.argsort(codes, kind="stable")
    _, first, counts = np.unique(codes[order], return_index=True, return_counts=True)
    results = np.empty(len(codes), np.int64)
    results[order] = np.arange(len(codes)) - np.repeat(first, counts)
    return results


if __name__ == "__main__":
    main()
