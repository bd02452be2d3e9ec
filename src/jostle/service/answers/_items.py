"""Items of a request as co-locations: a bad one gets a status of its own and spoils no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.runs import Colocations
from jostle.service.state._served import Served

KEYS = frozenset({"workload", "platform", "corunners"})
MOST_CORUNNERS = 64
LONGEST = 300  # characters of a sentence
MOST_SUGGESTED = 20  # sentences in one answer that look for names that are meant


@dataclass(frozen=True)
class AskedItems:
    """n items. colocations: of the m good ones. keys: m, the same for the same question. at: (m,) where each
    stands. errors: {place: why not}."""

    colocations: Colocations
    keys: list[tuple[int, int, tuple[int, ...]]]
    at: list[int]
    errors: dict[int, str]
    n: int

    def listed(self, good: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """n answers in the order of the items; good: the m of the good ones."""
        found: list[Any] = [None] * self.n
        for place, one in zip(self.at, good, strict=True):
            found[place] = one
        for place, why in self.errors.items():
            found[place] = failed(why)
        return found


def failed(why: str) -> dict[str, str]:
    """The answer to an item that has none."""
    return {"status": "error", "error": shortened(why)}


def shortened(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def read_items(items: Sequence[Any], served: Served) -> AskedItems:
    """What is asked, in the model's own codes."""
    workloads, platforms = served.workload_code, served.platform_code
    only = next(iter(platforms.values())) if len(platforms) == 1 else None
    workload: list[int] = []
    platform: list[int] = []
    corunner: list[int] = []
    offsets, keys, at, errors = [0], [], [], {}
    for place, item in enumerate(items):
        try:
            if item.keys() - KEYS:
                raise KeyError
            beside = item.get("corunners") or ()
            if beside and (not isinstance(beside, list) or len(beside) > MOST_CORUNNERS):
                raise TypeError
            w = workloads[item["workload"]]
            p = only if only is not None and "platform" not in item else platforms[item["platform"]]
            others = sorted([workloads[name] for name in beside])
        except (KeyError, TypeError, AttributeError):
            errors[place] = why_not(item, served, suggest=len(errors) < MOST_SUGGESTED)
            continue
        workload.append(w)
        platform.append(p)
        corunner += others
        keys.append((w, p, tuple(others)))
        offsets.append(len(corunner))
        at.append(place)
    asked = Colocations(
        tuple(served.model.predictor.workload_names),
        tuple(served.model.predictor.platform_names),
        np.array(workload, np.int32),
        np.array(platform, np.int32),
        np.array(offsets, np.int64),
        np.array(corunner, np.int32),
    )
    return AskedItems(asked, keys, at, errors, len(items))


def why_not(item: Any, served: Served | None, *, suggest: bool = True) -> str:
    """The sentence for an item that is no co-location, or names what the model has never met."""
    if not isinstance(item, dict):
        return f"the item is {type(item).__name__}, not an object with workload and platform"
    if odd := sorted(item.keys() - KEYS):
        return f"unknown key {odd[0]!r}. Known: corunners, platform, workload."
    for key in ("workload", "platform"):
        if key not in item:
            return f"the item has no {key}"
    beside = item.get("corunners")
    if beside is not None and not isinstance(beside, list):
        return "corunners is not a list of names. Use [] for a workload that runs alone."
    if beside and len(beside) > MOST_CORUNNERS:
        return f"{len(beside)} co-runners; at most {MOST_CORUNNERS} are taken"
    named = [("workload", item["workload"]), ("platform", item["platform"])]
    for kind, name in [*named, *(("co-runner", name) for name in beside or ())]:
        if not isinstance(name, str) or not name:
            return f"{kind} is {shortened(repr(name), 80)}, not a name"
        if served is not None and not served.knows(kind, name):
            return served.unknown(kind, name) if suggest else f"unknown {kind} {name!r}"
    return "the item cannot be read"
