"""Filter and prioritize: which nodes a pod may go to, why others not, and how good each is."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._report import finite
from jostle.errors import UsageError
from jostle.placement import REASONS, Fleet, Placement, Request, Standard
from jostle.service.kubernetes._pods import Pod
from jostle.service.state._placing import LivePlaces
from jostle.service.state._served import Served

HIGHEST = 10  # score of an extender
UNREADABLE = "jostle: the annotations of the pod cannot be read"
UNKNOWN_NODE = "jostle: the node is not in the fleet"
WORDS = tuple(REASONS)
# The scheduler groups reasons by their text: always these few, with figures under the link.
TEXTS = {name: f"jostle: {text}" for name, text in REASONS.items()}
_MOST_DECISIONS = 2000


@dataclass(frozen=True)
class PodAssessment:
    """A pod on n nodes. reason: of each, a key of REASONS, or `unknown_node`. bound_seconds, limit_seconds:
    (n,), not finite where there is none."""

    names: list[str]
    reason: list[str]
    bound_seconds: np.ndarray
    limit_seconds: np.ndarray


class Decisions:
    """The last decisions, to be looked up by who asks why."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def keep(self, pod: Pod, document: dict[str, Any]) -> None:
        self._kept[pod.namespace, pod.name] = document
        self._kept.move_to_end((pod.namespace, pod.name))
        while len(self._kept) > _MOST_DECISIONS:
            self._kept.popitem(last=False)

    def of(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self._kept.get((namespace, name))


def assessed(
    pod: Pod,
    request: Request,
    names: list[str],
    places: LivePlaces,
    served: Served,
    standard: Standard,
) -> PodAssessment:
    """The pod on each of these nodes, beside everybody but itself."""
    fleet = places.fleet
    fleet.sync(served.known.platforms)
    kinds = fleet.kinds.of
    # Not found is -1: the last place, appended below.
    at = np.fromiter((kinds.get(name, -1) for name in names), np.int64, len(names))
    reason, bound, limit = [np.zeros(0, int)], [np.zeros(0)], [np.zeros(0)]
    if kinds:
        every = places.by_kind(served, standard).bounds.assess(request)
        reason, bound, limit = [every.reason], [every.bound_seconds], [every.limit_seconds]
    words = [WORDS[code] for code in reason[0]] + ["unknown_node"]
    bounds, limits = np.append(bound[0], np.inf), np.append(limit[0], np.nan)
    reasons = [words[place] for place in at.tolist()]
    bound_seconds, limit_seconds = bounds[at], limits[at]
    own = fleet.placed.get(pod.id)
    if own is not None and own[0].node in kinds and own[0].node in names:
        place, node = names.index(own[0].node), fleet.without(own[0].node, pod.id)
        here = Placement(Fleet((node,)), places.sets(served, standard)).bounds.assess(request)
        reasons[place] = WORDS[int(here.reason[0])]
        bound_seconds[place], limit_seconds[place] = here.bound_seconds[0], here.limit_seconds[0]
    return PodAssessment(names, reasons, bound_seconds, limit_seconds)


def scores(assessment: PodAssessment, held: str | None) -> list[dict[str, Any]]:
    """0 to 10 for each node: 10 for the one that is held, at most 9 for others that are safe, the more the
    lower the bound; 0 for the rest."""
    safe = np.array([reason == "ok" for reason in assessment.reason], bool)
    score = np.zeros(len(safe), np.int64)
    if safe.any():
        best = assessment.bound_seconds[safe].min()
        ratio = best / assessment.bound_seconds[safe]
        score[safe] = np.maximum(1, np.floor((HIGHEST - 1) * ratio)).astype(np.int64)
    listed = score.tolist()
    return [
        {"Host": name, "Score": HIGHEST if name == held else value}
        for name, value in zip(assessment.names, listed, strict=True)
    ]


def best_of(assessment: PodAssessment) -> str | None:
    """The safe node with the least bound, if any is safe."""
    safe = np.array([reason == "ok" for reason in assessment.reason], bool)
    if not safe.any():
        return None
    return assessment.names[int(np.argmin(np.where(safe, assessment.bound_seconds, np.inf)))]


def text_of(reason: str) -> str:
    return TEXTS.get(reason, UNKNOWN_NODE)


def decision(
    pod: Pod, assessment: PodAssessment, served: Served, most: int = 200
) -> dict[str, Any]:
    """Figures behind the constant words."""
    listed = zip(
        assessment.names[:most],
        assessment.reason,
        assessment.bound_seconds.tolist(),
        assessment.limit_seconds.tolist(),
        strict=False,
    )
    return {
        "schema": "decision/v1",
        "model": served.label,
        "pod": f"{pod.namespace}/{pod.name}",
        "request": pod.row,
        "nodes_by_reason": dict(Counter(assessment.reason)),
        "nodes": [
            {
                "node": name,
                "reason": reason,
                "meaning": text_of(reason),
                "bound_seconds": finite(bound),
                "limit_seconds": finite(limit),
            }
            for name, reason, bound, limit in listed
        ],
    }


def request_of(pod: Pod) -> tuple[Request | None, bool]:
    """(what it asks, whether that could be read)."""
    try:
        return pod.request(), True
    except UsageError:
        return None, False
