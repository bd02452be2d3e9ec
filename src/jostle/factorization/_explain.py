"""Why a prediction is what it is: the model's own terms, none of them an approximation.

The log runtime of a co-location is a sum (see `_equation`): how heavy the workload and how fast the
platform are, how well the two suit each other, what company as such changes, and what every co-runner
adds through every interference type. Given back as factors of seconds, the terms multiply to the
prediction exactly. With several co-runners one type's slowdown is shared out by how hard each presses
there; the shares sum to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import UsageError
from jostle.factorization._equation import COMPANY, SHIFT, pressure_of, softplus

if TYPE_CHECKING:
    from jostle.factorization._fitted import FittedFactorization
    from jostle.runs import Colocations, Runs


@dataclass(frozen=True)
class CorunnerShare:
    """What one co-runner does: `log_slowdown` (types,) by interference type; they sum to its total."""

    name: str
    log_slowdown: np.ndarray

    @property
    def factor(self) -> float:
        """How many times longer with this co-runner's share than without; below 1 if faster."""
        return float(np.exp(self.log_slowdown.sum()))


@dataclass(frozen=True)
class Neighbour:
    """A known name and the root mean square by which its log runtime differs over the other side's
    names, levels apart: 0.05 is about 5%."""

    name: str
    distance: float


@dataclass(frozen=True)
class Explanation:
    """runtime_seconds = baseline_seconds * pair_factor * company_factor * the co-runners' factors.

    baseline_seconds: this heavy a workload on this fast a platform. pair_factor: how well they suit each
    other. company_factor: what changes beside anyone, whoever it is; 1 alone. type_names: one per
    interference type. workloads, platforms: the nearest known ones. runs: how many stand behind it, by
    what they share with it; None where no runs were given.
    """

    workload: str
    platform: str
    runtime_seconds: float
    baseline_seconds: float
    pair_factor: float
    company_factor: float
    corunners: tuple[CorunnerShare, ...]
    type_names: tuple[str, ...]
    workloads: tuple[Neighbour, ...]
    platforms: tuple[Neighbour, ...]
    runs: dict[str, int] | None


def explain(
    fitted: FittedFactorization,
    colocation: Colocations,
    *,
    runs: Runs | None = None,
    neighbours: int = 3,
) -> Explanation:
    """Explain the only row of `colocation`.

    Raises UsageError for more or fewer rows, UnknownName for a name the model has never met.
    """
    if len(colocation) != 1:
        raise UsageError(f"one co-location can be explained at a time, not {len(colocation)}")
    seconds = float(fitted.predict(colocation)[0])
    e = fitted.embeddings
    workload, platform, corunner = (
        codes.astype(int)
        for codes in colocation.recode(fitted.workload_names, fitted.platform_names)
    )
    i, j = int(workload[0]), int(platform[0])
    shares = _corunner_shares(fitted, i, j, corunner)
    company = e.workload_main[i] @ e.platform_company[j] + e.platform_company_base[j]
    lost = not np.isfinite(seconds)
    return Explanation(
        workload=fitted.workload_names[i],
        platform=fitted.platform_names[j],
        runtime_seconds=seconds,
        baseline_seconds=np.nan if lost else float(np.exp(e.workload_base[i] + e.platform_base[j])),
        pair_factor=float(np.exp(e.workload_main[i] @ e.platform_main[j])),
        company_factor=float(np.exp(company)) if len(corunner) and COMPANY[fitted.form] else 1.0,
        corunners=tuple(
            CorunnerShare(fitted.workload_names[k], share)
            for k, share in zip(corunner, shares, strict=True)
        ),
        type_names=tuple(f"type {t + 1}" for t in range(len(e.type_weight))),
        workloads=_nearest(fitted.workload_names, e.workload_main, e.platform_main, i, neighbours),
        platforms=_nearest(fitted.platform_names, e.platform_main, e.workload_main, j, neighbours),
        runs=None if runs is None else evidence(runs, colocation),
    )


def evidence(runs: Runs, colocation: Colocations) -> dict[str, int]:
    """How many of the runs share what with the only row of `colocation`.

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
    found = {
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
    found = {"same_colocation": int(same.sum()), **found}
    if beside:
        found |= {"corunner_on_platform": min(there), "beside_workload": min(together)}
    return found


def _corunner_shares(
    fitted: FittedFactorization, i: int, j: int, corunner: np.ndarray
) -> np.ndarray:
    """(co-runners, types) parts of the log slowdown, by the equations of `_equation`."""
    e, form = fitted.embeddings, fitted.form
    shift = SHIFT[form]
    if not len(corunner):
        return np.zeros((0, len(e.type_weight)))
    hit = (e.target[i][e.type_slot] * e.susceptibility[j]).sum(-1) - shift
    each = (e.corunner[corunner][:, e.type_slot] * e.intensity[j]).sum(-1) - shift
    each = pressure_of(form, each, np)
    if form == "paper":
        slope = np.where(each.sum(0) > 0, 1.0, fitted.leak)
        return hit * slope * each * e.type_weight
    part = softplus(hit, np) * each * e.type_weight
    if form == "saturating":
        part = part * (np.log1p(part.sum()) / max(float(part.sum()), 1e-300))
    return part


def _nearest(
    names: tuple[str, ...], own: np.ndarray, other: np.ndarray, at: int, count: int
) -> tuple[Neighbour, ...]:
    """Names whose row of <own, other> is nearest to that of `at`, each row's mean taken off first.

    own: (names, r), other: (m, r). Distances are in what the model answers, not between embeddings,
    whose axes mean nothing.
    """
    spread = other - other.mean(0)
    gram = (spread.T @ spread).astype(np.float64) / max(len(other), 1)
    move = (own - own[at]).astype(np.float64)
    distance = np.sqrt(np.maximum(np.einsum("nr,rs,ns->n", move, gram, move, optimize=True), 0.0))
    distance[at] = np.inf
    order = np.argsort(distance, kind="stable")[: min(count, len(names) - 1)]
    return tuple(Neighbour(names[k], float(distance[k])) for k in order)
