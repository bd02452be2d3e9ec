"""Errors about names with a handful of runs, or with features alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from studies._runner import Measures, TableStudy

WORKLOADS, PLATFORMS, RUNS, NOISE = 60, 20, 3500, 0.03
LAWS = ("features", "kinds", "threshold", "low rank", "additive")
WITHOUT_FEATURES = ("low rank", "additive")
WAYS = ("rule", "trained on alike", "as they join", "others, alike", "others")


@dataclass(frozen=True)
class FewNames(TableStudy):
    """Errors about names with a handful of runs, or with features alone, in a campaign of names with many.

    Made campaigns of 60 workloads on 20 platforms, 3500 runs, none to two co-runners. Of a seventh of the
    workloads, then of the platforms, so many runs are left, beside those of all others, and `jostle.fit`
    learns from them: as it does (names with few runs join after training), and with all names trained on
    alike. Asked are the other runs of those names, and a fifth of the runs of the other names, which are not
    learned from. Beside them stands a rule: levels of workloads and platforms (of a name without runs the
    mean level), times the mean slowdown for each number of co-runners.
    """

    runs: Annotated[str, "Of each such name, by commas."] = "0,3"
    laws: Annotated[str, "By commas."] = ",".join(LAWS)

    name: ClassVar[str] = "few_names"
    places: ClassVar[Sequence[str]] = ("law", "names", "runs of each")
    columns: ClassVar[Mapping[str, str]] = dict.fromkeys(WAYS, ".1%")

    def rows(self) -> list[tuple[Any, ...]]:
        return [
            (law, f"{kind}s", number)
            for law in self.laws.split(",")
            for kind in ("workload", "platform")
            for number in map(int, self.runs.split(","))
            if number or law not in WITHOUT_FEATURES
        ]

    def draw(self, row: tuple[Any, ...], seed: int) -> Measures:
        law, kinds, number = row
        return dict(zip(WAYS, one(made(law, seed), kinds[:-1], number, seed), strict=True))


def made(law: str, seed: int) -> Any:
    """A campaign whose log runtimes are levels, what workloads take on platforms, and slowdowns."""
    import pyarrow as pa

    from jostle.runs import Runs

    r = np.random.default_rng([seed, 7])
    nw, npl = WORKLOADS, PLATFORMS
    fw, fp = r.normal(size=(nw, 3)), r.normal(size=(npl, 2))
    kind_w, kind_p = r.integers(0, 4, nw), r.integers(0, 3, npl)
    w, p = r.integers(0, nw, RUNS), r.integers(0, npl, RUNS)
    beside = [r.integers(0, nw, k).tolist() for k in r.integers(0, 3, RUNS)]
    a, b = r.normal(size=(nw, 4)), r.normal(size=(npl, 4))
    suffers, presses = np.abs(r.normal(size=nw)) * 0.3, np.abs(r.normal(size=nw)) * 0.5
    base, speed, more = r.normal(size=nw), 0.5 * r.normal(size=npl), np.zeros((nw, npl))
    if law == "features":
        base = fw @ [1, 0.5, -0.7] + 0.2 * base
        speed, more = fp @ [0.5, 0.4] + 0.2 * speed, 0.15 * (a @ b.T)
    elif law == "kinds":
        base = np.array([0, 1, 2, -1.0])[kind_w] + 0.3 * base
        more = 0.6 * r.normal(size=(4, 3))[kind_w][:, kind_p]
        suffers = np.array([0.05, 0.2, 0.5, 0.8])[kind_w]
    elif law == "threshold":
        needs, has = np.exp(r.normal(size=nw)), np.exp(r.normal(size=npl) + 0.5)
        speed, fw[:, 0] = fp @ [0.5, 0.4], np.log(needs)
        more = np.log1p(np.maximum(needs[:, None] - has, 0))
    elif law == "low rank":
        more = 0.3 * (a @ b.T)
    log = base[w] + speed[p] + more[w, p] + NOISE * r.normal(size=RUNS)
    log += [suffers[mine] * presses[others].sum() for mine, others in zip(w, beside, strict=True)]
    names, places = [f"w{k:02}" for k in range(nw)], [f"p{k:02}" for k in range(npl)]
    of_w = {
        "workload": names,
        **{f"f{k}": fw[:, k] for k in range(3)},
        "kind": [f"k{k}" for k in kind_w],
    }
    of_p = {"platform": places, "g0": fp[:, 0], "g1": fp[:, 1], "maker": [f"m{k}" for k in kind_p]}
    none = law in WITHOUT_FEATURES
    return Runs.from_columns(
        workload=[names[k] for k in w],
        platform=[places[k] for k in p],
        corunners=[[names[k] for k in others] for others in beside],
        runtime_seconds=np.exp(log),
        workload_features=None if none else pa.table(of_w),
        platform_features=None if none else pa.table(of_p),
    )


def one(runs: Any, kind: str, number: int, seed: int) -> tuple[float, ...]:
    """Errors of the rule, trained on alike and joining about the names; of the latter two about others."""
    import jostle
    from jostle.factorization.online import _few

    r, c = np.random.default_rng([seed, 3]), runs.colocations
    names = c.workload_names if kind == "workload" else c.platform_names
    code = c.workload if kind == "workload" else c.platform
    few = np.isin(np.arange(len(names)), r.permutation(len(names))[: len(names) // 7])
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    beside = np.zeros(len(c), bool)
    if kind == "workload":
        beside[row[few[c.corunner]]] = True
    mine = r.permutation(np.flatnonzero(few[code] & ~beside))
    turn = np.array([np.sum(code[mine[:k]] == code[row]) for k, row in enumerate(mine)])
    rest = np.flatnonzero(~few[code] & ~beside)
    tested = r.random(len(rest)) < 0.2
    learned = runs.take(np.concatenate([rest[~tested], mine[turn < number]]))
    asked, others = runs.take(mine[turn >= number]), runs.take(rest[tested])
    results = [error(rule(learned, asked), asked)]
    usual, about_others = _few.FEWEST_NAMES, []
    for fewest in (10**9, usual):
        _few.FEWEST_NAMES = fewest
        model = jostle.fit(learned, jostle.Factorization(), seed=seed)
        results.append(error(model.predict(asked.colocations), asked))
        about_others.append(error(model.predict(others.colocations), others))
    return (*results, *about_others)


def rule(learned: Any, asked: Any) -> np.ndarray:
    """Seconds by levels of both names and the mean slowdown for each number of co-runners."""
    c, q = learned.colocations, asked.colocations
    w, p, _ = c.recode(q.workload_names, q.platform_names)
    y, degree = np.log(learned.runtime_seconds), c.number_of_corunners
    x = np.zeros((len(y), len(q.workload_names) + len(q.platform_names) + 3))
    rows = np.arange(len(y))
    x[rows, w], x[rows, len(q.workload_names) + p], x[:, -3] = 1, 1, 1
    x[:, -2], x[:, -1] = degree == 1, degree == 2
    level = np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ y)
    d = q.number_of_corunners
    of_p = level[len(q.workload_names) + q.platform]
    return np.exp(
        level[q.workload] + of_p + level[-3] + (d == 1) * level[-2] + (d == 2) * level[-1]
    )


def error(seconds: np.ndarray, runs: Any) -> float:
    return float(np.abs(seconds / runs.runtime_seconds - 1).mean())
