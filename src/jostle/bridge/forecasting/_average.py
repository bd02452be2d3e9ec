"""The average of several forecasts, weighed by how each of them does where the answer is known.

Whether what lies between two snapshots moves smoothly, steps at some time in between or differs from run to
run cannot be seen from them, and a method that is right for one is wrong for another. A single choice is at
times far off; an average seldom is. What is averaged:

- `moved`: everything moves (exact transport), `mixture`: each run is at either snapshot, `half`: half-way
  along the transport geodesic between these two, `spline`: cubic paths,
- `climatology`: all snapshots pooled, for what no snapshot near has shown.

Inner snapshots are left out in turn; the weights are those on the simplex with the least energy score of the
mixture (Gneiting and Raftery, JASA 102, 2007, Sec. 4.3), which is a quadratic function of them, held near
fixed shares where data is little. Where the spline is clearly better than all that does not extrapolate, the
program moves smoothly, and it alone serves. Where even the best is far off, runs step, and the mixture of the
two snapshots takes the more of the weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import Cloud, squared_distances
from jostle.bridge.problem._simplex import on_simplex

PRIOR = {"moved": 0.2, "half": 0.35, "mixture": 0.35, "spline": 0.05, "climatology": 0.05}
FAITH = 0.2  # of the best energy score: how strongly weights are held to the prior, over sqrt(snapshots)
SMOOTH = 0.93  # of the best other energy score: below it the spline serves alone
MOST = 16  # inner snapshots that are left out
ATOMS = 150  # of each law in a comparison
TRANSPORTED = 600  # atoms of a snapshot in exact transport
TRUSTED = 0.85  # of the best forecast's error the part that is the snapshot's own spread: below, runs step
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


def stacked(left_out: Sequence[tuple[Sequence[Cloud], Cloud]]) -> LawShares:
    """The weights for a core. left_out: what the candidates, those of PRIOR, say of each snapshot that was
    left out, and that snapshot, in units in which distances are taken."""
    if not left_out:
        return LawShares(PRIOR, {})
    ends = np.array([[_distance(law, truth) for law in laws] for laws, truth in left_out])
    apart = np.array([[[_distance(a, b) for b in laws] for a in laws] for laws, _ in left_out])
    floors = [0.5 * _distance(truth, truth) for _, truth in left_out]
    # Snapshots far apart would outweigh all others: each counts by its own best score.
    size = (ends - 0.5 * np.diagonal(apart, axis1=1, axis2=2)).min(axis=1)
    # How near to a forecast that knows the snapshot itself the best one came, where the gap is double.
    near = float(np.sum(floors) / max(np.sum(size), 1e-300))
    size = np.maximum(size, 0.2 * np.median(size))
    size = np.where(size > 0, size, 1.0)
    to_truth = (ends / size[:, None]).mean(axis=0)
    between = (apart / size[:, None, None]).mean(axis=0)
    scores = dict(zip(PRIOR, (to_truth - 0.5 * np.diag(between)).tolist(), strict=True))
    if scores["spline"] < SMOOTH * min(scores[name] for name in ("moved", "half", "mixture")):
        return LawShares({"spline": 1.0}, scores)
    faith = FAITH * min(scores.values()) * (len(left_out) / 5) ** -0.5
    weights = on_simplex(to_truth, -between, np.array(list(PRIOR.values())), faith)
    trust = min(near / TRUSTED, 1.0)
    shares = {name: trust * float(share) for name, share in zip(PRIOR, weights, strict=True)}
    shares["mixture"] += 1 - trust
    return LawShares(shares, scores)


def _distance(one: Cloud, two: Cloud) -> float:
    """The mean distance of their atoms."""
    return float(one.weights @ squared_distances(one.atoms, two.atoms) ** 0.5 @ two.weights)
