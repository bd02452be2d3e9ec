"""What base learners are called where a person reads; documents have their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORDS = {
    "none": "no slowdown",
    "turns": "turns on shared cores",
    "level": "the mean slowdown",
    "effects": "additive effects",
    "product": "susceptibility times pressure",
    "product alike": "susceptibility times pressure",
    "mixture": "a mixture of stressors",
    "learned mixture": "products of what stressors show",
    "mixture and effects": "a mixture of stressors and additive effects",
    "learned mixture and effects": "products of what stressors show and additive effects",
    "sensitivity": "what stressors cost the workload",
    "pressure": "what the co-runners cost stressors",
    "process of traces": "a Gaussian process over traces",
    "simulation": "simulation of solo profiles",
    "simulation and level": "simulation and a constant",
    "simulation and process": "simulation and a Gaussian process",
    "simulation and wide process": "simulation and a Gaussian process",
    "names": "effects of names",
    "names and co-runners": "effects of names and co-runners",
    "network": "matrix factorization",
    "trees": "trees on features",
    "trees over turns": "trees on features beyond turns on shared cores",
}
_UNITS = {
    " of seconds": ", in seconds",
    " of runtimes": ", as run times",
    " of turns": " beyond turns on shared cores",
    " of factors": "",
}


def in_words(label: str) -> str:
    """Name a label for people: base learners that differ only in the number at their end share the words."""
    name = re.sub(r" [0-9.e-]+$", "", label)
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "")
    name = name.removesuffix(unit)
    return _WORDS.get(name, name) + _UNITS.get(unit, "")


def weights_in_words(weights: Mapping[str, float]) -> dict[str, float]:
    """Add up the weights of base learners with the same words; the largest first."""
    out: dict[str, float] = {}
    for label, weight in weights.items():
        out[in_words(label)] = out.get(in_words(label), 0.0) + weight
    return dict(sorted(out.items(), key=lambda item: -item[1]))
