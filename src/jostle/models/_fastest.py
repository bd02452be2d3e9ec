"""Where a workload runs fastest, of as many platforms as the model knows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._report import Glance, duration
from jostle.bounds import Bounds
from jostle.errors import UnknownName, UsageError, require_whole
from jostle.methods import AnswersEverywhere, HasInputPlatforms
from jostle.runs import Colocations, places_of


@dataclass(frozen=True, repr=False)
class Fastest(Glance):
    """The k platforms with the shortest predictions, the shortest first. seconds: (k,) predicted. bounds: of
    these k, no others were looked at. known: how many platforms there are."""

    platforms: tuple[str, ...]
    seconds: np.ndarray
    bounds: Bounds
    known: int

    def __len__(self) -> int:
        return len(self.platforms)

    def facts(self) -> list[tuple[str, str]]:
        """Each with its prediction."""
        facts = [
            (name, duration(float(s))) for name, s in zip(self.platforms, self.seconds, strict=True)
        ]
        return [("platforms", f"{self.known}"), *facts]


def fastest(
    model: Any, workload: str, beside: Sequence[str], most: int, confidence: float
) -> Fastest:
    """See Model.fastest."""
    require_whole("most", most, 1)
    if not isinstance(workload, str):
        raise UsageError(f"a {type(workload).__name__} is no name of a workload")
    if isinstance(beside, str) or not isinstance(beside, Collection):
        raise UsageError(f"`beside` is {beside!r}, no list of names", fix="Give it as ['one'].")
    predictor: Any = model.answering
    names, workloads = predictor.platform_names, tuple(predictor.workload_names)

    def asked(platforms: Sequence[str]) -> Colocations:
        n = len(platforms)
        return Colocations.from_columns(
            workload=[workload] * n, platform=list(platforms), corunners=[list(beside)] * n
        )

    if not beside and isinstance(predictor, AnswersEverywhere):
        places = places_of(workloads)
        if workload not in places:
            raise UnknownName("workload", workload, workloads)
        # In logarithms, in which the order is the same.
        seconds = predictor.log_alone_everywhere(places[workload])
        if model.moved is not None:
            seconds = seconds + model.moved.everywhere(workload)
    else:
        seconds = model.predict(asked(names))
    # Platforms that nothing is answered on.
    inputs = predictor.input_platforms if isinstance(predictor, HasInputPlatforms) else ()
    left_out = [place for place, name in enumerate(names) if name in inputs] if inputs else []
    if left_out or np.isnan(seconds.min(initial=0.0)):
        seconds = np.where(np.isnan(seconds), np.inf, seconds)
        seconds[left_out] = np.inf
    chosen = np.arange(len(names))
    if most < len(names):
        chosen = np.argpartition(seconds, most)[:most]
    chosen = chosen[np.lexsort((chosen, seconds[chosen]))]
    chosen = chosen[np.isfinite(seconds[chosen])]
    here = [names[place] for place in chosen]
    seconds, bounds = model.predict_and_bound(asked(here), confidence)
    return Fastest(tuple(here), seconds, bounds, len(names) - len(left_out))
