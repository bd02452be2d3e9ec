"""How alike two co-locations are: the parts that a Gaussian process over co-runs is made of.

Two co-locations are alike because they are on the same platform, of as many co-runners, of the same target,
beside the same co-runners, of the same set of workloads, or delayed alike in the simulator; or because their
targets or co-runners have traces that are alike. What each co-runner adds is averaged in one part and summed
in another. For a workload never seen beside others the parts by name vanish, and those by traces remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.learners.simulation._coruns import CoRuns

LIKE = 5  # parts by traces, the last strengths
NAMED = (
    *("constant", "platform", "degree"),
    *("target", "target here", "co-runners", "co-runners here", "set", "delay"),
    *("number", "target by number", "co-runners summed"),
)
BY_NUMBER = ("degree", *NAMED[-3:])  # which tell nothing more where all have as many co-runners


@dataclass(frozen=True, eq=False)
class CoRunPlaces:
    """n co-locations as the covariance sees them. share: (n, w). delay: (n,) what was simulated, of unit
    spread."""

    target: np.ndarray
    share: np.ndarray
    platform: np.ndarray
    degree: np.ndarray
    together: np.ndarray
    delay: np.ndarray

    def take(self, rows: np.ndarray) -> CoRunPlaces:
        return CoRunPlaces(*(column[rows] for column in vars(self).values()))

    @classmethod
    def of(cls, rows: CoRuns, delay: np.ndarray) -> CoRunPlaces:
        return cls(
            rows.target,
            rows.share,
            rows.platform,
            rows.degree,
            rows.together,
            delay,
        )


def parts_in(places: CoRunPlaces) -> tuple[str, ...]:
    """Name the parts that can tell these places apart."""
    several = {
        "platform": len(np.unique(places.platform)) > 1,
        "delay": bool(np.ptp(places.delay) > 0) if len(places.delay) else False,
    }
    several |= dict.fromkeys(("target here", "co-runners here"), several["platform"])
    several |= dict.fromkeys(BY_NUMBER, len(np.unique(places.degree)) > 1)
    return tuple(name for name in NAMED if several.get(name, True))


def named_part(name: str, one: CoRunPlaces, other: CoRunPlaces) -> np.ndarray:
    """Compute the (n, m) covariance of unit strength of one of NAMED."""

    def same(column: str) -> np.ndarray:
        mine, theirs = getattr(one, column), getattr(other, column)
        return (mine[:, None] == theirs[None]).astype(float)

    if name == "constant":
        return np.ones((len(one.target), len(other.target)))
    if name == "delay":
        return one.delay[:, None] * other.delay[None]
    by_number = one.degree[:, None] * other.degree[None]
    if name == "number":
        return by_number.astype(float)
    if name == "target by number":
        return by_number * same("target")
    if name == "co-runners summed":
        return by_number * (one.share @ other.share.T)
    here = same("platform") if name.endswith(" here") else 1.0
    if name.startswith("co-runners"):
        return here * (one.share @ other.share.T)
    column = {"set": "together"}.get(name, name.removesuffix(" here"))
    return here * same(column)


def likeness(features: np.ndarray) -> np.ndarray:
    """Compute the likeness (w, w) of workloads. features: (w, f) over their lengths."""
    apart = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    return np.exp(-0.5 * apart)


def covariance_of(
    one: CoRunPlaces,
    other: CoRunPlaces,
    names: tuple[str, ...],
    strengths: np.ndarray,
    features: np.ndarray | None,
) -> np.ndarray:
    """Compute the (n, m) covariance. strengths: of the named parts, then LIKE of those by traces if features,
    (w, f) over their lengths, are given."""
    total = np.zeros((len(one.target), len(other.target)))
    for name, strength in zip(names, strengths, strict=False):
        total += strength * named_part(name, one, other)
    if features is not None:
        like, s = likeness(features), strengths[-LIKE:]
        like_t = like[one.target][:, other.target]
        like_o = one.share @ like @ other.share.T
        same_t = one.target[:, None] == other.target[None]
        same_o = one.share @ other.share.T
        total += like_t * (s[0] + s[1] * same_o) + like_o * (s[2] + s[3] * same_t)
        total += s[4] * like_t * like_o
    return total
