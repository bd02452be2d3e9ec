"""Answers with a promise for what is chosen: yes for those that conformal selection takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jostle.answers.placement._sharers import SafeAnswer
from jostle.placement import FleetBounds, Placement, Requests

# What bounds answer, and selection answers anew; ground without a valid bound stays a no.
_OPEN = ("ok", "newcomer_late", "tenant_late")


def safe_among(
    answers: Sequence[SafeAnswer], requests: Requests, placement: Placement
) -> list[SafeAnswer]:
    """Yes for those selected among all that were asked. Raises NotEnoughRuns."""
    chosen, by_name = placement.chosen, {request.name: request for request in requests.good}
    assert chosen is not None
    at = [n for n, one in enumerate(answers) if one.reason in _OPEN and not one.used_predictions]
    here, groups = FleetBounds(placement.fleet, chosen.sets), []
    place = {node.name: number for number, node in enumerate(here.nodes)}
    for number in at:
        one = answers[number]
        (group,) = here.sets_with(by_name[one.request], np.array([place[one.node]]))
        groups.append(group[1:])
    taken = chosen.select(groups, placement.ratios(requests))
    selected = [
        replace(one, is_safe=False, reason=one.reason if one.reason not in _OPEN else "not_chosen")
        for one in answers
    ]
    for number, take in zip(at, taken, strict=True):
        if take[0]:
            selected[number] = replace(answers[number], is_safe=True, reason="ok", helps=())
    return selected
