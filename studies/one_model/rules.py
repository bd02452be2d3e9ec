"""What a user would try first: simple rules, and two learners from a box, on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.data import Colocations, Runs, all_names, solo_medians
from jostle.learn import learn
from jostle.operations import SimpleRule
from studies.rivals.own_pairs import OwnPairs

Answer = Callable[[Colocations], np.ndarray]
PENALTIES = 10.0 ** np.arange(-2, 4)
LEAST = 0.05  # of the time alone, under which no rule answers


def fit_rule(name: str, runs: Runs, seed: int) -> Answer:
    """A rule of RULES, learned from the runs: it answers in seconds, (n,)."""
    return RULES[name](runs, seed)


def _rival(method: Any) -> Callable[[Runs, int], Answer]:
    return lambda runs, seed: learn(method, runs, seed=seed).predict


def ridge(runs: Runs, seed: int) -> Answer:
    """Ridge regression of slowdown - 1 on the target, the platform, and how many of each are beside it."""
    from sklearn.linear_model import RidgeCV

    design, solo, slow = _design(runs)
    rows = np.flatnonzero(np.isfinite(slow) & (runs.colocations.number_of_corunners > 0))
    model = RidgeCV(PENALTIES).fit(design(runs.colocations)[rows], slow[rows] - 1)

    def answer(query: Colocations) -> np.ndarray:
        more = np.where(query.number_of_corunners > 0, model.predict(design(query)), 0.0)
        return solo(query) * np.maximum(1 + more, LEAST)

    return answer


def trees(runs: Runs, seed: int) -> Answer:
    """Gradient boosting of the log slowdown on the names' numbers, times alone and features of the target,
    and on means and sums of those of its co-runners."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    table, solo = _columns(runs)
    _, _, slow = _design(runs)
    rows = np.flatnonzero(np.isfinite(slow) & (runs.colocations.number_of_corunners > 0))
    model = HistGradientBoostingRegressor(max_iter=200, min_samples_leaf=5, random_state=seed)
    with threadpool_limits(1):  # more wait for each other on so few rows
        model.fit(table(runs.colocations)[rows], np.log(slow[rows]))

    def answer(query: Colocations) -> np.ndarray:
        alone = query.number_of_corunners == 0
        return solo(query) * np.exp(np.where(alone, 0.0, model.predict(table(query))))

    return answer


def _design(runs: Runs) -> tuple[Answer, Answer, np.ndarray]:
    """(design of rows, time alone of rows, slowdown of the runs (n,))."""
    names = all_names(runs)
    log_solo = solo_medians(runs, *names)
    p, w = log_solo.shape

    def design(query: Colocations) -> np.ndarray:
        workload, platform, corunner = query.codes_in(*names)
        n, count = len(workload), query.number_of_corunners
        row, place = np.repeat(np.arange(n), count), np.arange(n)
        x = np.zeros((n, p + 2 * w + 2 * p * w))
        x[place, platform] = 1
        x[place, p + workload] = 1
        x[place, p + w + platform * w + workload] = 1
        start = p + w + p * w
        np.add.at(x, (row, start + corunner), 1)
        np.add.at(x, (row, start + w + platform[row] * w + corunner), 1)
        return x

    def solo(query: Colocations) -> np.ndarray:
        workload, platform, _ = query.codes_in(*names)
        return np.exp(log_solo[platform, workload])

    return design, solo, runs.runtime_seconds / solo(runs.colocations)


def _columns(runs: Runs) -> tuple[Answer, Answer]:
    """(columns of rows, time alone of rows)."""
    names = all_names(runs)
    log_solo = solo_medians(runs, *names)
    of_workload = np.column_stack([np.arange(len(names[0])), _features(runs, "workload", names[0])])
    of_platform = np.column_stack([np.arange(len(names[1])), _features(runs, "platform", names[1])])
    _, solo, _ = _design(runs)

    def table(query: Colocations) -> np.ndarray:
        workload, platform, corunner = query.codes_in(*names)
        n, count = len(workload), query.number_of_corunners
        row = np.repeat(np.arange(n), count)
        beside = np.column_stack([of_workload[corunner], log_solo[platform[row], corunner]])
        total = np.zeros((n, beside.shape[1]))
        np.add.at(total, row, beside)
        own = np.column_stack([of_workload[workload], log_solo[platform, workload]])
        mean = total / np.maximum(count, 1)[:, None]
        return np.column_stack([own, of_platform[platform], count, mean, total[:, 1:]])

    return table, solo


def _features(runs: Runs, key: str, names: tuple[str, ...]) -> np.ndarray:
    """(names, features) numbers, texts by their places in the alphabet; NaN where there is none. No column
    is NaN alone."""
    known, table = runs.features_of(key)
    place = {name: number for number, name in enumerate(known)}
    columns = []
    for values in [] if table is None else (column.to_pylist() for column in table.columns):
        texts = sorted({value for value in values if isinstance(value, str)})
        numbers = [texts.index(v) if isinstance(v, str) else v for v in values]
        columns.append([numbers[place[name]] if name in place else None for name in names])
    results = np.array(columns, float).reshape(len(columns), len(names)).T
    return results[:, np.isfinite(results).any(0)]


RULES: dict[str, Callable[[Runs, int], Answer]] = {
    "solo": lambda runs, seed: _design(runs)[1],
    "constant": _rival(SimpleRule("level")),
    "additive": _rival(SimpleRule("effects")),
    "own_worst": _rival(OwnPairs("worst")),
    "own_mean": _rival(OwnPairs("mean")),
    "own_sum": _rival(OwnPairs("sum")),
    "low_rank": _rival(SimpleRule("product 0.025")),
    "boosting": _rival(SimpleRule("trees of factors")),
    "trees": trees,
    "ridge": ridge,
}
