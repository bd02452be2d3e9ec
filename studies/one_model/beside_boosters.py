"""The default beside simple rules, LightGBM and CatBoost: `python -m studies.one_model.beside_boosters`.

Each rival is what a careful user of that library would write: categories for the names, counts and features
of co-runners as numbers, the log of the slowdown as the target, and split conformal bounds from a quarter of
the sets, which a second fit does not see. LightGBM and CatBoost are no dependency: an absent one is left out.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jostle._base.report import Table, percent
from jostle.conformal import conformal_rank
from jostle.data import Colocations, Runs, all_names
from jostle.operations import bound_measures
from studies.one_model.campaigns import read_campaign
from studies.one_model.measure import CONFIDENCE, DEFAULT, Examined, FitCell
from studies.one_model.rules import RULES, Answer, _columns, _design
from studies.one_model.splits import NEW, NEW_PLATFORM, USUAL_SHARE, SetsLeftOut

SLOTS = 3  # co-runners that are categories of their own
HELD_OUT = 0.25  # of the sets, for the bounds of a rival
RIVALS = ("solo", "constant", "additive", "low_rank", "trees", "lightgbm", "catboost")
SHARES = (0.1, 0.2, 0.5)


def _lightgbm(seed: int) -> tuple[Any, Callable[[np.ndarray, list[int]], Any], str]:
    from lightgbm import LGBMRegressor  # pyright: ignore[reportMissingImports]

    model = LGBMRegressor(
        n_estimators=400, learning_rate=0.05, min_child_samples=5, n_jobs=1, verbose=-1,
        random_state=seed,
    )  # fmt: skip
    return model, lambda table, _: table, "categorical_feature"


def _catboost(seed: int) -> tuple[Any, Callable[[np.ndarray, list[int]], Any], str]:
    from catboost import CatBoostRegressor  # pyright: ignore[reportMissingImports]

    def frame(table: np.ndarray, categories: list[int]) -> Any:
        columns = table.astype(object)
        columns[:, categories] = table[:, categories].astype(int).astype(str)
        return columns

    model = CatBoostRegressor(
        iterations=600, thread_count=1, verbose=False, allow_writing_files=False, random_seed=seed
    )
    return model, frame, "cat_features"


BOOSTERS = {"lightgbm": _lightgbm, "catboost": _catboost}


def boosted(name: str, runs: Runs, seed: int) -> Answer:
    """Fit a booster to the log slowdown of runs with co-runners. Returns what answers in seconds, (n,)."""
    model, frame, option = BOOSTERS[name](seed)
    numbers, solo = _columns(runs)
    names, slow = all_names(runs), _design(runs)[2]

    def table(query: Colocations) -> np.ndarray:
        workload, platform, corunner = query.codes_in(*names)
        slots = np.full((len(workload), SLOTS), -1)
        row = np.repeat(np.arange(len(workload)), query.number_of_corunners)
        order = np.lexsort((corunner, row))
        at = np.arange(len(row)) - np.repeat(query.corunner_offsets[:-1], query.number_of_corunners)
        inside = at < SLOTS
        slots[row[inside], at[inside]] = corunner[order][inside]
        return np.column_stack([workload, platform, slots, numbers(query)])

    categories = list(range(2 + SLOTS))
    rows = np.flatnonzero(np.isfinite(slow) & (runs.colocations.number_of_corunners > 0))
    made = frame(table(runs.colocations)[rows], categories)
    model.fit(made, np.log(slow[rows]), **{option: categories})

    def answer(query: Colocations) -> np.ndarray:
        more = model.predict(frame(table(query), categories))
        return solo(query) * np.exp(np.where(query.number_of_corunners > 0, more, 0.0))

    return answer


def with_bounds(name: str, runs: Runs, seed: int) -> tuple[Answer, float]:
    """Fit a rival to all runs, and once more without a quarter of the sets.

    Returns what answers in seconds, and by which factor its bounds lie above the answers: the conformal rank
    of the ratios of the sets that were held out, infinite where they are too few.
    """

    def fitted(part: Runs) -> Answer:
        return boosted(name, part, seed) if name in BOOSTERS else RULES[name](part, seed)

    unit, beside = runs.colocations.together, runs.colocations.number_of_corunners > 0
    sets = np.unique(unit[beside])
    drawn = np.random.default_rng([seed, 7]).permutation(sets)[: round(HELD_OUT * len(sets))]
    held = np.flatnonzero(np.isin(unit, drawn) & beside)
    part = fitted(runs.take(np.setdiff1d(np.arange(len(runs)), held)))
    ratio = runs.runtime_seconds[held] / part(runs.colocations.take(held))
    ratio = np.sort(np.where(np.isfinite(ratio), ratio, np.inf))
    rank = conformal_rank(len(ratio), CONFIDENCE)
    return fitted(runs), float(ratio[rank - 1]) if rank <= len(ratio) else float("inf")


def measured(draw: Examined, by: str) -> dict[str, float]:
    """Measure the default, or a rival, on one cell: error, coverage, margin, CPU seconds of the fit."""
    if by == DEFAULT:
        return draw.measure(DEFAULT)
    began = time.process_time()
    answer, factor = with_bounds(by, draw.known.runs, draw.cell.seed)
    cpu = time.process_time() - began
    predicted = answer(draw.query)
    found = draw._errors(predicted) | bound_measures(predicted * factor, draw.seconds)
    return found | {"cpu_seconds": cpu}


def cells(names: list[str], seeds: int) -> Iterator[tuple[FitCell, Examined]]:
    """Yield each cell of the data sets with its rows, where there are such."""
    ways = [*(SetsLeftOut("everywhere", s) for s in SHARES)]
    ways += [SetsLeftOut(way, USUAL_SHARE) for way in (NEW, NEW_PLATFORM)]
    for name in names:
        for way in ways:
            for seed in range(seeds):
                cell = FitCell(name, way, seed)
                draw = Examined.of(cell, read_campaign(name, seed))
                if draw is not None:
                    yield cell, draw


def main() -> None:
    """Print a line for each data set, way, share and rival: means over the seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="jobs,gavel-oracle,pitot")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    found: dict[tuple[str, ...], list[dict[str, float]]] = {}
    absent: dict[str, str] = {}
    for cell, draw in cells(asked.data.split(","), asked.seeds):
        for by in (DEFAULT, *RIVALS):
            try:
                one = measured(draw, by) | {"runs": float(len(draw.known.runs))}
            except ImportError as error:
                absent[by] = str(error)
                continue
            key = (cell.data, cell.way.name, percent(cell.way.share, 0), by)
            found.setdefault(key, []).append(one)
    rows = []
    for (data, way, share, by), some in found.items():
        mean = {n: float(np.nanmean([one[n] for one in some])) for n in MEASURES}
        shown = [percent(mean[n], 2 if n == "error" else 1) for n in MEASURES[1:5]]
        rows.append(
            [data, way, share, f"{mean['runs']:.0f}", by, *shown, f"{mean['cpu_seconds']:.1f}"]
        )
    heads = [
        "data",
        "asked",
        "known",
        "runs",
        "by",
        "error",
        "coverage 90",
        "margin 90",
        "no bound",
    ]
    print(Table([*heads, "CPU s"], rows).to_text())
    for by, why in absent.items():
        print(f"\n{by} is left out: {why}")


MEASURES = ("runs", "error", "coverage", "margin", "no_bound", "cpu_seconds")

if __name__ == "__main__":
    main()
