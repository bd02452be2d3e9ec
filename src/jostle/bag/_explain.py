"""Why a bag's prediction is what it is: the questions on its way down the trees.

Source: Moolchandani et al., Sec. VI: the decision path of an answer, the share of answers on whose path a
feature stands (Fig. 10), and how often it does (Fig. 11, 12). With one tree the path is the whole reason;
with many, uses are counted over all of them and the path shown is that of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import UsageError

if TYPE_CHECKING:
    from jostle.bag._fitted import FittedBag
    from jostle.runs import Colocations


@dataclass(frozen=True)
class Step:
    """One question: is `feature` at most `threshold`? value: the bag's; None where it is not known."""

    feature: str
    value: float | None
    threshold: float
    is_below: bool


@dataclass(frozen=True)
class BagExplanation:
    """runtime_seconds, solo_seconds: predicted, and measured alone. path: of the first tree, from its root.
    uses: questions about each feature over all trees,
    most asked first, those never asked left out. trees: how many."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    runtime_seconds: float
    solo_seconds: float
    path: tuple[Step, ...]
    uses: dict[str, int]
    trees: int


def explain_bag(fitted: FittedBag, colocation: Colocations) -> BagExplanation:
    """Explain the only row of `colocation`. Raises UsageError for more or fewer rows, UnknownName."""
    if len(colocation) != 1:
        raise UsageError(f"one co-location can be explained at a time, not {len(colocation)}")
    runtime = float(fitted.predict(colocation)[0])
    x = fitted.features(colocation)
    workload, platform, corunners = colocation.row(0)
    codes = colocation.codes_in(fitted.workload_names, fitted.platform_names)
    solo = float(np.exp(fitted.described.log_solo[codes[1][0], codes[0][0]]))
    # Nothing is asked alone, where the answer is the solo time, or where there is no answer.
    alone = not corunners or np.isnan(runtime)
    uses = path_uses(fitted, colocation)[0]
    order = np.argsort(-uses, kind="stable")
    return BagExplanation(
        workload,
        platform,
        corunners,
        runtime,
        solo,
        () if alone else _path(fitted, x),
        {fitted.feature_names[at]: int(uses[at]) for at in order if uses[at] and not alone},
        len(fitted.trees.root),
    )


def path_uses(fitted: FittedBag, colocations: Colocations) -> np.ndarray:
    """(n, features) how often each of `fitted.feature_names` is asked about on the way to each answer."""
    return fitted.trees.uses(fitted.features(colocations), len(fitted.feature_names))


def _path(fitted: FittedBag, x: np.ndarray) -> tuple[Step, ...]:
    trees, steps = fitted.trees, []
    node = int(trees.root[0])
    while trees.left[node] >= 0:
        at = int(trees.feature[node])
        below = bool(np.float32(x[0, at]) <= trees.threshold[node])
        unknown = x[0, at] == fitted.unknown[at]
        value = None if unknown else float(x[0, at])
        steps.append(Step(fitted.feature_names[at], value, float(trees.threshold[node]), below))
        node = int(trees.left[node] if below else trees.right[node])
    return tuple(steps)
