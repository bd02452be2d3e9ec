"""Filter and prioritize: which nodes a pod may go to, why others not, and how good each is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._base.report import finite
from jostle.placement import REASONS, FleetBounds, Request, Standard
from jostle.server.kubernetes._pods import Pod
from jostle.server.state._live_placements import LivePlaces
from jostle.server.state._served_model import Served

HIGHEST = 10  # score of an extender
UNREADABLE = "jostle: the annotations of the pod cannot be read"
UNKNOWN_NODE = "jostle: the node is not in the fleet"
WORDS = tuple(REASONS)


@dataclass(frozen=True)
class PodAssessment:
    """A pod on n nodes. reason: of each, a key of REASONS, or `unknown_node`. bound_seconds, limit_seconds:
    (n,), not finite where there is none."""

    names: list[str]
    reason: list[str]
    bound_seconds: np.ndarray
    limit_seconds: np.ndarray

    @property
    def reasons(self) -> dict[str, str]:
        """The reason of each node."""
        return dict(zip(self.names, self.reason, strict=True))

    @property
    def safe_seconds(self) -> np.ndarray:
        """Bounds where the pod is safe, infinite elsewhere, (n,)."""
        return np.where(np.array(self.reason) == "ok", self.bound_seconds, np.inf)

    @property
    def best(self) -> str | None:
        """The safe node with the least bound, if any is safe."""
        return self.names[int(np.argmin(self.safe_seconds))] if "ok" in self.reason else None

    def scores(self, held: str | None) -> list[dict[str, Any]]:
        """Score each node from 0 to 10: 10 for the one that is held, at most 9 for others that are safe, the
        more the lower the bound; 0 for the rest."""
        safe, score = self.safe_seconds, np.zeros(len(self.names), np.int64)
        good = np.array(self.reason) == "ok"
        if good.any():
            score[good] = np.maximum(1, (HIGHEST - 1) * (safe[good].min() / safe[good]))
        pairs = zip(self.names, score.tolist(), strict=True)
        return [{"Host": name, "Score": HIGHEST if name == held else n} for name, n in pairs]

    def decision(self, pod: Pod, served: Served, most: int = 200) -> dict[str, Any]:
        """Return the figures behind the constant words."""
        figures = (finite(part.tolist()) for part in (self.bound_seconds, self.limit_seconds))
        listed = zip(self.names[:most], self.reason, *figures, strict=False)
        names = ("node", "reason", "bound_seconds", "limit_seconds")
        return {
            "schema": "decision/v1",
            "model": served.label,
            "pod": f"{pod.namespace}/{pod.name}",
            "request": pod.row,
            "nodes_by_reason": dict(Counter(self.reason)),
            "nodes": [
                dict(zip(names, row, strict=True)) | {"meaning": text_of(row[1])} for row in listed
            ],
        }


def assessed(
    pod: Pod,
    request: Request,
    names: list[str],
    places: LivePlaces,
    served: Served,
    standard: Standard,
) -> PodAssessment:
    """Tell for each of these nodes whether the pod keeps its limits there, beside all other pods of the
    node."""
    fleet = places.fleet
    fleet.sync(served.known.platforms)
    kinds = fleet.kinds.of
    # Not found is -1: the last place, appended below.
    at = np.fromiter((kinds.get(name, -1) for name in names), np.int64, len(names))
    by_kind = places.by_kind(request, served, standard)
    every = by_kind.assess(request)
    words = [WORDS[code] for code in every.reason] + ["unknown_node"]
    bounds, limits = np.append(every.bound_seconds, np.inf), np.append(every.limit_seconds, np.nan)
    reasons = [words[place] for place in at.tolist()]
    bound_seconds, limit_seconds = bounds[at], limits[at]
    own = fleet.placed.get(pod.id)
    if own is not None and own[0].node in kinds and own[0].node in names:
        place, node = names.index(own[0].node), fleet.without(own[0].node, pod.id)
        here = FleetBounds((node,), by_kind.sets).assess(request)
        reasons[place] = WORDS[int(here.reason[0])]
        bound_seconds[place], limit_seconds[place] = here.bound_seconds[0], here.limit_seconds[0]
    return PodAssessment(names, reasons, bound_seconds, limit_seconds)


def text_of(reason: str) -> str:
    """Write a reason for the scheduler, which groups reasons by their text: always these few, with figures
    under the link."""
    return f"jostle: {REASONS[reason]}" if reason in REASONS else UNKNOWN_NODE
