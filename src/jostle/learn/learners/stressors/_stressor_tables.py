"""What was measured beside stressors, as tables of log slowdowns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.learn.training._set_keys import variance_of_repeats

if TYPE_CHECKING:
    from jostle.data import Runs

MOST_SUGGESTED = 4  # names that an error lists


def fits(name: str, wanted: Sequence[str]) -> bool:
    """Tell whether the name is one of the wanted names, or fits one of the wanted patterns."""
    return any(fnmatchcase(name, one) for one in wanted)


def stressors_among(runs: Runs, wanted: Sequence[str]) -> tuple[str, ...]:
    """List workloads that ran and fit a name or pattern, sorted. Raises NotEnoughRuns for none."""
    colocations = runs.colocations
    ran = sorted({colocations.workload_names[code] for code in np.unique(colocations.workload)})
    stressors = tuple(name for name in ran if fits(name, wanted))
    if stressors:
        return stressors
    single = np.flatnonzero(colocations.number_of_corunners == 1)
    beside = sorted({colocations.row(int(row))[::2] for row in single})
    met = Counter(others[0] for _, others in beside)
    usual = ", ".join(name for name, _ in met.most_common(MOST_SUGGESTED))
    raise NotEnoughRuns(
        f"none of {len(ran)} workloads is a stressor: no name fits {', '.join(wanted)}",
        fix="Measure beside probes (jostle measure), or name workloads that ran beside most others as "
        f"`stressors`{': ' + usual if usual else ''}.",
    )


def is_probing(runs: Runs, stressors: Sequence[str]) -> np.ndarray:
    """Mark runs of two programs, of which one or both are stressors, (n,) bool."""
    c = runs.colocations
    known = dict.fromkeys(stressors, True)
    by_code = np.array([known.get(name, False) for name in c.workload_names], bool)
    out = np.zeros(len(c), bool)
    single = np.flatnonzero(c.number_of_corunners == 1)
    beside = c.corunner[c.corunner_offsets[:-1][single]]
    out[single] = by_code[c.workload[single]] | by_code[beside]
    return out


@dataclass(frozen=True)
class ProbeTables:
    """Medians of log slowdowns, NaN where nothing was measured. names: workloads, platforms. stressor: (k,)
    codes. log_solo: (platforms, workloads). suffered: (platforms, workloads, k) of each workload beside each
    stressor; pressed: (platforms, workloads, k) of each stressor beside each workload; variance: of both, by
    what repeats differ or, where too few were repeated, by what seems quicker beside stressors than alone."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    stressor: np.ndarray
    log_solo: np.ndarray
    suffered: np.ndarray
    pressed: np.ndarray
    variance: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(
        cls, runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], stressors: Sequence[str]
    ) -> ProbeTables:
        """names: all that occur, sorted."""
        from jostle.data import solo_medians

        w, p = len(names[0]), len(names[1])
        log_solo = solo_medians(runs, *names)
        workload, platform, corunner = (
            codes.astype(np.int64) for codes in runs.colocations.recode(*names)
        )
        stressor = np.array([names[0].index(name) for name in stressors], np.int64)
        number = np.full(w, -1)
        number[stressor] = np.arange(len(stressor))
        single = np.flatnonzero(runs.colocations.number_of_corunners == 1)
        beside = corunner[runs.colocations.corunner_offsets[:-1][single]]
        target, place = workload[single], platform[single]
        log_runtime = np.log(runs.runtime_seconds)
        slow = log_runtime[single] - log_solo[place, target]
        shape = (p, w, len(stressor))
        sides = [(place, target, number[beside]), (place, beside, number[target])]
        alone = np.flatnonzero(runs.colocations.number_of_corunners == 0)
        solo_times = np.zeros((p, w), np.int64)
        np.add.at(solo_times, (platform[alone], workload[alone]), 1)
        # Alone, and each beside each one: what is the same is repeated.
        same = np.concatenate(
            [-1 - (platform * w + workload)[alone], (place * w + target) * w + beside]
        )
        noise = variance_of_repeats(same, log_runtime[np.concatenate([alone, single])])
        solo = [solo_times[:, :, None], solo_times[:, stressor][:, None, :]]
        if np.isnan(noise):
            noise = max(_of_quicker(slow[at >= 0]) for *_, at in sides)
        suffered, pressed = (
            noise * (_of_median(_times(shape, side)) + _of_median(times))
            for side, times in zip(sides, solo, strict=True)
        )
        return cls(
            names,
            stressor,
            log_solo,
            _medians(shape, sides[0], slow),
            _medians(shape, sides[1], slow),
            (suffered, pressed),
        )

    def without_noise(self) -> ProbeTables:
        """Shrink each workload's row of both tables towards no interference by the share that is noise (James
        and Stein 1961, positive part)."""
        drawn = [
            each * _kept(each, variance)
            for each, variance in zip((self.suffered, self.pressed), self.variance, strict=True)
        ]
        return replace(self, suffered=drawn[0], pressed=drawn[1])


def _of_quicker(slow: np.ndarray) -> float:
    """Variance of a run, if what seems quicker beside others than alone is noise, of which there is as much
    above."""
    known = slow[np.isfinite(slow)]
    return float(np.mean(np.minimum(known, 0.0) ** 2)) if len(known) else 0.0


def _kept(values: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Return the share of values to keep, (platforms, workloads, 1) from 0 to 1."""
    known = np.isfinite(values) & np.isfinite(variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        size = np.where(known, values**2 / variance, 0.0).sum(axis=2, keepdims=True)
        shares = np.clip(1 - known.sum(axis=2, keepdims=True) / size, 0.0, 1.0)
    return np.where(known.any(axis=2, keepdims=True), np.nan_to_num(shares), 1.0)


def _of_median(times: np.ndarray) -> np.ndarray:
    """Variances of medians of so many, over that of one, NaN where there is none."""
    return np.where(times > 2, np.pi / 2, 1.0) / np.where(times > 0, times, np.nan)


def _times(
    shape: tuple[int, int, int], at: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """Count how often each cell was measured."""
    out = np.zeros(shape, np.int64)
    keep = at[2] >= 0
    np.add.at(out, tuple(part[keep] for part in at), 1)
    return out


def _medians(
    shape: tuple[int, int, int], at: tuple[np.ndarray, np.ndarray, np.ndarray], value: np.ndarray
) -> np.ndarray:
    """Return the median of each cell's values; rows with a cell of -1 or no value are left out."""
    keep = (at[2] >= 0) & np.isfinite(value)
    cell = np.ravel_multi_index(tuple(part[keep] for part in at), shape)
    order = np.lexsort((value[keep], cell))
    cell, value = cell[order], value[keep][order]
    out = np.full(int(np.prod(shape)), np.nan)
    each, first, count = np.unique(cell, return_index=True, return_counts=True)
    if len(each):
        out[each] = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    return out.reshape(shape)
