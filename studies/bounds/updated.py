"""What an update makes of a name that has drifted: coverage by name before and after it.

    python -m studies.bounds.updated [--laws NAME,...] [--draws 3] [--method NAME] [--fitted 900]
        [--workers 1] [--kept FILE]

On made campaigns (studies.live.drift_made) a model is fitted to so many runs. Then one workload, or one
platform, takes 1.3 times as long, or nothing changes, and 30 new runs of each workload, or platform, are
learned by `Model.update`. Asked about are 4 000 runs to come, at 0.9: coverage in the mean over names, of the
one that moved, and the ratio of what is predicted of it to what it takes, in the median.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from studies.bounds.kept import add_options, drawn
from studies.live.drift import scaled
from studies.live.drift_made import LAWS, campaign

CONFIDENCE, GIVEN, ASKED = 0.9, 30, 4000
MOVES = (("workload", 1.3), ("platform", 1.3), ("workload", 1.0), ("platform", 1.0))
MOVED = {"workload": "w3", "platform": "made:d3"}
HEADS = "names before|names after|moved before|moved after|ratio before|ratio after|margin after"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", default=",".join(LAWS[:4]))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--method", help="by default what `jostle fit` takes")
    parser.add_argument("--fitted", type=int, default=900)
    parser.add_argument("--seed", type=int, default=10, help="the first one")
    add_options(parser)
    options = parser.parse_args()
    print(f"law | draw | {'kind | step | ' + HEADS.replace('|', ' | ')}")
    found: dict[tuple[str, float], list[list[float]]] = {}
    seeds = range(options.seed, options.seed + options.draws)
    keys = ((law, seed) for law in options.laws.split(",") for seed in seeds)
    for (law, seed), rows in drawn(_rows, keys, options).items():
        for kind, step, row in rows:
            found.setdefault((kind, step), []).append(row)
            print(law, seed, kind, step, *(f"{value:.3f}" for value in row), sep=" | ")
    _show_all(found)


def _show_all(found: dict[tuple[str, float], list[list[float]]]) -> None:
    """Means over laws and draws of what is printed, with their standard errors."""
    for move, rows in found.items():
        means = np.mean(rows, axis=0)
        errors = np.std(rows, axis=0, ddof=min(len(rows) - 1, 1)) / np.sqrt(len(rows))
        cells = (f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True))
        print("all", len(rows), *move, *cells, sep=" | ")


def _rows(options: Any, law: str, seed: int) -> list[tuple[str, float, list[float]]]:
    import jostle

    make = campaign(law, seed)
    method = [] if options.method is None else [options.method]
    model = jostle.fit(make(options.fitted), *method, seed=seed)
    stream, to_come, rows = make(6000), make(ASKED), []
    for kind, step in MOVES:
        names = _names(stream, kind)
        turn = np.zeros(len(names), np.int64)
        for name in np.unique(names):
            turn[names == name] = np.arange((names == name).sum())
        new = _moved(stream.take(np.flatnonzero(turn < GIVEN)), kind, step)
        asked = _moved(to_come, kind, step)
        measured = [_measured(one, asked, kind) for one in (model, model.update(new))]
        row = [*np.transpose(measured)[:3].ravel(), measured[1][3]]
        rows.append((kind, step, [round(float(value), 3) for value in row]))
    return rows


def _names(runs: Any, kind: str) -> np.ndarray:
    return np.array(runs.table.column(kind).to_pylist())


def _moved(runs: Any, kind: str, step: float) -> Any:
    return scaled(runs, np.where(_names(runs, kind) == MOVED[kind], step, 1.0))


def _measured(model: Any, asked: Any, kind: str) -> tuple[float, float, float, float]:
    """(coverage in the mean over names, of the one that moved, ratio of its predictions, margin)."""
    import jostle

    bounds, took = model.bound(asked.colocations, CONFIDENCE), asked.runtime_seconds
    covered, names = took <= bounds.seconds, _names(asked, kind)
    by_name = [covered[names == name].mean() for name in np.unique(names)]
    mine, valid = names == MOVED[kind], bounds.is_valid
    ratio = float(np.median(model.predict(asked.colocations)[mine] / took[mine]))
    margin = jostle.bounds.margin(bounds.seconds[valid], took[valid])
    return float(np.mean(by_name)), float(covered[mine].mean()), ratio, margin


if __name__ == "__main__":
    main()
