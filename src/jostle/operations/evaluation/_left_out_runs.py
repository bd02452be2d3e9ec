"""Which runs a fit sees and which it is asked about, by how a user would miss them."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from jostle.data import Runs, split_rows
from jostle.errors import NotEnoughRuns, UsageError, require_choice

LeaveOut = Literal["row", "set", "name"]


def left_out_runs(runs: Runs, leave_out: str, share: float, seed: int) -> tuple[Runs, Runs]:
    """Split runs into (what a fit sees, what it is asked about).

    runs: all with status ok. leave_out: `row`: runs, those measured together together; `set`: sets of
    workloads that ran together, on all platforms; `name`: all runs beside others in which a workload's name
    stands. Of sets and names, runs alone are always seen. share: of rows, sets or names, left out.
    Raises UsageError, and NotEnoughRuns where a part is empty.
    """
    require_choice("what is left out", leave_out, get_args(LeaveOut))
    if not 0 < share < 1:
        raise UsageError(f"the share {share} is not between 0 and 1")
    if leave_out == "row":
        seen, asked = split_rows(runs, [1 - share, share], seed)
    else:
        random = np.random.default_rng(seed)
        of_sets = leave_out == "set"
        is_asked = (_of_sets if of_sets else _of_names)(runs, share, random)
        seen, asked = np.flatnonzero(~is_asked), np.flatnonzero(is_asked)
    if not len(seen) or not len(asked):
        raise NotEnoughRuns(
            f"{share:.0%} of {len(runs)} runs by {leave_out} leave one part empty",
            fix="Leave out another share, or measure more.",
        )
    return runs.take(seen), runs.take(asked)


def _of_sets(runs: Runs, share: float, random: np.random.Generator) -> np.ndarray:
    """Mark the runs in a set that is left out, (n,) bool; of each number of co-runners the same share of
    sets."""
    c = runs.colocations
    ends = c.corunner_offsets
    members = [
        tuple(sorted((w, *c.corunner[a:b].tolist())))
        for w, a, b in zip(c.workload.tolist(), ends[:-1].tolist(), ends[1:].tolist(), strict=True)
    ]
    chosen: set[tuple[int, ...]] = set()
    for size in sorted({len(one) for one in members if len(one) > 1}):
        sets = sorted({one for one in members if len(one) == size})
        count = round(share * len(sets) + random.uniform(-0.5, 0.5))
        chosen |= {sets[at] for at in random.permutation(len(sets))[:count]}
    return np.array([one in chosen for one in members])


def _of_names(runs: Runs, share: float, random: np.random.Generator) -> np.ndarray:
    """Mark the runs with co-runners in which a name stands that is left out, (n,) bool."""
    c = runs.colocations
    names = np.unique(c.workload)
    chosen = random.permutation(names)[: max(1, round(share * len(names)))]
    row = c.corunner_row
    has = np.isin(c.workload, chosen)
    has[row[np.isin(c.corunner, chosen)]] = True
    return has & (c.number_of_corunners > 0)
