"""Why a prediction is what it is: the model's own terms, none of them an approximation.

The log runtime of a co-location is a sum (see `_equation`): how heavy the workload and how fast the
platform are, how well the two suit each other, what co-runners as such change, and what every co-runner
adds through every interference type. Given back as factors of seconds, the terms multiply to the prediction
exactly. With several co-runners one type's
slowdown is shared out by how hard each presses there; the shares sum to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.report import Report, Table, duration, percent
from jostle.errors import UsageError
from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network._network_equation import (
    CORUN_SCALE,
    SHIFT,
    pressure_of,
    softplus,
)

if TYPE_CHECKING:
    from jostle.data import Colocations


@dataclass(frozen=True)
class CorunnerShare:
    """What one co-runner does: `log_slowdown` (types,) by interference type; they sum to its total."""

    name: str
    log_slowdown: np.ndarray

    @property
    def factor(self) -> float:
        """The factor by which this co-runner lengthens the run; below 1 if it is faster."""
        return float(np.exp(self.log_slowdown.sum()))


@dataclass(frozen=True)
class Neighbour:
    """A known name and the root mean square by which its log runtime differs over the other side's
    names, levels apart: 0.05 is about 5%."""

    name: str
    distance: float


@dataclass(frozen=True)
class Explanation:
    """runtime_seconds = baseline_seconds * pair_factor * corun_factor * the co-runners' factors.

    baseline_seconds: this heavy a workload on this fast a platform. pair_factor: how well they suit each
    other. corun_factor: what changes beside anyone, whoever it is; 1 alone. type_names: one per
    interference type. workloads, platforms: the nearest known ones.
    """

    workload: str
    platform: str
    runtime_seconds: float
    baseline_seconds: float
    pair_factor: float
    corun_factor: float
    corunners: tuple[CorunnerShare, ...]
    type_names: tuple[str, ...]
    workloads: tuple[Neighbour, ...]
    platforms: tuple[Neighbour, ...]


def explained(
    predict: Callable[[Colocations], np.ndarray],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    e: Embeddings,
    form: Form,
    asked: Colocations,
    neighbours: int,
) -> Explanation:
    """See FittedFactorization.explained. names: of the workloads, of the platforms."""
    if len(asked) != 1:
        raise UsageError(f"one co-location can be explained at a time, not {len(asked)}")
    seconds = float(predict(asked)[0])
    workload, platform, corunner = (codes.astype(int) for codes in asked.recode(*names))
    i, j = int(workload[0]), int(platform[0])
    shares = _corunner_shares(e, form, i, j, corunner)
    corun = e.workload_main[i] @ e.platform_corun[j] + e.platform_corun_base[j]
    lost = not np.isfinite(seconds)
    return Explanation(
        workload=names[0][i],
        platform=names[1][j],
        runtime_seconds=seconds,
        baseline_seconds=np.nan if lost else float(np.exp(e.workload_base[i] + e.platform_base[j])),
        pair_factor=float(np.exp(e.workload_main[i] @ e.platform_main[j])),
        corun_factor=float(np.exp(corun)) if len(corunner) and CORUN_SCALE[form.name] else 1.0,
        corunners=tuple(
            CorunnerShare(names[0][k], share) for k, share in zip(corunner, shares, strict=True)
        ),
        type_names=tuple(f"type {t + 1}" for t in range(len(e.type_weight))),
        workloads=_nearest(names[0], e.workload_main, e.platform_main, i, neighbours),
        platforms=_nearest(names[1], e.platform_main, e.workload_main, j, neighbours),
    )


def report_of(found: Explanation) -> Report:
    """Write the explanation as it is printed."""
    document = {
        "schema": "explain-network/v1",
        "workload": found.workload,
        "platform": found.platform,
        "corunners": [
            {
                "name": share.name,
                "factor_ratio": share.factor,
                "log_slowdown": {
                    kind: float(part)
                    for kind, part in zip(found.type_names, share.log_slowdown, strict=True)
                },
            }
            for share in found.corunners
        ],
        "runtime_seconds": found.runtime_seconds,
        "baseline_seconds": found.baseline_seconds,
        "pair_factor_ratio": found.pair_factor,
        "corun_factor_ratio": found.corun_factor,
        "nearest_workloads": [vars(near) for near in found.workloads],
        "nearest_platforms": [vars(near) for near in found.platforms],
    }
    beside = " and ".join(share.name for share in found.corunners)
    where = f"{found.workload} on {found.platform} {f'beside {beside}' if beside else 'alone'}"
    rows = [
        ["this workload on a platform this fast", duration(found.baseline_seconds)],
        ["how well the two suit each other", f"× {found.pair_factor:.3f}"],
    ]
    if found.corunners:
        rows.append(["beside anyone at all", f"× {found.corun_factor:.3f}"])
    for share in found.corunners:
        rows.append([f"beside {share.name}", f"× {share.factor:.3f}"])
        parts = zip(found.type_names, np.exp(share.log_slowdown), strict=True)
        rows += [[f"    through {kind}", f"× {factor:.3f}"] for kind, factor in parts]
    rows.append(["in all", duration(found.runtime_seconds)])
    near = [
        [kind, entry.name, percent(float(np.exp(entry.distance)) - 1)]
        for kind, entries in (("workload", found.workloads), ("platform", found.platforms))
        for entry in entries
    ]
    tables = [
        f"{where}: {duration(found.runtime_seconds)}",
        Table(["made of", ""], rows),
        Table(["nearest", "", "typically differs by"], near),
    ]
    return Report(document, tables)


def _corunner_shares(e: Embeddings, form: Form, i: int, j: int, corunner: np.ndarray) -> np.ndarray:
    """Split the log slowdown into (co-runners, types) parts, by the equations of `_equation`."""
    shift = SHIFT[form.name]
    if not len(corunner):
        return np.zeros((0, len(e.type_weight)))
    hit = (e.target[i][e.type_slot] * e.susceptibility[j]).sum(-1) - shift
    each = (e.corunner[corunner][:, e.type_slot] * e.intensity[j]).sum(-1) - shift
    each = pressure_of(form.name, each, np)
    if form.name == "paper":
        slope = np.where(each.sum(0) > 0, 1.0, form.leak)
        return hit * slope * each * e.type_weight
    part = softplus(hit, np) * each * e.type_weight
    if form.name == "saturating":
        part = part * (np.log1p(part.sum()) / max(float(part.sum()), 1e-300))
    return part


def _nearest(
    names: tuple[str, ...],
    own: np.ndarray,
    other: np.ndarray,
    at: int,
    count: int,
) -> tuple[Neighbour, ...]:
    """Find names whose row of <own, other> is nearest to that of `at`, each row's mean taken off first.

    own: (names, r), other: (m, r). Distances are in what the model answers alone, not between embeddings,
    whose axes mean nothing.
    """
    move = (own - own[at]).astype(np.float64) @ other.T.astype(np.float64)
    distance = move.std(1)
    distance[at] = np.inf
    order = np.argsort(distance, kind="stable")[: min(count, len(names) - 1)]
    return tuple(Neighbour(names[k], float(distance[k])) for k in order)
