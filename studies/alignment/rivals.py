"""What the alignment method is compared with: simple rules, factorization, and the paper's learners."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns
from studies.alignment.folds import Fold
from studies.alignment.truth import MeasuredSet, Member, quiet_runs

if TYPE_CHECKING:
    from jostle.data import Runs, Traces
    from jostle.learn.learners.counters import AlignedRows, Alignment, FittedAlignment

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
    from jostle.data import Runs, split_rows
    from jostle.learn import learn
    from jostle.learn.learners.network import Factorization

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
    from studies.alignment.paper.learners import LEARNERS, fit_paper
    from studies.alignment.paper.ridge import per_sample_error

    results: dict[str, dict[int, float]] = {}
    for slot in np.unique(test.slot).tolist():
        mine = train.take(train.slot == slot).thinned(LEARNER_ROWS)
        theirs = test.take(test.slot == slot)
        if len(mine) < 2:
            continue
        for learner in LEARNERS:
            learned = fit_paper(mine, learner, seed)
            results.setdefault(learner, {})[slot] = per_sample_error(learned, theirs)
    return results


def by_additive_effects(
    fold: Fold, fitted: FittedAlignment, shrinkage: float = 0.3
) -> dict[str, float]:
    """{run_id: seconds}: the time alone, times effects of the target and of the co-runners, by ridge on log
    slowdowns of the sets learned from; the level alone for whom nothing is known of. shrinkage: runs that no
    effect weighs."""
    learned = [
        (m, float(np.log(m.seconds / solo_seconds(m, fitted))))
        for one in fold.train
        for m in one.members
        if np.isfinite(m.seconds)
    ]
    names = sorted({name for m, _ in learned for name in (m.workload, *m.corunners)})
    place = {name: i for i, name in enumerate(names)}

    def design(members: Sequence[Member]) -> np.ndarray:
        table = np.zeros((len(members), 2 * len(names)))
        for row, m in enumerate(members):
            if m.workload in place:
                table[row, place[m.workload]] = 1.0
            for other in m.corunners:
                if other in place:
                    table[row, len(names) + place[other]] += 1.0 / len(m.corunners)
        return table

    x, y = design([m for m, _ in learned]), np.array([log for _, log in learned])
    gram = x.T @ x + shrinkage * np.eye(x.shape[1])
    effects = np.linalg.solve(gram, x.T @ (y - y.mean()))
    asked = [m for one in fold.test for m in one.members if m.runs]
    logs = y.mean() + design(asked) @ effects
    return {
        m.runs[0].run_id: solo_seconds(m, fitted) * float(np.exp(log))
        for m, log in zip(asked, logs, strict=True)
    }


def by_probes(
    fold: Fold, beside: Runs, alone: Sequence[Member], stressors: tuple[str, ...], seed: int
) -> dict[str, float]:
    """{run_id: seconds} of jostle.Probes, from runs alone and beside stressors, and the sets learned from."""
    from jostle.data import Runs
    from jostle.learn import learn
    from jostle.learn.learners.stressors import Probes

    test = quiet_runs(fold.test)
    every = Runs.concatenate([quiet_runs(fold.train), quiet_runs((), alone), beside])
    seconds = learn(Probes(stressors=stressors), every, seed=seed).predict(test.colocations)
    return dict(zip(test.table.column("run_id").to_pylist(), seconds.tolist(), strict=True))


def bounds_of(
    method: Alignment, traces: Traces, fold: Fold, confidence: float, seed: int
) -> tuple[float, int] | None:
    """(sum over test sets of the share of runs under their bounds, sets) of the model that jostle.fit makes
    of what the fold learns from; None where there are too few sets for a bound."""
    import jostle
    from jostle.learn import Data
    from jostle.learn.learners.counters import traced_runs

    def runs_of(sets: Sequence[MeasuredSet]) -> Runs:
        ids = {run.run_id for one in sets for runs in one.windows.values() for run in runs}
        return traced_runs(traces, set(traces.run_ids) - ids)

    try:
        data = Data(runs_of(fold.train), traces=traces)
        # Programs that are in no window have bounds only where some were held out for it.
        met = {m.workload for one in fold.train for m in one.members}
        unseen = any(m.workload not in met for one in fold.test for m in one.members)
        model = jostle.fit(data, method, seed=seed, new_names=unseen)
    except NotEnoughRuns:
        return None
    test = runs_of(fold.test)
    bound = model.bound(test.colocations, confidence).seconds
    if not np.isfinite(bound).all():
        return None
    unit = np.unique(test.units("together"), return_inverse=True)[1].reshape(-1)
    under = np.bincount(unit, test.runtime_seconds <= bound) / np.bincount(unit)
    return float(under.sum()), len(under)
