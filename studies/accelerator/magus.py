"""`python -m studies accelerator --on magus13`: wall times of whole processes, each pair from others.

What is measured is what a user gets: `fit` on a part of the runs, and `predict`, with no setting but the name
of the device. The rivals are given the same runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Table
from jostle.data import Profile, Runs, all_names, read_profile, solo_medians
from jostle.learn import Data, learn
from jostle.learn.learners.simulation import Accelerator
from jostle.models import fit
from studies.accelerator.errors import AcceleratorEvaluation, Pairs, baselines, errors_of
from studies.data.magus import read_magus

GPU = "GTX 1080 Ti"
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}
FOLDS, SHARE, FEW, DRAWS = 10, 0.2, 6, 5
OURS, MEASURED, BOUND, PAIR = "accelerator", "measured", "bound", "pair"
SLICED = "time_sliced"  # as ours, where the way to share is given: these processes share by slices
CONFIDENCE = 0.9
BOUNDED = "ten_folds"  # whose coverage is measured
LABELS = {
    OURS: "fit accelerator",
    SLICED: "fit accelerator --sharing time-sliced",
    "additive": "additive in target and partner",
    "constant": "solo time and a constant",
    "solo": "solo time",
}


@dataclass(frozen=True, eq=False)
class Magus:
    """runs: of both campaigns. profiles: {workload: its trace alone}. unit: (n,) the pair of each run, -1
    alone."""

    runs: Runs
    profiles: Mapping[str, Profile]
    unit: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> Magus:
        """Raises UnreadableFile."""
        runs = read_magus(folder)
        profiles = {
            name: read_profile(
                folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name
            )
            for name in runs.colocations.workload_names
        }
        alone = runs.colocations.number_of_corunners == 0
        return cls(runs, profiles, np.where(alone, -1, runs.units("together")))

    def pairs(self, rows: np.ndarray) -> Pairs:
        """The rows beside others, as rivals see them. rows: (n,) bool."""
        runs = self.runs.take(np.flatnonzero(rows & (self.unit >= 0)))
        names = all_names(self.runs)
        solo = np.exp(solo_medians(self.runs, *names))[0]
        target, _, other = runs.colocations.recode(*names)
        return Pairs(names[0], target, other, solo[target], runs.runtime_seconds)


@dataclass(frozen=True, eq=False)
class MagusSplit:
    """train, test: (n,) bool. averaged: whether runs of one target beside one other are tested by their
    mean."""

    train: np.ndarray
    test: np.ndarray
    averaged: bool = False


def splits(data: Magus, seed: int) -> Iterator[tuple[str, str, list[MagusSplit]]]:
    """(name in metrics, label, parts); runs alone are always learned from."""
    beside, units = data.unit >= 0, np.unique(data.unit[data.unit >= 0])
    turn = np.random.default_rng(seed).permutation(len(units))
    fold = dict(zip(units.tolist(), (turn % FOLDS).tolist(), strict=True))
    of_fold = np.array([fold.get(unit, -1) for unit in data.unit.tolist()])
    parts = [MagusSplit(of_fold != k, of_fold == k) for k in range(FOLDS)]
    yield BOUNDED, "pairs in ten folds", parts
    parts = [MagusSplit(data.unit != u, data.unit == u, averaged=True) for u in units]
    yield "pair_left_out", "one pair left out, mean of its runs", parts
    columns = data.runs.colocations.to_columns()
    named = list(zip(columns["workload"], columns["corunners"], strict=True))
    parts = []
    for name in data.profiles:
        takes_part = np.array([w == name or name in others for w, others in named]) & beside
        parts.append(MagusSplit(~takes_part, takes_part))
    yield "unseen_application", "an application left out", parts
    for tag, label, count in (
        ("fifth_known", "a fifth of the pairs known", round(SHARE * len(units))),
        ("six_known", "six pairs known", FEW),
    ):
        parts = []
        for draw in range(DRAWS):
            kept = np.random.default_rng([seed, draw]).permutation(units)[:count]
            known = ~beside | np.isin(data.unit, kept)
            parts.append(MagusSplit(known, ~known))
        yield tag, label, parts


def answers(
    data: Magus, split: MagusSplit, seed: int, calibration: int | None
) -> dict[str, np.ndarray]:
    """(m,) each, of the targets tested: measured, and what each of LABELS answers, fitted as a user fits.
    calibration: the seed of a second fit, which calibrates: then time slices, bound and pair, too."""
    test, known = data.pairs(split.test), data.pairs(split.train)
    source = Data(data.runs.take(np.flatnonzero(split.train)), profiles=dict(data.profiles))
    asked = data.runs.take(np.flatnonzero(split.test)).colocations
    found = {OURS: learn(Accelerator(gpu=GPU), source, seed=seed).predict(asked)}
    found |= {**baselines(known, test), MEASURED: test.corun}
    if calibration is not None:
        sliced = learn(Accelerator(gpu=GPU, sharing="time-sliced"), source, seed=seed)
        found[SLICED] = sliced.predict(asked)
        model = fit(source, Accelerator(gpu=GPU), seed=calibration)
        found[BOUND] = model.bound(asked, CONFIDENCE).seconds
        found[PAIR] = data.unit[split.test].astype(float)
    if split.averaged:  # of one pair, the target says which side
        key, place = np.unique(test.target, return_inverse=True)
        count = np.bincount(place, minlength=len(key))
        found = {n: np.bincount(place, v, len(key)) / count for n, v in found.items()}
    return found


def evaluate_accelerator_magus(
    folder: Path, seed: int = 0, progress: Progress = no_progress
) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from other pairs (both sides of a pair and all its runs are left out together)."""
    data = Magus.read(folder)
    every = list(splits(data, seed))
    metrics: dict[str, float] = {}
    rows = []
    done, total = 0, sum(len(parts) for *_, parts in every)
    for tag, label, parts in every:
        by_part = []
        for number, part in enumerate(parts):
            # What calibrates is drawn anew for each part: of one draw coverage would be that of its bounds.
            calibration = 1000 * seed + number if tag == BOUNDED else None
            by_part.append(answers(data, part, seed, calibration))
            done += 1
            progress(done, total, float("nan"))
        found = {n: np.concatenate([part[n] for part in by_part]) for n in by_part[0]}
        for name, text in ((name, text) for name, text in LABELS.items() if name in found):
            errors = errors_of(found[name], found[MEASURED], f"{name}_{tag}_")
            metrics |= errors
            rows.append((f"{label}: {text}", *(f"{100 * value:.2f}%" for value in errors.values())))
        if tag == BOUNDED:
            metrics |= _coverage(tag, found)
    table = Table(("what is left out", "mean", "p95", "max"), rows)
    return AcceleratorEvaluation(metrics, table)


def _coverage(tag: str, found: dict[str, np.ndarray]) -> dict[str, float]:
    """Every pair weighs the same; the standard error is over pairs."""
    kept, unit = found[MEASURED] <= found[BOUND], found[PAIR]
    shares = np.array([kept[unit == one].mean() for one in np.unique(unit)])
    margin = found[BOUND] / found[MEASURED] - 1
    return {
        f"{tag}_coverage_90_ratio": float(shares.mean()),
        f"{tag}_coverage_90_standard_error_ratio": float(shares.std(ddof=1) / np.sqrt(len(shares))),
        f"{tag}_margin_90_ratio": float(np.median(margin)),
    }
