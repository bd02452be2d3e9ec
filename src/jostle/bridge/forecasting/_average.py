"""The average of several forecasts, weighed by how each of them does where the answer is known.

Whether what lies between two snapshots moves smoothly, steps at some time in between or differs from run to
run cannot be seen from them, and a method that is right for one is wrong for another. A single choice is at
times far off; an average seldom is. What is averaged:

- `ot`: everything moves (exact transport), `mixture`: each run is at either snapshot, `half`: half-way along
  the transport geodesic between these two, `spline`: cubic paths,
- `climatology`: all snapshots pooled, for what no snapshot near has shown,
- `phase` where a clock was given.

Each component of `ot` and `half` has the quantiles that lie between those of the two snapshots, so zeros
and glitches keep their shares, and the ranks of exact transport. Inner snapshots are left out in turn; the
weights are those on the simplex with the least energy score of the mixture (Gneiting and Raftery, JASA 102,
2007, Sec. 4.3), which is a quadratic function of them, held near fixed shares where data is little. Where
the spline is clearly better than all that does not extrapolate, the program moves smoothly, and it alone
serves; so does the phase-aware forecast where it is clearly better. Where even the best is far off, runs
step, and the mixture of the two snapshots takes the more of the weight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.problem._simplex import on_simplex
from jostle.bridge.problem._snapshots import Snapshots
from jostle.bridge.problem._thin import few
from jostle.bridge.solvers._coupling import Coupling

PRIOR = {
    "ot": 0.2,
    "half": 0.35,
    "mixture": 0.35,
    "spline": 0.05,
    "climatology": 0.05,
    "phase": 0.0,
}
FAITH = 0.2  # of the best energy score: how strongly weights are held to the prior, over sqrt(snapshots)
SMOOTH = 0.93  # of the best other energy score: below it the spline serves alone
PHASED = 0.93  # the same for the phase-aware forecast
MOST = 16  # inner snapshots that are left out
ATOMS = 150  # of each law in a comparison
TRANSPORTED = 600  # atoms of a snapshot in exact transport
TRUSTED = 0.85  # of the best forecast's error the part that is the snapshot's own spread: below, runs step
USUAL, LONG = (
    0.8,
    3.0,
)  # pairs longer than LONG times the length that this share stays below go over
POOLED = 500  # atoms of all snapshots together
POOLING = 0.15  # of the share that pooling all snapshots had, in the middle of an interval


@dataclass(frozen=True, eq=False)
class LawShares:
    """weights: {candidate: share} in the middle of an interval. scores: {candidate: mean energy score at
    snapshots left out}, empty where there are fewer than three."""

    weights: Mapping[str, float]
    scores: Mapping[str, float]

    def at(self, lam: float) -> dict[str, float]:
        """The shares at a share of an interval.

        Snapshots were left out where the gap is double what is asked about. Where pooling all of them did
        well there, what is in between is like neither side's motion: at half the gap the two snapshots
        beside are the better pool, and most of that share goes to their mixture; at the ends all of it.
        """
        shares = dict(self.weights)
        share = shares.pop("climatology", 0.0)
        if share > 0:
            pooled = POOLING * 4 * lam * (1 - lam)
            shares["climatology"] = pooled * share
            shares["mixture"] = shares.get("mixture", 0.0) + (1 - pooled) * share
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items() if share > 1e-3 * total}


def stacked(
    snapshots: Snapshots,
    core: int,
    candidates: Sequence[str],
    law_without: Callable[[int], Callable[[str], Cloud | None]],
    scaled: Callable[[Cloud], Cloud],
) -> LawShares:
    """The weights for a core. law_without(k)(name): a candidate's law of snapshot k from the others, None
    where it has none; scaled: into units in which distances are taken."""
    prior = {name: PRIOR[name] for name in candidates}
    total = sum(prior.values())
    prior = {name: share / total for name, share in prior.items()}
    shots = snapshots.of(core)
    inner = [k for k in range(1, len(shots) - 1) if shots[k].idle_ratio < 1]
    chosen = (
        [inner[i] for i in np.unique(np.linspace(0, len(inner) - 1, MOST).astype(int))]
        if inner
        else []
    )
    ends: list[np.ndarray] = []
    floors: list[float] = []
    apart: list[np.ndarray] = []
    for k in chosen:
        answer = law_without(k)
        laws = [answer(name) for name in candidates]
        known = [law for law in laws if law is not None]
        if len(known) < len(candidates):
            continue
        clouds = [few(scaled(law), ATOMS, k) for law in known]
        truth = few(scaled(shots[k].cloud), ATOMS, k)
        floors.append(0.5 * _distance(truth, truth))
        ends.append(np.array([_distance(cloud, truth) for cloud in clouds]))
        apart.append(np.array([[_distance(a, b) for b in clouds] for a in clouds]))
    if not ends:
        return LawShares(prior, {})
    # Snapshots far apart would outweigh all others: each counts by its own best score.
    size = np.array([np.min(e - 0.5 * np.diag(d)) for e, d in zip(ends, apart, strict=True)])
    # How near to a forecast that knows the snapshot itself the best one came, where the gap is double.
    near = float(np.sum(floors) / max(np.sum(size), 1e-300))
    size = np.maximum(size, 0.2 * np.median(size))
    size = np.where(size > 0, size, 1.0)
    to_truth = np.mean([e / s for e, s in zip(ends, size, strict=True)], axis=0)
    between = np.mean([d / s for d, s in zip(apart, size, strict=True)], axis=0)
    scores = dict(zip(candidates, (to_truth - 0.5 * np.diag(between)).tolist(), strict=True))
    alone = _alone(scores)
    if alone is not None:
        return LawShares({alone: 1.0}, scores)
    start = np.array([prior[name] for name in candidates])
    faith = FAITH * min(scores.values()) * (len(chosen) / 5) ** -0.5
    weights = on_simplex(to_truth, -between, start, faith)
    trust = min(near / TRUSTED, 1.0)
    shares = {name: trust * float(share) for name, share in zip(candidates, weights, strict=True)}
    shares["mixture"] += 1 - trust
    return LawShares(shares, scores)


def _alone(scores: Mapping[str, float]) -> str | None:
    """The candidate that is clearly better than those that stay between the snapshots, if any."""
    usual = min(scores[name] for name in ("ot", "half", "mixture"))
    for name, share in (("phase", PHASED), ("spline", SMOOTH)):
        if scores.get(name, np.inf) < share * usual:
            return name
    return None


def _distance(one: Cloud, two: Cloud) -> float:
    """The mean distance of their atoms."""
    return float(one.weights @ squared_distances(one.atoms, two.atoms) ** 0.5 @ two.weights)


def averaged(laws: Mapping[str, Cloud], shares: Mapping[str, float]) -> Cloud:
    """One cloud with the laws' atoms."""
    atoms = np.concatenate([laws[name].atoms for name in shares])
    return Cloud.of(
        atoms, np.concatenate([share * laws[name].weights for name, share in shares.items()])
    )


