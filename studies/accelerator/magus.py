"""`python -m studies accelerator --on magus13`: wall times of whole processes, each pair from others.

What is measured is what a user gets: `fit` on a part of the runs, and `predict`, with no setting but the name
of the device. The rivals are given the same runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jostle import __version__
from jostle.accelerator import Accelerator
from jostle.errors import UnknownName
from jostle.methods import Data, learn
from jostle.models import fit
from jostle.progress import Progress, no_progress
from jostle.runs import Runs, all_names, solo_medians
from jostle.traces import Profile, read_profile
from studies.accelerator.rules import Pairs, baselines
from studies.accelerator.tables import AcceleratorEvaluation, error_table, errors_of
from studies.cells import Runner, file_name
from studies.data.magus import read_magus

if TYPE_CHECKING:
    import pyarrow as pa

GPU = "GTX 1080 Ti"
# Names in the table of pairs and of the files differ for two.
_FILES = {"binopt": "binomialOptions", "convfft2d": "convolutionFFT2D"}
FOLDS, SHARE, FEW, DRAWS = 10, 0.2, 6, 5
OURS, MEASURED, BOUND, PAIR = "accelerator", "measured", "bound", "pair"
SLICED = (
    "time_sliced"  # as ours, where the way to share is given: these processes share by time slices
)
HELD_OUT = "held_out_names"  # 1 where that is the outcome of the bound
CONFIDENCE = 0.9
TESTS = (
    *("ten_folds", "pair_left_out", "unseen_application"),
    *("other_campaign", "fifth_known", "six_known"),
)
BOUNDED = ("ten_folds",)  # whose coverage is measured
NEW = "unseen_application"  # measured, too, where fits that leave names out may take their time
LABELS = {
    OURS: "fit accelerator",
    SLICED: "fit accelerator --sharing time-sliced",
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
        runs = read_magus(folder)
        profiles = {
            name: read_profile(
                folder / "traces" / f"{_FILES.get(name, name)}_trace.csv", workload=name
            )
            for name in runs.colocations.workload_names
        }
        alone = runs.colocations.number_of_corunners == 0
        unit = np.where(alone, -1, runs.units("together"))
        return cls(runs, profiles, unit, np.array(runs.table.column("campaign").to_pylist()))

    @property
    def version(self) -> str:
        """Of the runs and traces."""
        found = hashlib.sha256(repr(self.runs.colocations.to_columns()).encode())
        found.update(self.runs.runtime_seconds.tobytes())
        for name, profile in self.profiles.items():
            found.update(name.encode())
            found.update(profile.column("duration_seconds").tobytes())
        return found.hexdigest()[:16]

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


@dataclass(frozen=True, eq=False)
class MagusCell:
    """One part of one test: a fit as a user makes it, what it answers, and what rivals do. tag, number: of
    the test and its part. bounded: whether a second fit, which calibrates, gives bounds. data: which runs."""

    tag: str
    number: int
    split: MagusSplit
    bounded: bool
    seed: int
    data: str
    new_names: bool = False

    @property
    def file_name(self) -> str:
        split = tuple(column.tobytes() for column in (self.split.train, self.split.test))
        parts = (__version__, self.data, split, self.split.averaged, self.bounded, self.seed)
        parts += (self.new_names,) if self.new_names else ()
        return file_name(f"accelerator-{self.tag}-{self.number}", parts)

    def measure(self, data: Magus) -> pa.Table:
        """A row for each target tested: measured, what each of LABELS answers, bound, pair. Time slices are
        tried in BOUNDED alone."""
        import pyarrow as pa

        split, seed = self.split, self.seed
        test, known = data.pairs(split.test), data.pairs(split.train)
        source = Data(data.runs.take(np.flatnonzero(split.train)), profiles=dict(data.profiles))
        asked = data.runs.take(np.flatnonzero(split.test)).colocations
        found = {OURS: learn(Accelerator(gpu=GPU), source, seed=seed).predict(asked)}
        found |= {**baselines(known, test), MEASURED: test.corun}
        if self.tag in BOUNDED:
            sliced = learn(Accelerator(gpu=GPU, sharing="time-sliced"), source, seed=seed)
            found[SLICED] = sliced.predict(asked)
        found[BOUND] = np.full(len(test), np.nan)
        found[HELD_OUT] = np.zeros(len(test))
        if self.bounded:
            # What calibrates is drawn anew for each part: of one draw coverage would be that of its bounds.
            drawn, method = 1000 * seed + self.number, Accelerator(gpu=GPU)
            model = fit(source, method, seed=drawn, new_names=self.new_names)
            bounds = model.bound(asked, CONFIDENCE)
            found[BOUND] = bounds.seconds
            found[HELD_OUT] = (np.asarray(bounds.outcome) == HELD_OUT).astype(float)
        found[PAIR] = data.unit[split.test].astype(float)
        if split.averaged:  # of one pair, the target says which side
            key, place = np.unique(test.target, return_inverse=True)
            count = np.bincount(place, minlength=len(key))
            found = {n: np.bincount(place, v, len(key)) / count for n, v in found.items()}
        return pa.table(found)


def evaluate_accelerator_magus(
    folder: Path,
    seed: int = 0,
    progress: Progress = no_progress,
    *,
    runner: Runner | None = None,
    tests: Sequence[str] | None = None,
    new_names: bool = False,
) -> AcceleratorEvaluation:
    """13 CUDA programs on a GTX 1080 Ti, every pair, without MPS: wall time of the whole process, learned
    from other pairs (both sides of a pair and all its runs are left out together). tests: of TESTS, all by
    default. new_names: whether bounds of applications left out are measured, too, each application one unit,
    by fits that leave names out (some twenty more for each). Raises UnknownName."""
    for name in tests or ():
        if name not in TESTS:
            raise UnknownName("test", name, TESTS)
    data = Magus.read(folder)
    every = [found for found in splits(data, seed) if tests is None or found[0] in tests]
    version = data.version
    cells = [
        MagusCell(
            tag,
            number,
            split,
            tag in BOUNDED or (new_names and tag == NEW),
            seed,
            version,
            new_names and tag == NEW,
        )
        for tag, _, parts in every
        for number, split in enumerate(parts)
    ]
    done = iter((runner or Runner()).run(cells, lambda: data, progress))
    metrics: dict[str, float] = {}
    rows = []
    for tag, label, parts in every:
        tables = [next(done) for _ in parts]
        by_part = [{n: t.column(n).to_numpy() for n in t.column_names} for t in tables]
        found = {n: np.concatenate([part[n] for part in by_part]) for n in by_part[0]}
        for name, text in ((name, text) for name, text in LABELS.items() if name in found):
            errors = errors_of(found[name], found[MEASURED])
            rows.append((f"{label}: {text}", errors))
            if name == OURS:
                metrics |= {f"{tag}_{key}": value for key, value in errors.items()}
            else:
                metrics[f"{name}_{tag}_error_mean_ratio"] = errors["error_mean_ratio"]
        if tag in BOUNDED:
            metrics |= _coverage(tag, found, found[PAIR])
        elif tag == NEW and new_names:
            part_of = np.repeat(np.arange(len(parts)), [len(part[PAIR]) for part in by_part])
            metrics |= _coverage(tag, found, part_of)
            metrics[f"{tag}_held_out_names_ratio"] = float(found[HELD_OUT].mean())
        if tag in ("fifth_known", "six_known"):
            over = [_over_best_rule(part) for part in by_part]
            metrics[f"{tag}_most_over_best_rule_ratio"] = max(over)
    metrics["targets"] = float((data.unit >= 0).sum())
    return AcceleratorEvaluation(metrics, error_table(rows, "what is left out"))


def _over_best_rule(part: dict[str, np.ndarray]) -> float:
    """By how much the mean error is above that of the best rule."""
    off = {n: float(np.mean(np.abs(part[n] / part[MEASURED] - 1))) for n in LABELS if n in part}
    return off.pop(OURS) - min(off.values())


def _coverage(tag: str, found: dict[str, np.ndarray], unit: np.ndarray) -> dict[str, float]:
    """Every unit (n,), a pair or an application, weighs the same; the standard error is over units."""
    kept = found[MEASURED] <= found[BOUND]
    shares = np.array([kept[unit == one].mean() for one in np.unique(unit)])
    margin = found[BOUND] / found[MEASURED] - 1
    return {
        f"{tag}_coverage_90_ratio": float(shares.mean()),
        f"{tag}_coverage_90_standard_error_ratio": float(shares.std(ddof=1) / np.sqrt(len(shares))),
        f"{tag}_margin_90_ratio": float(np.median(margin)),
    }
