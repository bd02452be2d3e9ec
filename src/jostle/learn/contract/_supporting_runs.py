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
    ok = runs.ok()
    c = ok.colocations
    target, place, beside = colocation.row(0)
    names = {name: code for code, name in enumerate(c.workload_names)}
    places = {name: code for code, name in enumerate(c.platform_names)}
    is_w = c.workload == names.get(target, -1)
    is_p = c.platform == places.get(place, -1)
    row = np.repeat(np.arange(len(ok)), c.number_of_corunners)
    same = is_w & is_p & (c.number_of_corunners == len(beside))
    counts = {
        "pair_alone": int((is_w & is_p & (c.number_of_corunners == 0)).sum()),
        "pair": int((is_w & is_p).sum()),
        "workload": int(is_w.sum()),
        "platform": int(is_p.sum()),
    }
    there, together = [], []
    for name in sorted(set(beside)):
        code = names.get(name, -1)
        times = np.bincount(row[c.corunner == code], minlength=len(ok))
        same &= times == beside.count(name)
        there.append(int((is_p & ((c.workload == code) | (times > 0))).sum()))
        together.append(int((is_w & (times > 0)).sum()))
    counts = {"same_colocation": int(same.sum()), **counts}
    if beside:
        counts |= {"corunner_on_platform": min(there), "beside_workload": min(together)}
    return counts


def behind_table(counts: dict[str, int]) -> Table:
    """Tabulate what runs_behind counted, for people."""
    rows = [[str(number), MEANING[name]] for name, number in counts.items()]
    return Table(["runs", "behind it"], rows)
