"""The protocol of Moolchandani et al. on bags, and the tests that small public data allow beside it.

Two tests: one benchmark is left out with every run it is in (their Fig. 4), its runs alone being known; and
pairs are left out, both sides and all repeats together. Each reports the mean relative error of every run
and of the bag, whose time is that of its last member. Feature groups are left out and taken alone (their
Fig. 5-9), and the questions on the way to every answer are counted (Fig. 10-12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import MissingExtra, NotEnoughRuns, UnknownName
from jostle.evaluate.bag._bounds import application_coverage, pair_coverage
from jostle.methods import learn

if TYPE_CHECKING:
    from jostle.bag import FittedBag
    from jostle.runs import Colocations, Runs

BENCHMARK_COLUMNS = ("program", "benchmark", "kernel", "family")


@dataclass
class BagsEvaluation:
    """metrics: by documented name. methods: their names in order. features: of the tree; uses: (test runs,
    features) its questions, one row per run, each from the tree that had not seen the run's benchmark;
    tested: what each row of `uses` is. errors: {method: {benchmark: mean relative error}}."""

    metrics: dict[str, float]
    methods: tuple[str, ...]
    features: tuple[str, ...]
    uses: np.ndarray
    tested: tuple[str, ...]
    errors: dict[str, dict[str, float]]
    notes: list[str] = field(default_factory=list)

    def uses_table(self) -> list[tuple[str, float, float]]:
        """(feature, share of answers it is asked for, mean number of times), most asked first."""
        if not len(self.uses):
            return []
        share, times = (self.uses > 0).mean(0), self.uses.mean(0)
        order = np.lexsort((-times, -share))
        return [(self.features[at], float(share[at]), float(times[at])) for at in order]

    def uses_document(self) -> list[dict[str, Any]]:
        """The same for JSON."""
        return [
            {"feature": name, "answers_ratio": share, "uses_mean": times}
            for name, share, times in self.uses_table()
        ]


def bag_methods(runs: Runs, target: str, cpu_platform: str | None) -> dict[str, Any]:
    """Every method of the tables by name: baselines, the paper's tree, trees on `target`, each feature
    group alone and left out, and the slowdown form and the factorization, which see features but learn
    names."""
    from jostle.bag import GROUPS, Bag
    from jostle.evaluate.rivals._solo import SoloTime
    from jostle.factorization import Factorization
    from jostle.slowdown import Slowdown

    cpu: dict[str, Any] = {"cpu_platform": cpu_platform}
    methods: dict[str, Any] = {
        "solo": SoloTime("solo"),
        "twice_solo": SoloTime("twice"),
        "solo_constant": SoloTime("plus" if target == "extra" else "times"),
        "tree_runtime": Bag(learner="tree", target="runtime", **cpu),
        "tree": Bag(learner="tree", target=target, **cpu),
        "forest": Bag(learner="forest", target=target, **cpu),
        "bag": Bag(target=target, **cpu),
        "slowdown": Slowdown(target=target, rank=4),
        "factorization": Factorization(),
    }
    there = _groups_in(runs, cpu_platform)
    if "mix" in there:
        methods["mix_only_tree_runtime"] = Bag(
            learner="tree", target="runtime", groups=("mix",), **cpu
        )
    for group in GROUPS:
        if group in there:
            methods[f"only_{group}"] = Bag(target=target, groups=(group,), **cpu)
    for group in GROUPS:
        rest = tuple(other for other in GROUPS if other in there and other != group)
        if group in there and rest:
            methods[f"without_{group}"] = Bag(target=target, groups=rest, **cpu)
    # The paper's Fig. 5: the mix, then CPU time, then fairness beside it; once with its tree on its target.
    for name, groups in (
        ("mix_and_cpu", ("mix", "cpu")),
        ("mix_cpu_fairness", ("mix", "cpu", "fairness")),
    ):
        if set(groups) <= there:
            methods[name] = Bag(target=target, groups=groups, **cpu)
            paper = Bag(learner="tree", target="runtime", groups=groups, **cpu)
            methods[f"{name}_tree_runtime"] = paper
    return methods


def _groups_in(runs: Runs, cpu_platform: str | None) -> set[str]:
    """The feature groups that the data has."""
    from jostle.bag import Bag

    fitted = learn(Bag(learner="tree", cpu_platform=cpu_platform), runs)
    return set(fitted.feature_groups) - {"always"}


def evaluate_bags(
    runs: Runs,
    *,
    cpu_platform: str | None = None,
    benchmark: str | None = None,
    target: str = "extra",
    folds: int = 6,
    seeds: Sequence[int] = range(5),
    bounds: bool = True,
    methods: Sequence[str] | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> BagsEvaluation:
    """Both tests for every method of bag_methods, or those named in `methods`.

    benchmark: the workload feature by which workloads are left out together; None takes the first of
    BENCHMARK_COLUMNS there is, or else every workload by itself. Metrics, for TEST `application` or `pair`:
    `relative_error_mean_TEST_METHOD_ratio`, `relative_error_mean_bag_TEST_METHOD_ratio`,
    `extra_time_r2_TEST_METHOD` (share of the variance of the time beside others minus the time alone that is
    explained), `log_slowdown_r2_TEST_METHOD` (of the logarithm of their ratio), and for some methods
    `coverage_90_TEST_METHOD_ratio` with its standard error; coverage_80 where a benchmark held out leaves
    fewer than the nine others that a bound at 90% needs.
    Raises NotEnoughRuns, UnknownName.
    """
    runs = runs.ok()
    chosen = _chosen(bag_methods(runs, target, cpu_platform), methods)
    c = runs.colocations
    beside = c.number_of_corunners > 0
    if cpu_platform is not None:
        beside &= c.platform != c.platform_names.index(cpu_platform)
    asked = np.flatnonzero(beside)
    known = np.flatnonzero(~beside)
    groups = _benchmarks(runs, benchmark)
    touched = _touched(c, groups)
    if len(touched) < 3 or len(asked) < folds:
        raise NotEnoughRuns(f"{len(touched)} benchmarks and {len(asked)} runs beside are too few")
    application = [(name, np.intersect1d(rows, asked)) for name, rows in touched.items()]
    application = [(name, rows) for name, rows in application if len(rows)]
    tests = [("application", [application], seeds[:1])]
    tests.append(("pair", [list(_pair_folds(runs, asked, folds, seed)) for seed in seeds], seeds))
    metrics: dict[str, float] = {"seeds": float(len(seeds)), "runs": float(len(asked))}
    errors: dict[str, dict[str, float]] = {}
    notes: list[str] = []
    done, total = 0, len(chosen) * sum(len(draw) for _, draws, _ in tests for draw in draws)
    uses: list[tuple[str, np.ndarray, FittedBag]] = []
    for name, method in list(chosen.items()):
        try:
            for test, draws, draw_seeds in tests:
                each: dict[str, list[float]] = {}
                for draw, seed in zip(draws, draw_seeds, strict=True):
                    predicted: list[tuple[np.ndarray, np.ndarray]] = []
                    for held_name, held in draw:
                        train = runs.take(np.union1d(known, np.setdiff1d(asked, held)))
                        fitted = learn(method, train, seed=seed)
                        predicted.append((held, fitted.predict(c.take(held))))
                        if test == "application" and name == "tree":
                            uses.append((held_name, held, fitted))
                        done += 1
                        if progress:
                            progress(done, total, float("nan"))
                    for key, value in _scores(runs, predicted).items():
                        each.setdefault(key, []).append(value)
                    if test == "application":
                        errors[name] = {
                            held_name: float(np.nanmean(np.abs(p / runs.runtime_seconds[h] - 1)))
                            for (held_name, _), (h, p) in zip(draw, predicted, strict=True)
                        }
                for key, values in each.items():
                    metrics[key.format(f"{test}_{name}")] = float(np.mean(values))
        except MissingExtra as error:
            notes.append(f"{name}: {error}")
            del chosen[name]
    if bounds:
        metrics |= application_coverage(runs, chosen, known, asked, dict(application), seeds[0])
        metrics |= pair_coverage(runs, chosen, known, asked, seeds)
    features, counted, tested = _uses(c, uses)
    return BagsEvaluation(metrics, tuple(chosen), features, counted, tested, errors, notes)


def _chosen(every: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    for name in names or ():
        if name not in every:
            raise UnknownName("method", name, list(every))
    return every if names is None else {name: every[name] for name in names}


def _benchmarks(runs: Runs, column: str | None) -> dict[str, str]:
    """{workload: its benchmark}."""
    names, table = runs.features_of("workload")
    present = [] if table is None else table.column_names
    if column is not None and column not in present:
        raise UnknownName("workload feature", column, present)
    column = column or next((name for name in BENCHMARK_COLUMNS if name in present), None)
    if column is None or table is None:
        return {name: name for name in runs.colocations.workload_names}
    given = dict(zip(names, table.column(column).to_pylist(), strict=True))
    return {name: str(given.get(name) or name) for name in runs.colocations.workload_names}


def _touched(c: Colocations, groups: dict[str, str]) -> dict[str, np.ndarray]:
    """{benchmark: rows in which one of its workloads runs}."""
    titles = sorted(set(groups.values()))
    code = np.array([titles.index(groups[name]) for name in c.workload_names])
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    out = {}
    for number, title in enumerate(titles):
        inside = code[c.workload] == number
        inside[row[code[c.corunner] == number]] = True
        out[title] = np.flatnonzero(inside)
    return out


def _pair_folds(
    runs: Runs, asked: np.ndarray, folds: int, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    unit = np.unique(runs.units("together")[asked], return_inverse=True)[1].reshape(-1)
    place = np.random.default_rng(seed).permutation(unit.max() + 1) % folds
    for fold in range(folds):
        held = asked[place[unit] == fold]
        if len(held):
            yield str(fold), held


def _scores(runs: Runs, predicted: list[tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    from jostle.runs import solo_medians

    held = np.concatenate([rows for rows, _ in predicted])
    guess = np.concatenate([seconds for _, seconds in predicted])
    actual = runs.runtime_seconds[held]
    error = np.abs(guess / actual - 1)
    c = runs.colocations
    solo = np.exp(solo_medians(runs, c.workload_names, c.platform_names))
    extra = actual - solo[c.platform[held], c.workload[held]]
    usable = np.isfinite(extra) & np.isfinite(guess)
    spread = float(((extra - extra[usable].mean())[usable] ** 2).sum())
    bags = [_bag_errors(runs, rows, seconds) for rows, seconds in predicted]
    whole = np.concatenate(bags)
    out = {"relative_error_mean_{}_ratio": float(np.nanmean(error))}
    if spread > 0:
        left = float(((guess - actual)[usable] ** 2).sum())
        out["extra_time_r2_{}"] = 1 - left / spread
        log_slowdown = np.log(actual / (actual - extra))[usable]
        varies = float(log_slowdown.var() * usable.sum())
        left = float((np.log(guess / actual)[usable] ** 2).sum())
        out["log_slowdown_r2_{}"] = 1 - left / varies if varies > 0 else float("nan")
    if len(whole):
        out["relative_error_mean_bag_{}_ratio"] = float(np.nanmean(whole))
    return out


def _bag_errors(runs: Runs, rows: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Relative error of the latest end of every window whose members were all measured and asked for."""
    c = runs.colocations
    window = np.unique(runs.window[rows], return_inverse=True)[1].reshape(-1)
    count = int(window.max(initial=-1)) + 1
    members: list[set[int]] = [set() for _ in range(count)]
    needed: list[set[int]] = [set() for _ in range(count)]
    for at, row in zip(window.tolist(), rows.tolist(), strict=True):
        start, stop = c.corunner_offsets[row], c.corunner_offsets[row + 1]
        members[at].add(int(c.workload[row]))
        needed[at] |= {int(c.workload[row]), *(int(code) for code in c.corunner[start:stop])}
    whole = np.array([a == b for a, b in zip(members, needed, strict=True)], bool)
    ends, guess = np.zeros(count), np.zeros(count)
    np.maximum.at(ends, window, runs.runtime_seconds[rows])
    np.maximum.at(guess, window, seconds)
    return np.abs(guess[whole] / ends[whole] - 1)


def _uses(
    c: Colocations, fits: list[tuple[str, np.ndarray, FittedBag]]
) -> tuple[tuple[str, ...], np.ndarray, tuple[str, ...]]:
    """(features, uses (n, features), what each row is), over the trees that left one benchmark out."""
    from jostle.bag import path_uses

    features = tuple(dict.fromkeys(name for *_, fitted in fits for name in fitted.feature_names))
    counted, tested = [], []
    for _, rows, fitted in fits:
        own = path_uses(fitted, c.take(rows))
        wide = np.zeros((len(rows), len(features)), np.int64)
        wide[:, [features.index(name) for name in fitted.feature_names]] = own
        counted.append(wide)
        for row in rows.tolist():
            target, _, others = c.row(row)
            tested.append(f"{target} beside {' + '.join(others)}")
    matrix = np.concatenate(counted) if counted else np.zeros((0, len(features)), np.int64)
    return features, matrix, tuple(tested)
