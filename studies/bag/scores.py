"""What predictions for bags are worth: of runs, and of bags, whose time is that of the last member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jostle.runs import Runs

Answers = list[tuple[np.ndarray, np.ndarray]]  # rows and predicted seconds, of each fit


def scores(runs: Runs, answers: Answers) -> dict[str, float]:
    """Measures by their documented names, with `{}` for test and method."""
    from jostle.runs import solo_medians

    held = np.concatenate([rows for rows, _ in answers])
    guess = np.concatenate([seconds for _, seconds in answers])
    actual = runs.runtime_seconds[held]
    results = {"relative_error_mean_{}_ratio": float(np.nanmean(np.abs(guess / actual - 1)))}
    c = runs.colocations
    solo = np.exp(solo_medians(runs, c.workload_names, c.platform_names))
    extra = actual - solo[c.platform[held], c.workload[held]]
    usable = np.isfinite(extra) & np.isfinite(guess)
    spread = float(((extra - extra[usable].mean())[usable] ** 2).sum())
    if spread > 0:
        left = float(((guess - actual)[usable] ** 2).sum())
        results["extra_time_r2_{}"] = 1 - left / spread
        log_slowdown = np.log(actual / (actual - extra))[usable]
        varies = float(log_slowdown.var() * usable.sum())
        left = float((np.log(guess / actual)[usable] ** 2).sum())
        results["log_slowdown_r2_{}"] = 1 - left / varies if varies > 0 else float("nan")
    whole = np.concatenate([bag_errors(runs, rows, seconds) for rows, seconds in answers])
    if len(whole):
        results["relative_error_mean_bag_{}_ratio"] = float(np.nanmean(whole))
    return results


def bag_errors(runs: Runs, rows: np.ndarray, seconds: np.ndarray) -> np.ndarray:
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
