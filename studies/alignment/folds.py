"""Which workloads are held out together, and what is then learned from and tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jostle.errors import NotEnoughRuns, UsageError
from studies.alignment.truth import MeasuredSet

FEWEST_PROGRAMS = 3
PAIR_FOLDS = 4


@dataclass(frozen=True, eq=False)
class Fold:
    """train: sets with none of the workloads held out. test: sets with nobody else, and not only one."""

    number: int
    held_out: tuple[str, ...]
    train: list[MeasuredSet]
    test: list[MeasuredSet]


def workload_folds(
    workloads: Sequence[str], held: int, folds: int | None, seed: int
) -> list[tuple[str, ...]]:
    """Workloads held out of each fold, disjoint, `held` each. Raises UsageError where they do not suffice."""
    names = sorted(set(workloads))
    if held < 2 or len(names) < held + 2:
        raise UsageError(
            f"{held} of {len(names)} workloads cannot be held out",
            fix="At least two are tested side by side, and at least two others are learned from.",
        )
    order = np.random.default_rng(seed).permutation(names).tolist()
    results = [tuple(sorted(order[i : i + held])) for i in range(0, len(order) - held + 1, held)]
    return results if folds is None else results[:folds]


def folds_of_programs(
    sets: Sequence[MeasuredSet], held: int, folds: int | None, seed: int
) -> list[Fold]:
    """Folds of `held` programs each; of three programs, one is left out at a time, and what is tested are its
    sets with the others. Folds that have nothing to test or to learn from are left out. Raises NotEnoughRuns
    where all are."""
    names = sorted({member.workload for one in sets for member in one.members})
    if len(names) == FEWEST_PROGRAMS:
        held_out = [(name,) for name in names][:folds]
    else:
        held_out = workload_folds(names, held, folds, seed)
    results, error = [], None
    for out in held_out:
        try:
            results.append(fold_of(len(results), out, sets))
        except NotEnoughRuns as reason:
            error = reason
    if not results and error is not None:
        raise error
    return results


def folds_of_pairs(sets: Sequence[MeasuredSet], folds: int | None, seed: int) -> list[Fold]:
    """A quarter of the sets each, all windows of the same workloads together, whose members are known from
    others. Raises NotEnoughRuns for fewer than four."""
    groups: dict[tuple[str, ...], list[MeasuredSet]] = {}
    for one in sets:
        groups.setdefault(tuple(sorted(m.workload for m in one.members)), []).append(one)
    keys = sorted(groups)
    if len(keys) < PAIR_FOLDS:
        raise NotEnoughRuns(
            f"{len(keys)} sets of workloads are too few to hold some out", fix="Trace more pairs."
        )
    order = np.random.default_rng(seed).permutation(len(keys))
    results = []
    for number, held in enumerate(np.array_split(order, PAIR_FOLDS)[:folds]):
        out = {keys[i] for i in held.tolist()}
        test = [one for key in sorted(out) for one in groups[key]]
        train = [one for key in keys if key not in out for one in groups[key]]
        results.append(Fold(number, tuple(" + ".join(key) for key in sorted(out)), train, test))
    return results


def fold_of(number: int, held_out: tuple[str, ...], sets: Sequence[MeasuredSet]) -> Fold:
    """Raises NotEnoughRuns where there is nothing to learn from, or nothing to test."""
    members = [{member.workload for member in one.members} for one in sets]
    out = set(held_out)
    train = [one for one, names in zip(sets, members, strict=True) if not names & out]
    test = [
        one
        for one, names in zip(sets, members, strict=True)
        if (names <= out if len(out) > 1 else names & out) and len(names) > 1
    ]
    if not train or not test:
        raise NotEnoughRuns(
            f"holding out {', '.join(held_out)} leaves {len(train)} sets to learn from and "
            f"{len(test)} to test",
            fix="Trace all pairs of the workloads.",
        )
    return Fold(number, held_out, train, test)


def protocol_sets(
    workloads: Sequence[str], windows: int, held: int, seed: int
) -> list[tuple[int, int]]:
    """Pairs of workloads by number: `windows` drawn at random to learn from, and all pairs, both ways, of
    those that the folds of this seed hold out together."""
    number = {name: i for i, name in enumerate(workloads)}
    tested = [
        (number[a], number[b])
        for fold in workload_folds(workloads, held, None, seed)
        for a in fold
        for b in fold
        if a != b
    ]
    # Every program is in at least one window, so that the folds drawn from the traces are the same.
    random = np.random.default_rng(seed + 1)
    pairs = {(int(a), int(b)) for a, b in random.integers(0, len(number), (4 * windows, 2))}
    learned = sorted(pairs - set(tested))
    picked = random.permutation(len(learned))[:windows]
    return [learned[i] for i in sorted(picked)] + tested
