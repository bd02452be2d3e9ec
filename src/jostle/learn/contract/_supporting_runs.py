"""Which of the runs at hand stand behind one prediction, counted from the runs themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jostle._base.report import Table

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs

MEANING = {
    "same_colocation": "of exactly this co-location",
    "pair_alone": "of the workload alone on this platform",
    "pair": "of the workload on this platform, whatever beside",
    "workload": "of the workload anywhere",
    "platform": "of anything on this platform",
    "corunner_on_platform": "with the co-runner on this platform (the fewest of any)",
    "beside_workload": "of the workload beside the co-runner anywhere (the fewest of any)",
}


def runs_behind(runs: Runs, colocation: Colocations) -> dict[str, int]:
    """Count the runs that share what with the only row of `colocation`.

    `same_colocation`, `pair_alone` (the workload on the platform, nothing beside), `pair` (whatever
    beside), `workload`, `platform`, and per co-runner the fewest: `corunner_on_platform` (it ran there, as
    target or beside) and `beside_workload` (it ran beside the workload, anywhere).
    """
    c = runs.ok().colocations
    target, place, beside = colocation.row(0)
    names, counts = np.array(c.workload_names, object), c.number_of_corunners
    is_w, is_p = (
        names[c.workload] == target,
        np.array(c.platform_names, object)[c.platform] == place,
    )
    row = np.repeat(np.arange(len(c)), counts)
    same = is_w & is_p & (counts == len(beside))
    there, together = [], []
    for name in sorted(set(beside)):
        times = np.bincount(row[names[c.corunner] == name], minlength=len(c))
        same &= times == beside.count(name)
        there.append(is_p & ((names[c.workload] == name) | (times > 0)))
        together.append(is_w & (times > 0))
    marks = {
        "same_colocation": [same],
        "pair_alone": [is_w & is_p & (counts == 0)],
        "pair": [is_w & is_p],
        "workload": [is_w],
        "platform": [is_p],
        "corunner_on_platform": there,
        "beside_workload": together,
    }
    return {name: min(int(one.sum()) for one in each) for name, each in marks.items() if each}


def behind_table(counts: dict[str, int]) -> Table:
    """Tabulate what runs_behind counted, for people."""
    rows = [[str(number), MEANING[name]] for name, number in counts.items()]
    return Table(["runs", "behind it"], rows)
