"""Which rows are left out together when something is chosen.

What is asked is about workloads that are in no window: so sets are left out all of whose members are unseen
by what is learned meanwhile. Nothing here depends on names: workloads are told apart by what they executed.
"""

from __future__ import annotations

import numpy as np

from jostle.learn.learners.counters import AlignedRows

FOLDS = 4
FEWEST_SETS = 6  # with all members left out, for them to be what is chosen on
LEAST_SHARE = 0.2  # of the rows that must be left to learn from


def folds_of(rows: AlignedRows, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masks of rows to learn from and to test on. Tested are windows all of whose workloads are left out,
    learned from those with none of them; where such are few, tested are all with one of them, and where
    there are too few workloads for that, whole sets are left out instead."""
    names = _in_order(rows)
    random = np.random.default_rng(seed)
    number = int(np.clip(len(names) // 2, 2, FOLDS))
    touched, inside = [], []
    for held in np.array_split(random.permutation(len(names)), number):
        out = {names[i] for i in held}
        touched.append(np.array([not out.isdisjoint(group) for group in rows.sets], bool))
        inside.append(np.array([out.issuperset(group) for group in rows.sets], bool))
    groups = np.unique(rows.group)
    unseen = sum(int(np.isin(groups, np.flatnonzero(mask)).sum()) for mask in inside)
    tested = inside if unseen >= FEWEST_SETS else touched
    folds = [
        (~out[rows.group], test[rows.group]) for out, test in zip(touched, tested, strict=True)
    ]
    folds = [fold for fold in folds if fold[1].any()]
    # A fold that leaves too little to learn from would choose for the wrong reason.
    if folds and all(train.sum() >= LEAST_SHARE * len(rows) for train, _ in folds):
        return folds
    return folds_of_sets(rows, seed)


def folds_of_sets(
    rows: AlignedRows, seed: int, number: int = FOLDS
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masks of rows to learn from and to test on: whole sets are left out, their members are known."""
    groups = np.unique(rows.group)
    if len(groups) < 2:  # nothing to tell apart by: later periods from earlier ones
        late = np.arange(len(rows)) >= 0.75 * len(rows)
        return [(~late, late)]
    random = np.random.default_rng(seed)
    held_out = np.array_split(random.permutation(groups), min(number, len(groups)))
    tests = [np.isin(rows.group, held) for held in held_out]
    return [(~test, test) for test in tests]


def _in_order(rows: AlignedRows) -> list[str]:
    """Workloads in the order of what they executed in the windows."""
    every = sorted({name for group in np.unique(rows.group) for name in rows.sets[group]})
    executed = dict.fromkeys(every, 0.0)
    if rows.members:
        by_run = np.bincount(rows.run, rows.count, len(rows.members))
        for (_, name, _), count in zip(rows.members, by_run.tolist(), strict=True):
            executed[name] = executed.get(name, 0.0) + count
    return sorted(every, key=lambda name: (executed[name], name))
