"""Names with a handful of runs, or with features alone, in a campaign of names with many: learned as names
that joined later.

A few runs move the whole row of a name's embeddings in training as far as they fit, and the row is off about
everything else; begun where its features put it and moved in the directions in which names differ (see
_learn) it is not. So training leaves such names out, and they join afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.data import Runs

FEW = 5  # runs of a name, of a workload those beside it, too
# Of very many runs each is seen less often in training, which knows names with more runs badly, too.
FEW_OF_MANY, MANY_RUNS = 20, 30_000
MANY, FEWEST_NAMES = 30, 16  # runs of so many other names of its kind, that tell how names differ
LARGEST_SHARE = 0.2  # of all runs, that those of such names may be
KINDS = ("workload", "platform")


def without_few(runs: Runs, validation: Runs) -> tuple[Runs, Runs, Runs] | None:
    """(runs and validation runs without names that have few runs or none, all runs of those names); None
    where there are no such names, or too few others."""
    both = Runs.concatenate([runs, validation.ok()])
    c = both.colocations
    few = {
        "workload": _few_names(both, "workload", np.concatenate([c.workload, c.corunner])),
        "platform": _few_names(both, "platform", c.platform),
    }
    if not any(few.values()):
        return None
    names = {kind: np.array(getattr(c, f"{kind}_names"), object) for kind in KINDS}
    of = {kind: np.isin(names[kind], list(few[kind])) for kind in KINDS}
    theirs = of["workload"][c.workload] | of["platform"][c.platform]
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    theirs[row[of["workload"][c.corunner]]] = True
    if theirs.sum() > LARGEST_SHARE * len(both):
        return None
    n = len(runs)
    learn, watch = np.flatnonzero(~theirs[:n]), n + np.flatnonzero(~theirs[n:])
    return _without(both.take(learn), few), _without(both.take(watch), few), both.take(theirs)


def _few_names(runs: Runs, kind: str, codes: np.ndarray) -> set[str]:
    """codes: of the names in every run that tells of one."""
    names = getattr(runs.colocations, f"{kind}_names")
    times = np.bincount(codes, minlength=len(names))
    if int((times >= MANY).sum()) < FEWEST_NAMES:
        return set()
    most = FEW_OF_MANY if len(runs) >= MANY_RUNS else FEW
    few = {name for name, n in zip(names, times.tolist(), strict=True) if 0 < n <= most}
    table = getattr(runs, f"{kind}_features")
    if table is not None:
        met = {name for name, n in zip(names, times.tolist(), strict=True) if n}
        few |= set(table.column(kind).to_pylist()) - met
    return few


def _without(runs: Runs, names: dict[str, set[str]]) -> Runs:
    """The same runs, which have none of the names, without the features of those."""
    columns: dict[str, Any] = {}
    for kind in KINDS:
        table = getattr(runs, f"{kind}_features")
        if table is not None:
            there = [name not in names[kind] for name in table.column(kind).to_pylist()]
            table = table.filter(np.array(there, bool))
        columns[kind] = table
    return Runs(runs.table, *(columns[kind] for kind in KINDS), checked=True, notes=runs.notes)
