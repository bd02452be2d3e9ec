"""A platform where nothing ran beside others: how far the default is off there, beside rules, and its bounds.

    python -m studies.one_model.alone_there [--draws 4] [--fitted 500] [--seed 0] [--workers 1] [--kept FILE]

Made campaigns of 14 workloads, all measured alone on every platform, and pairs and triples on all platforms
but one, about whose pairs and triples it is asked. What slows down differs by platform in kind: cores, memory
bandwidth, a cache, or nothing is shared; of all platforms alike, of two kinds, or of any. Two to five have
runs beside others, by the draw. Errors are mean and relative; `pairs elsewhere` is the mean slowdown of the
same workload beside the same others on other platforms, or beside any. Means over draws, of errors, of
errors over that of the best rule (geometric), and how often the time alone would have been closer.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from jostle.runs import Colocations, Runs
from studies.bounds.kept import add_options, drawn
from studies.one_model.rules import fit_rule

WORKLOADS, NOISE, CONFIDENCE = 14, 0.03, 0.9
CORES, BANDWIDTH, CACHE, NOTHING = range(4)
KINDS = ("alike", "of two kinds", "of any kind")
RULES = ("solo", "constant", "additive")
HEADS = ("default", *RULES, "pairs elsewhere", "over the best rule", "worse than solo", "bounded")
Row = tuple[int, int, tuple[int, ...]]  # platform, workload, co-runners


class WorldOfKinds:
    """Platforms on which different things are shared; the last one is where nothing runs beside others."""

    def __init__(self, kinds: str, seed: int) -> None:
        self.random = r = np.random.default_rng([seed, KINDS.index(kinds)])
        self.platforms, w = 3 + seed % 4, WORKLOADS
        among = r.permutation(4)[:2] if kinds == KINDS[1] else np.arange(4)
        if kinds == KINDS[0]:
            among = r.permutation(3)[:1]
        self.kind = r.choice(among, self.platforms)
        self.cores, self.bus = np.exp(r.normal(-0.3, 0.6, w)), np.exp(r.normal(-1.2, 0.6, w))
        self.on_bus, self.most = (
            1 / (1 + np.exp(-1.5 * r.normal(size=w))),
            np.exp(r.normal(-1, 0.6, w)),
        )
        self.press = np.exp(r.normal(0, 0.6, w))
        self.size = np.exp(0.35 * r.normal(size=self.platforms))
        self.own = np.exp(0.15 * r.normal(size=(self.platforms, w)))
        self.log_alone = r.normal(size=w) + 0.3 * r.normal(size=(self.platforms, w))

    def slowdown(self, platform: int, workload: int, others: tuple[int, ...]) -> float:
        kind, size, own = self.kind[platform], self.size[platform], self.own[platform]
        if kind == NOTHING or not others:
            return 1.0
        together = [workload, *others]
        if kind == CORES:
            return max(1.0, self.cores[together].sum() / (1.2 * size))
        if kind == BANDWIDTH:
            asked = (self.bus * own)[together].sum() / (0.5 * size)
            return 1 + self.on_bus[workload] * (max(1.0, asked) - 1)
        pressure = (self.press * own)[list(others)].sum()
        return 1 + self.most[workload] * size * pressure / (pressure + 1)

    def campaign(self, n: int) -> tuple[Runs, Runs]:
        """(about n runs, none beside others on the last platform; runs beside others there)."""
        r, last = self.random, self.platforms - 1
        known: list[Row] = [(p, i, ()) for p in range(self.platforms) for i in range(WORKLOADS)]
        sets = max(6, round((n - len(known)) / (2.33 * 0.8 * last)))
        every = set[tuple[int, ...]]()
        while len(every) < 2 * sets:
            size = 2 + (r.random() < 0.33)
            every.add(tuple(sorted(r.integers(0, WORKLOADS, size).tolist())))
        ordered = sorted(every)
        mixed = [ordered[at] for at in r.permutation(len(ordered))]
        for p in range(last):
            for one in mixed[:sets]:
                if r.random() < 0.8:
                    known += _rows(p, one)
        return self._runs(known), self._runs([row for one in mixed for row in _rows(last, one)])

    def _runs(self, rows: list[Row]) -> Runs:
        noise = NOISE * self.random.normal(size=len(rows))
        logs = [self.log_alone[p, i] + np.log(self.slowdown(p, i, beside)) for p, i, beside in rows]
        return Runs.from_columns(
            workload=[f"w{i}" for _, i, _ in rows],
            platform=[f"p{p}" for p, _, _ in rows],
            corunners=[[f"w{i}" for i in beside] for *_, beside in rows],
            runtime_seconds=np.exp(np.array(logs) + noise),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=4, help="of each kind of platforms")
    parser.add_argument("--fitted", type=int, default=500, help="runs, about")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.draws)
    found = drawn(_of_draw, ((kinds, seed) for kinds in KINDS for seed in seeds), options)
    print("platforms", *HEADS, sep=" | ")
    for kinds in [*KINDS, "all"]:
        rows = np.array([row for (name, _), row in found.items() if kinds in (name, "all")])
        error, bounded = rows[:, :-1], rows[:, -1]
        over = np.exp(np.log(error[:, 0] / error[:, 1:].min(1)).mean())
        worse = (error[:, 0] > error[:, 1]).mean()
        cells = [f"{one:.3f}" for one in (*error.mean(0), over)]
        print(kinds, *cells, f"{worse:.0%}", f"{bounded.mean():.0%}", sep=" | ")


def _of_draw(options: Any, kinds: str, seed: int) -> list[float]:
    import jostle

    known, asked = WorldOfKinds(kinds, seed).campaign(options.fitted)
    query, took = asked.colocations, asked.runtime_seconds
    model = jostle.fit(known, seed=seed)
    alone = fit_rule("solo", known, seed)
    answers = [model.predict(query)]
    answers += [fit_rule(name, known, seed)(query) for name in RULES]
    answers.append(alone(query) * _slowdowns_elsewhere(known, alone(known.colocations), query))
    errors = [float(np.mean(np.abs(answer / took - 1))) for answer in answers]
    return [*errors, float(model.bound(query, CONFIDENCE).is_valid.mean())]


def _slowdowns_elsewhere(known: Runs, alone: np.ndarray, query: Colocations) -> np.ndarray:
    """(n,) geometric means."""
    own, any_company = dict[Any, list[float]](), dict[str, list[float]]()
    for at, log in enumerate(np.log(known.runtime_seconds / alone)):
        workload, _, others = known.colocations.row(at)
        if others:
            own.setdefault((workload, *sorted(others)), []).append(log)
            any_company.setdefault(workload, []).append(log)
    out = []
    for at in range(len(query)):
        workload, _, others = query.row(at)
        usual = any_company.get(workload, [0.0])
        out.append(np.mean(own.get((workload, *sorted(others)), usual)))
    return np.exp(out)


def _rows(platform: int, members: tuple[int, ...]) -> list[Row]:
    return [(platform, one, members[:at] + members[at + 1 :]) for at, one in enumerate(members)]


if __name__ == "__main__":
    main()
