"""Whether runs beside others take another time than alone at all."""

from __future__ import annotations

import numpy as np

from jostle.learn.rules._set_residuals import keys_of, variance_of_repeats
from jostle.learn.rules._shrunk_weights import gain_is_insignificant, mean_differs
from jostle.learn.rules._slowdown_rows import SlowdownRows

SHUFFLES = 999
MOST_SHUFFLED = 2_000  # runs, of whole cells
PLAIN, FAINT = 0.005, 0.1  # probabilities of such a difference by chance: plainly there, faintly
STRICT = 3.0  # standard errors by which answers must be closer than no slowdown where it is not even faint


def interference_p_value(
    cell: np.ndarray, log_runtime: np.ndarray, beside: np.ndarray, seed: int
) -> float:
    """How often chance alone sets runs beside others so far from runs alone; NaN where no cell has both.

    cell: (n,) what ran where; beside: (n,) bool. Without interference all runs of a cell are alike, so that
    labels may be shuffled within it (a stratified permutation test, Fisher 1935): by the sum of all
    differences, and by that of their squares, twice the smaller probability.
    """
    _, at = np.unique(cell, return_inverse=True)
    both = np.bincount(at, beside) * np.bincount(at, ~beside) > 0
    if not both.any():
        return float("nan")
    random = np.random.default_rng([seed, 29])
    order = random.permutation(np.flatnonzero(both))
    total = np.cumsum(np.bincount(at)[order])
    drawn = np.isin(at, order[: max(1, int(np.searchsorted(total, MOST_SHUFFLED, "right")))])
    _, at = np.unique(at[drawn], return_inverse=True)
    y, label = log_runtime[drawn], beside[drawn]
    order = np.argsort(at, kind="stable")
    at, y, label = at[order], y[order], label[order]
    size, there = np.bincount(at), np.bincount(at, label)
    y = y - (np.bincount(at, y) / size)[at]
    scale = size / (there * (size - there))  # of a sum of those beside, to a difference of means
    mixed = _shuffles(at, random)
    sums = np.add.reduceat(y * label[mixed], np.cumsum(size) - size, axis=1)
    statistics = np.stack([np.abs(sums.sum(1)), (scale * sums**2).sum(1)])
    exceeded = (statistics >= statistics[:, :1] * (1 - 1e-12)).mean(1)
    return float(min(1.0, 2 * exceeded.min()))


def is_within_noise(
    rows: SlowdownRows, alone: np.ndarray, log_solo: np.ndarray, chance: float
) -> bool:
    """Tell whether all runs beside others are alone's, as far as repeated runs alone tell how these scatter.

    rows: all runs beside others, those with stressors, too.
    alone, log_solo: (m,) what ran where alone, and its log time.
    chance: of interference_p_value, of all of them.
    Where few sets are known nothing can be left out to see what rules are worth; a shuffle of few runs finds
    nothing whatever they cost, so their spread must not be plainly more than of runs alone (F test), too.
    """
    from scipy.special import fdtrc

    noise = variance_of_repeats(alone, log_solo)
    if not (chance > FAINT and noise > 0 and len(rows)):
        return False
    count = np.bincount(alone, minlength=int(rows.target.max()) + 1)[rows.target]
    expected = noise * (1 + 1 / np.maximum(count, 1))
    free = len(alone) - len(np.unique(alone))
    ratio = float(np.mean(rows.log_slowdown**2 / expected))
    return bool(fdtrc(len(rows), free, ratio) > PLAIN)


def corunner_identity_p_value(rows: SlowdownRows, together: np.ndarray, seed: int) -> float:
    """How often chance alone makes it matter so much who is beside a target; NaN where none met two sets.

    together: (n,) codes of who ran side by side, on any platform. Company that costs as often as it helps
    moves no mean. But without interference the runs of a target beside others are alike, so that they may be
    shuffled among themselves: by the sum of squared sums of what is beyond the target's mean, each over their
    number, of every co-runner, and of all who ran together, twice the smaller probability. Repeats of a set
    are averaged first.
    """
    from scipy.sparse import csr_matrix

    key, first, at = np.unique(keys_of(rows), return_index=True, return_inverse=True)
    y = np.bincount(at, rows.log_slowdown) / np.bincount(at)
    random = np.random.default_rng([seed, 31])
    keep = np.zeros(len(rows), bool)
    keep[first[random.permutation(len(key))[:MOST_SHUFFLED]]] = True
    rows, y = rows.take(keep), y[at[keep]]
    _, at = np.unique(rows.target, return_inverse=True)
    size = np.bincount(at)
    if size.max(initial=0) < 2:
        return float("nan")
    y = y - (np.bincount(at, y) / size)[at]
    order = np.argsort(at, kind="stable")
    shuffled = y[order][_shuffles(at[order], random)].T
    chances = []
    for place, code in (rows.row, rows.corunner), (np.arange(len(rows)), together[keep]):
        _, code, count = np.unique(code, return_inverse=True, return_counts=True)
        group = csr_matrix((np.ones(len(code)), (code, place)), shape=(len(count), len(rows)))
        statistic = ((group[:, order] @ shuffled) ** 2 / count[:, None]).sum(0)
        chances.append((statistic >= statistic[0] * (1 - 1e-12)).mean())
    return float(min(1.0, 2 * min(chances)))


def _shuffles(at: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(SHUFFLES + 1, n) places, mixed within those of one code, ascending; the first as they are."""
    mixed = np.argsort(at + random.random((SHUFFLES + 1, len(at))), axis=1)
    mixed[0] = np.arange(len(at))
    return mixed


def either(*chances: float) -> float:
    """The chance of the least of several, of which chance may be as many times as likely to be so small; NaN
    where all are."""
    known = [chance for chance in chances if chance == chance]
    return min(1.0, len(known) * min(known)) if known else float("nan")


def is_noise(chance: float, gain: np.ndarray, sets: np.ndarray) -> bool:
    """Whether what rules answer is to be taken for noise. chance: of interference_p_value. gain: (n,) by how
    much they are closer than no slowdown."""
    if chance <= PLAIN:
        return False
    if chance > FAINT:
        return gain_is_insignificant(gain, sets, STRICT)
    return gain_is_insignificant(gain, sets)


def no_interference_detected(
    chance: float,
    gain: np.ndarray,
    log_slowdown: np.ndarray,
    unit: np.ndarray,
    target: np.ndarray,
) -> bool:
    """The same of rows left out, of which those (n,) of one unit count as one; where no cell ran alone and
    beside others, runs that plainly take another time than alone are more than noise however little rules
    tell of them. target: (n,) cells."""
    if not is_noise(chance, gain, unit):
        return False
    return not (np.isnan(chance) and mean_differs(log_slowdown, target))