def pooled(clouds: Sequence[Cloud]) -> Cloud:
    """All snapshots as one cloud, each with the same share."""
    atoms = np.concatenate([cloud.atoms for cloud in clouds])
    return Cloud.of(atoms, np.concatenate([cloud.weights for cloud in clouds]))


def moved(coupling: Coupling, x: Cloud, y: Cloud, lam: float, stay: float = 0.0) -> Cloud:
    """Displaced by exact transport, with each component's quantiles between those of the snapshots x and y,
    of which the coupling may know a part only.

    A few pairs that are much longer than the others are no motion, but runs that went over from one group of
    states to another, or glitches: of them a share 1 - lam is still at its x, the others at their y already.
    stay: how far all other pairs are along the geodesic to the same, the mixture of both snapshots.
    """
    pairs = coupling.pairs
    starts, ends = coupling.x.atoms[pairs.i], coupling.y.atoms[pairs.j]
    length = ((starts - ends) ** 2).sum(axis=1) ** 0.5
    order = np.argsort(length, kind="stable")
    usual = length[order[np.searchsorted(np.cumsum(pairs.mass[order]), USUAL * (1 - 1e-9))]]
    goes_over = length > LONG * usual
    near = ~goes_over
    mass = pairs.mass
    if goes_over.any():
        x, y = Cloud.of(starts[near], mass[near]), Cloud.of(ends[near], mass[near])
    atoms = [starts[goes_over], ends[goes_over]]
    weights = [(1 - lam) * mass[goes_over], lam * mass[goes_over]]
    places = [(1.0, lam)]
    if stay > 0:
        places = [(1 - lam, (1 - stay) * lam), (lam, stay + (1 - stay) * lam)]
    for share, place in places:
        atoms.append(_displaced(starts[near], ends[near], mass[near], place, (x, y)))
        weights.append(share * mass[near])
    return Cloud.of(np.concatenate(atoms), np.concatenate(weights))


def _displaced(
    starts: np.ndarray,
    ends: np.ndarray,
    mass: np.ndarray,
    place: float,
    clouds: tuple[Cloud, Cloud],
) -> np.ndarray:
    """(n, d) part of the way from starts to ends, with the quantiles between those of the clouds."""
    atoms = (1 - place) * starts + place * ends
    displaced = np.empty_like(atoms)
    total = mass.sum()
    for column in range(atoms.shape[1]):
        order = np.lexsort((ends[:, column], atoms[:, column]))
        level = (np.cumsum(mass[order]) - 0.5 * mass[order]) / total
        low, high = (_quantile(cloud, column, level) for cloud in clouds)
        displaced[order, column] = (1 - place) * low + place * high
    return displaced


def _quantile(cloud: Cloud, column: int, levels: np.ndarray) -> np.ndarray:
    values = cloud.atoms[:, column]
    order = np.argsort(values, kind="stable")
    below = np.cumsum(cloud.weights[order])
    return values[order[np.minimum(np.searchsorted(below, levels), len(values) - 1)]]
