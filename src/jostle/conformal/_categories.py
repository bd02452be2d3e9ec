"""Categories (Mondrian) of questions: how many co-runners, and what was never measured.

Errors are exchangeable only among questions of one kind: with as many co-runners, and with names that were
measured as well. Few categories with many calibration runs each make narrow bounds; how much was measured
within a category is left to the learned scale.

Source: Vovk, Lindsay, Nouretdinov and Gammerman 2003, *Mondrian confidence machine*.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SOLO, ONE, TWO, THREE_OR_MORE = range(4)  # co-runners, all names known
NEW_WORKLOAD, NEW_CELL_SOLO, NEW_CELL, MORE_CORUNNERS, NEW_NAME, FEW_RUNS = range(4, 10)
NEW_CORUNNER, MEASURED = 10, 11  # places in CATEGORIES, which saved models hold
CATEGORIES = (
    "alone",
    "1 co-runner",
    "2 co-runners",
    "3 or more co-runners",
    "new beside others",
    "new on the platform, alone",
    "new on the platform, beside others",
    "more co-runners",
    "new name",
    "name with few runs",
    "new co-runner",
    "measured set",
)
MEANING = (
    "workload and platform measured together, alone",
    "all names measured, with one co-runner",
    "all names measured, with two co-runners",
    "all names measured, with three or more co-runners",
    "a workload or a co-runner that was never measured beside others",
    "a workload that was never measured alone on the platform",
    "a workload that was never measured on the platform, or nothing was measured beside others there",
    "more co-runners than were measured",
    "a workload or a platform that was never measured at all",
    "a name that joined after the calibration runs were drawn",
    "a known workload beside one that was never measured at all",
    "the same workloads measured together on the platform before",
)
BY_CORUNNERS = (SOLO, ONE, TWO, THREE_OR_MORE)
KNOWN = (*BY_CORUNNERS, MEASURED)
# Their errors are of another kind: they tell nothing of the others.
NEVER_MET = (NEW_NAME, NEW_CORUNNER)
ALONE = (SOLO, NEW_CELL_SOLO)  # the others lend each other the shape of their errors


def category_of(
    predictor: Any, asked: Any, most: int | None = None, *, tells_measured: bool = False
) -> np.ndarray:
    """Tell the category of each co-location.

    Parameters
    ----------
    predictor : object
        What was learned. Without `evidence`, which counts its runs, it knows all names; without `measured`,
        (n,) bool, it knows no set that was measured before.
    asked : Colocations
    most : int, optional
        Most co-runners that were measured.
    tells_measured : bool
        Whether sets that were measured before are a category of their own.

    Returns
    -------
    (n,) ndarray of int8
    """
    degree = np.asarray(asked.number_of_corunners)
    out = np.minimum(degree, THREE_OR_MORE).astype(np.int8)
    if most is not None:
        out[degree > most] = MORE_CORUNNERS
    if not hasattr(predictor, "evidence") or not len(degree):
        return out
    e, beside = predictor.evidence(asked), degree > 0
    out[beside & ((e.beside == 0) | (e.corunner == 0))] = NEW_WORKLOAD
    # Counts of pairs are below 0 where there were too many to count.
    out[beside & ((e.there == 0) | (e.platform_beside == 0))] = NEW_CELL
    out[~beside & (e.alone_there == 0)] = NEW_CELL_SOLO
    if tells_measured and hasattr(predictor, "measured"):
        out[np.isin(out, BY_CORUNNERS) & beside & predictor.measured(asked)] = MEASURED
    names = [getattr(predictor, f"{kind}_names", None) for kind in ("workload", "platform")]
    if None not in names:
        out[~asked.known_in(*names)] = NEW_CORUNNER
    out[(e.workload == 0) | (e.platform == 0)] = NEW_NAME
    return out


def evidence_widths(predictor: Any, asked: Any) -> np.ndarray:
    """Return (3, n) logs that fall as more was measured, each as the log standard error of a mean: of the
    workload alone here, of the workload beside others, and of the co-runner with the fewest runs."""
    degree = np.asarray(asked.number_of_corunners)
    if not hasattr(predictor, "evidence") or not len(degree):
        return np.zeros((3, len(degree)))
    e, beside = predictor.evidence(asked), degree > 0
    counts = e.alone_there, np.where(beside, e.beside, 0), np.where(beside, e.corunner, 0)
    return np.stack([-0.5 * np.log1p(np.maximum(count, 0)) for count in counts])
