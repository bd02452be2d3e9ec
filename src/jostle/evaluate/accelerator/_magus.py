"""`jostle evaluate accelerator --on magus13`: wall times of whole processes, each pair from others.

What is measured is what a user gets: `fit` on a part of the runs, and `predict`, with no setting but the name
of the device. The rivals are given the same runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.accelerator import Accelerator
from jostle.evaluate.accelerator._rules import Pairs, baselines
from jostle.evaluate.accelerator._tables import AcceleratorEvaluation, error_table, errors_of
from jostle.methods import Data, learn
from jostle.progress import Progress, no_progress
from jostle.runs import MagusImport, Runs, all_names, solo_medians
from jostle.traces import Profile, read_profile

GPU = "GTX 1080 Ti"
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}
FOLDS, SHARE, FEW, DRAWS = 10, 0.2, 6, 5
OURS = "accelerator"
LABELS = {
    OURS: "fit accelerator",
    "additive": "additive in target and partner",
    "bubble": "bubble: sensitivity times pressure",
    "constant": "solo time and a constant",
    "solo": "solo time",
}


@dataclass(frozen=True, eq=False)
class Magus:
    """runs: of both campaigns. profiles: {workload: its trace alone}. unit: (n,) the pair of each run, -1
    alone. campaign: (n,) names."""

    runs: Runs
    profiles: Mapping[str, Profile]
    unit: np.ndarray
    campaign: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> Magus:
        """Raises UnreadableFile."""
        runs = MagusImport(folder).read().runs
        profiles = {
            name: read_profile(
                folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name
            )
            for name in runs.colocations.workload_names
        }
        alone = runs.colocations.number_of_corunners == 0
        unit = np.where(alone, -1, runs.units("together"))
        return cls(runs, profiles, unit, np.array(runs.table.column("campaign").to_pylist()))

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
    """(name in metrics, label, parts); runs alone are always learned from, of the campaigns at hand."""
    beside, units = data.unit >= 0, np.unique(data.unit[data.unit >= 0])
    turn = np.random.default_rng(seed).permutation(len(units))
    fold = dict(zip(units.tolist(), (turn % FOLDS).tolist(), strict=True))
    of_fold = np.array([fold.get(unit, -1) for unit in data.unit.tolist()])
    parts = [MagusSplit(of_fold != k, of_fold == k) for k in range(FOLDS)]
    yield "ten_folds", "pairs in ten folds", parts
    parts = [MagusSplit(data.unit != u, data.unit == u, averaged=True) for u in units]
    yield "pair_left_out", "one pair left out, mean of its runs", parts
    columns = data.runs.colocations.to_columns()
    named = list(zip(columns["workload"], columns["corunners"], strict=True))
    parts = []
    for name in data.profiles:
        takes_part = np.array([w == name or name in others for w, others in named]) & beside
        parts.append(MagusSplit(~takes_part, takes_part))
    yield "unseen_application", "an application left out", parts
    one, other = np.unique(data.campaign)
    parts = []
    for campaign in (one, other):
        mine = data.campaign == campaign
        for k in range(FOLDS):
            parts.append(MagusSplit(mine & (of_fold != k), ~mine & (of_fold == k)))
    yield "other_campaign", "the other campaign, its pairs left out", parts
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


def answers(data: Magus, split: MagusSplit, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """({name: (m,) s}, (m,) s measured) of what is tested."""
    test, known = data.pairs(split.test), data.pairs(split.train)
    source = Data(data.runs.take(np.flatnonzero(split.train)), profiles=dict(data.profiles))
    fitted = learn(Accelerator(gpu=GPU), source, seed=seed)
    asked = data.runs.take(np.flatnonzero(split.test)).colocations
    found = {OURS: fitted.predict(asked), **baselines(known, test)}
    if not split.averaged:
        return found, test.corun
    key, place = np.unique(
        test.target, return_inverse=True
    )  # of one pair, the target says which side
    count = np.bincount(place, minlength=len(key))

    def mean(values: np.ndarray) -> np.ndarray:
        return np.bincount(place, values, len(key)) / count

    return {name: mean(values) for name, values in found.items()}, mean(test.corun)


def evaluate_accelerator_magus(
    folder: Path, seed: int = 0, progress: Progress = no_progress
) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from other pairs (both sides of a pair and all its runs are left out together)."""
    data = Magus.read(folder)
    metrics: dict[str, float] = {}
    rows = []
    every = list(splits(data, seed))
    done, total = 0, sum(len(parts) for _, _, parts in every)
    for tag, label, parts in every:
        found: list[dict[str, np.ndarray]] = []
        measured = []
        for split in parts:
            predicted, true = answers(data, split, seed)
            found.append(predicted)
            measured.append(true)
            done += 1
            progress(done, total, float("nan"))
        for name, text in LABELS.items():
            errors = errors_of(np.concatenate([f[name] for f in found]), np.concatenate(measured))
            rows.append((f"{label}: {text}", errors))
            prefix = tag if name == OURS else f"{name}_{tag}"
            metrics |= (
                {f"{prefix}_{key}": value for key, value in errors.items()}
                if name == OURS
                else {f"{prefix}_error_mean_ratio": errors["error_mean_ratio"]}
            )
        by_part = [
            {name: float(np.mean(np.abs(f[name] / true - 1))) for name in LABELS}
            for f, true in zip(found, measured, strict=True)
        ]
        over = [part[OURS] - min(v for k, v in part.items() if k != OURS) for part in by_part]
        if tag in ("fifth_known", "six_known"):
            metrics[f"{tag}_most_over_best_rule_ratio"] = max(over)
    metrics["targets"] = float((data.unit >= 0).sum())
    return AcceleratorEvaluation(metrics, error_table(rows, "what is left out"))
