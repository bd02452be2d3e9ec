"""What the alignment method is compared with: simple rules, factorization, and the paper's learners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.evaluate.alignment._folds import Fold
from jostle.evaluate.alignment._truth import MeasuredSet, Member, quiet_runs

if TYPE_CHECKING:
    from jostle.alignment import AlignedRows, FittedAlignment

LINEAR_LEARNERS = ("ridge", "lasso", "elastic_net", "linear_svr")
LEARNER_ROWS = 6_000


def solo_seconds(one: Member, fitted: FittedAlignment) -> float:
    """How long a workload takes alone where it ran beside others."""
    return fitted.solos.of(one.workload, one.platform, one.slot).duration_seconds


def usual_slowdowns(
    train: Sequence[MeasuredSet], fitted: FittedAlignment, leave_out: Collection[str] = ()
) -> tuple[float, float]:
    """(mean, median) of all runs learned from: what a rule knows that knows nothing of the workloads.
    leave_out: workloads that the method does not learn from, so that the rule is taught the same."""
    slows = np.array(
        [
            m.seconds / solo_seconds(m, fitted)
            for one in train
            for m in one.members
            if m.workload not in leave_out
        ]
    )
    slows = slows[np.isfinite(slows)]
    return (float(slows.mean()), float(np.median(slows))) if len(slows) else (1.0, 1.0)


def by_factorization(fold: Fold, alone: Sequence[Member], seed: int) -> dict[str, float]:
    """{run_id: seconds}: learned from the same sets and from all runs alone, which is all it can know of
    the workloads held out."""
    from jostle.factorization import Factorization
    from jostle.methods import learn
    from jostle.runs import Runs, split_rows

    learned, test = quiet_runs(fold.train), quiet_runs(fold.test)
    first, second = split_rows(learned, (0.8, 0.2), seed, "together")
    fitted = learn(
        Factorization(rank=16, hidden=32, steps=1500),
        Runs.concatenate([learned.take(first), quiet_runs((), alone)]),
        validation=learned.take(second),
        seed=seed,
    )
    seconds = fitted.predict(test.colocations)
    return dict(zip(test.table.column("run_id").to_pylist(), seconds.tolist(), strict=True))


def errors_of_learners(
    train: AlignedRows, test: AlignedRows, seed: int
) -> dict[str, dict[int, float]]:
    """{learner: {slot: error per sample}}, the paper's features and target, slot by slot."""
    from jostle.alignment import LearnerKind, fit_learner, per_sample_error

    found: dict[str, dict[int, float]] = {}
    for slot in np.unique(test.slot).tolist():
        mine = train.take(train.slot == slot).thinned(LEARNER_ROWS)
        theirs = test.take(test.slot == slot)
        if len(mine) < 2:
            continue
        for learner in LINEAR_LEARNERS:
            kind = LearnerKind(learner, "linear", "instructions")
            learned = fit_learner(mine, kind, seed=seed, rounds=0)
            found.setdefault(learner, {})[slot] = per_sample_error(learned, theirs)
    return found
