"""Known names taken as new ones: how far off a model is about a name of which it has few runs or none.

A copy of each name begins where the features of the others put it, learns so many of its runs, and is asked
about others. The copy's runs have taught its neighbours before, so this is a little kind; what calibration
makes of it is called `held_out_names`, never guaranteed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.data import Colocations
from jostle.learn.contract._coded_runs import KeptRuns
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network.online._learn_names import learn_copies
from jostle.learn.learners.network.online._prior_statistics import KINDS, groundwork_of
from jostle.learn.learners.network.online._slopes import WORKLOAD

# Of an evidence class those with the fewest runs, as others of it are nearer; names with 20 runs and more are
# bounded by those with 6: a copy of theirs would be told too much by neighbours that its runs have taught.
FEW_RUNS = (0, 1, 3, 6)
ASKED = 20  # runs of a name that it is asked about
FEWEST_ASKED = 5  # under which a name is not taken as new
MOST_NAMES = 400  # that are taken as new; drawn of more
MARK = "\x1fas new"  # stands behind the name of a copy


def folded_again(
    fitted: FittedFactorization, kept: KeptRuns, seed: int
) -> list[tuple[FittedFactorization, KeptRuns]]:
    """See jostle.learn.Method."""
    random = np.random.default_rng([seed, 37])
    nothing = kept.take(np.zeros(0, np.int64))
    work = fitted.groundwork or groundwork_of(fitted, kept, nothing, seed)
    folded = []
    for kind in KINDS:
        for number in FEW_RUNS:
            parts = _parts(kept, kind, number, random)
            if parts is None:
                continue
            learned, test_runs, originals = parts
            copies = {name + MARK: name for name in originals}
            folded.append((learn_copies(fitted, learned, work, kind, copies), test_runs))
    return folded


def _parts(
    kept: KeptRuns, kind: str, number: int, random: np.random.Generator
) -> tuple[KeptRuns, KeptRuns, list[str]] | None:
    """Choose names with enough runs, and split their runs. Returns (runs that copies of the names learn, runs
    that the copies are asked about, those names), or None. The unit of a run is its name."""
    c = kept.colocations
    names = c.workload_names if kind == WORKLOAD else c.platform_names
    code = c.workload if kind == WORKLOAD else c.platform
    order = random.permutation(len(kept))
    order = order[np.argsort(code[order], kind="stable")]
    _, first, counts = np.unique(code[order], return_index=True, return_counts=True)
    enough = np.flatnonzero(counts >= number + FEWEST_ASKED)
    if len(enough) < 4:
        return None
    if len(enough) > MOST_NAMES:
        enough = np.sort(random.choice(enough, MOST_NAMES, replace=False))
    learned = np.concatenate([order[first[i] : first[i] + number] for i in enough])
    ends = np.minimum(first + counts, first + number + ASKED)
    test_places = np.concatenate([order[first[i] + number : ends[i]] for i in enough])
    originals = [names[code[order[first[i]]]] for i in enough]
    return _renamed(kept, learned, kind), _renamed(kept, test_places, kind), originals


def _renamed(kept: KeptRuns, index: np.ndarray, kind: str) -> KeptRuns:
    """These runs, of copies: as targets, or as platforms."""
    some = kept.take(index)
    c = some.colocations
    if kind == WORKLOAD:
        w = len(c.workload_names)
        names, place = _sorted((*c.workload_names, *(name + MARK for name in c.workload_names)))
        codes = place[c.workload + w], c.platform, c.corunner_offsets, place[c.corunner]
        moved = Colocations(names, c.platform_names, *codes)
        return replace(some, colocations=moved, unit=c.workload.astype(np.int64))
    names, place = _sorted(tuple(name + MARK for name in c.platform_names))
    moved = replace(c, platform_names=names, platform=place[c.platform])
    return replace(some, colocations=moved, unit=c.platform.astype(np.int64))


def _sorted(names: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray]:
    """Sort names. Returns (the names sorted, the position of each given name among them)."""
    order = np.argsort(np.array(names, dtype=object), kind="stable")
    return tuple(names[k] for k in order), np.argsort(order)
