"""A model of the small world in other forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.learn.learners.network import FittedFactorization


def scrambled(known: FittedFactorization, form: str) -> FittedFactorization:
    """The model in another form with random numbers: two members of two interference types each, laid
    out as `combine` does."""
    random = np.random.default_rng(0)
    w, p = len(known.workload_names), len(known.platform_names)
    slots = 2 if form == "paper" else 4
    embeddings = replace(
        known.embeddings,
        workload_main=random.normal(size=(w, 5)),
        platform_main=0.2 * random.normal(size=(p, 5)),
        platform_corun=(form != "paper") * 0.1 * random.normal(size=(p, 5)),
        target=0.5 * random.normal(size=(w, slots, 3)),
        corunner=0.5 * random.normal(size=(w, slots, 3)),
        susceptibility=random.normal(size=(p, 4, 3)),
        intensity=random.normal(size=(p, 4, 3)),
        type_slot=np.array([0, 0, 1, 1]) if slots == 2 else np.arange(4),
        type_weight=np.full(4, 0.5),
    )
    return replace(known, reading=type(known.reading)(form), embeddings=embeddings)
