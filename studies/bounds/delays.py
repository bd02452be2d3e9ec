"""How soon a small change of one device can be told, by whatever test, and how soon the watch tells it.

    python -m studies.bounds.delays [--laws NAME,...] [--fitted 900,4000] [--seed 10]

Made campaigns (studies.live.drift_made), by the quick method. Best: the median delay of the cumulative sum
of one who was told the device, the change and the laws of the scores before and after it; no test with as
many false alarms tells sooner in the worst case (Page 1954; Moustakides 1986). All of the median device.
Its runs until an alarm are those of a Markov chain (Brook and Evans 1972). Scores are normal ones by the
rank of errors, as the watch sees them, which x1.05 shifts; noise of .10 on top makes errors wider. False
alarms: one in 60 000 runs of a level, or in 4 million, with which fleet, devices, platforms and workloads
together raise one in 60 000 runs with chance .06.

That is where the usual level is known exactly. Where m runs tell it, the best test takes so many as bear the
same evidence that m runs and those after them are of two normal laws: n m / (m - n) in place of n
for x1.05. Never are enough (–) where m is too small: `known from m`. The watch was told nothing. Every second
device in turn changes from run 1 000 of a stream on; what is not told by its end comes last. told: how many
were, and how many in a stream without a change.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import chdtr, ndtr, ndtri

import jostle
from studies.bounds.made import Additive
from studies.data import one_core
from studies.live.drift import devices_of, scaled
from studies.live.drift_made import LAWS, campaign

STEP, NOISE, RUNS, ALARMS = np.log(1.05), 0.10, 6000, (6e4, 4e6)
KINDS = ("x1.05", "spread .10")
START, EVERY = 1000, 2
CELLS = 100  # of the sums under the threshold
Law = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--laws", default=",".join(LAWS))
    parser.add_argument("--fitted", default="900,4000", help="runs, by commas")
    parser.add_argument("--seed", type=int, default=10)
    options = parser.parse_args()
    one_core()
    heads = ["m", "told without"]
    for what in KINDS:
        heads += [f"{what}: best, one in {a:.0f}" for a in ALARMS]
        heads += [f"known from m, one in {a:.0f}" for a in ALARMS]
        heads += ["the watch, median", "told"]
    print("law | fitted | spread of errors | shift of scores", *heads, sep=" | ", flush=True)
    for law in options.laws.split(","):
        for fitted in options.fitted.split(","):
            print(law, fitted, *_row(law, int(fitted), options.seed), sep=" | ", flush=True)


def _row(name_of_law: str, fitted: int, seed: int) -> list[str]:
    make = campaign(name_of_law, seed)
    learned = make(fitted)
    model = jostle.fit(learned, Additive(), seed=seed)
    runs = make(RUNS)
    off = np.log(runs.runtime_seconds / model.predict(runs.colocations))
    degree, device = runs.colocations.number_of_corunners, devices_of(runs)
    usual, moved = (_normal(off, step, degree) for step in (0.0, STEP))
    names = np.unique(device)
    each = [device == name for name in names]
    spread = float(np.median([off[at].std() for at in each]))
    shift = float(np.median([(moved - usual)[at].mean() / usual[at].std() for at in each]))
    known = float(np.median([at[:START].sum() for at in each])) + fitted / len(names)
    false, wide = len(model.watch().update(runs)), float(np.hypot(spread, NOISE) / spread)
    cells = [f"{spread:.3f}", f"{shift:.2f}", f"{known:.0f}", f"{false}"]
    laws = _laws_of_shift(shift), _laws_of_spread(wide)
    factors = (
        np.full(RUNS, np.exp(STEP)),
        np.exp(NOISE * np.random.default_rng(0).normal(size=RUNS)),
    )
    for kind, law, factor in zip(KINDS, laws, factors, strict=True):
        best = [_delay(*law, alarms) for alarms in ALARMS]
        after = [_known_from(known, n, wide if kind == KINDS[1] else None) for n in best]
        delays = [_watched(model, runs, device, name, factor) for name in names[::EVERY]]
        middles = (*best, *after, np.median(delays))
        cells += [f"{one:.0f}" if np.isfinite(one) else "–" for one in middles]
        cells.append(f"{np.isfinite(delays).sum()} of {len(delays)}")
    return cells


def _known_from(m: float, n: float, wide: float | None) -> float:
    """Runs after a change, of which the usual is known from m, that bear the evidence of n where it is
    known exactly. wide: how many times as wide errors become, None where their mean moves."""
    if wide is None:
        return n * m / (m - n) if n < m else np.inf
    k = np.arange(1.0, 1e5)
    evidence = (m + k) * np.log((m + k * wide**2) / (m + k)) - k * np.log(wide**2)
    enough = evidence >= n * (wide**2 - 1 - np.log(wide**2))
    return float(k[enough.argmax()]) if enough.any() else np.inf


def _normal(off: np.ndarray, step: float, degree: np.ndarray) -> np.ndarray:
    """(n,) normal scores of errors a step later, by their rank among those of as many co-runners."""
    scores = np.zeros(len(off))
    for d in np.unique(degree):
        at = degree == d
        rank = np.searchsorted(np.sort(off[at]), off[at] + step) + 0.5
        scores[at] = ndtri(np.minimum(rank, at.sum() - 0.5) / at.sum())
    return scores


def _laws_of_shift(shift: float) -> tuple[Law, Law]:
    """Of the log likelihood ratio of one run, before and after a normal number moves by that."""
    before, after = (lambda x, m=m: ndtr(x / shift + m * shift / 2) for m in (1, -1))
    return before, after


def _laws_of_spread(ratio: float) -> tuple[Law, Law]:
    """The same, where it becomes so many times as wide."""

    def square(x: np.ndarray) -> np.ndarray:
        return np.maximum(2 * (x + np.log(ratio)) / (1 - ratio**-2), 0.0)

    return (lambda x: chdtr(1, square(x))), (lambda x: chdtr(1, square(x) / ratio**2))


def _delay(before: Law, after: Law, alarms: float) -> float:
    """Median runs until the cumulative sum tells a change, from a sum of 0, where without one it takes so
    many in the mean until it tells one."""
    low, high = 0.1, 20.0
    for _ in range(25):
        middle = (low + high) / 2
        rest = np.eye(CELLS) - _stays(before, middle)
        too_few = np.linalg.solve(rest, np.ones(CELLS))[0] < alarms
        low, high = (middle, high) if too_few else (low, middle)
    stays, left, n = _stays(after, high), np.eye(CELLS)[0], 0
    while left.sum() > 0.5:
        left, n = left @ stays, n + 1
    return float(n)


def _stays(law: Law, end: float) -> np.ndarray:
    """(cells, cells) the chances with which a sum goes from cell to cell under the threshold."""
    width = end / (CELLS - 0.5)
    at = width * np.arange(CELLS)
    return np.diff(law(at + width / 2 - at[:, None]), axis=1, prepend=0.0)


def _watched(model: Any, runs: Any, device: np.ndarray, name: str, factor: np.ndarray) -> float:
    """Runs of a device from its change on until the watch tells it. factor: (n,) of times that changed."""
    off = (device == name) & (np.arange(len(runs)) >= START)
    drifts = model.watch().update(scaled(runs, np.where(off, factor, 1.0)))
    # A device with one platform is that platform.
    found = [d.found for d in drifts if d.name.rpartition(":")[2] == name and d.found >= START]
    return float(off[: min(found) + 1].sum()) if found else np.inf


if __name__ == "__main__":
    main()
