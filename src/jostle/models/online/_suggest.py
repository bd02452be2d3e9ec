"""What to measure next: the runs that would narrow the answers asked about most, with what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.errors import UsageError
from jostle.methods import SuggestsRuns, method_named
from jostle.models.online._update import AGAIN, KNOWN_WELL, counts_of
from jostle.runs import Colocations

MOST_BESIDE = 50  # co-runners that candidates are drawn from
MOST_CANDIDATES = 200_000


@dataclass(frozen=True)
class SuggestedRun:
    """A run to measure. seconds: how long it is predicted to take. doubt: by how much the answers asked about
    are usually off once it and all before it are measured, as a ratio above 1."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    seconds: float
    doubt: float


@dataclass(frozen=True)
class Suggestions:
    """doubt: by how much the answers asked about are usually off now, as a ratio above 1. runs: what to
    measure, the one that tells most first."""

    doubt: float
    runs: tuple[SuggestedRun, ...]


def suggest(
    model: Any, candidates: Colocations | None, asked: Colocations | None, most: int, seed: int
) -> Suggestions:
    """See Model.suggest."""
    method = method_named(str(model.metadata["method"]))
    if not isinstance(method, SuggestsRuns):
        name = model.metadata.get("method")
        raise UsageError(f"the method {name} suggests no runs", fix="factorization does.")
    if model.kept is None:
        raise UsageError("the model keeps none of its runs, so it suggests none", fix=AGAIN)
    if most < 1:
        raise UsageError(f"at most {most} runs are none", fix="Ask for at least 1.")
    asked = usual_questions(model) if asked is None else asked
    candidates = asked if candidates is None else candidates
    if len(candidates) > MOST_CANDIDATES:
        raise UsageError(
            f"{len(candidates)} candidates are more than {MOST_CANDIDATES}",
            fix="Name fewer workloads or platforms.",
        )
    if not len(asked):
        return Suggestions(1.0, ())
    before, found = method.suggested(
        model.predictor, model.kept.learned, candidates, asked, most=most, seed=seed
    )
    rows = candidates.take(np.array([row for row, _ in found], np.int64))
    columns, seconds = rows.to_columns(), model.predict(rows) if len(rows) else np.zeros(0)
    runs = [
        SuggestedRun(w, p, tuple(c), float(s), float(np.exp(after)))
        for w, p, c, s, (_, after) in zip(
            columns["workload"],
            columns["platform"],
            columns["corunners"],
            seconds,
            found,
            strict=True,
        )
    ]
    return Suggestions(float(np.exp(before)), tuple(runs))


def usual_questions(
    model: Any,
    workloads: Sequence[str] = (),
    platforms: Sequence[str] = (),
    *,
    beside: bool = False,
) -> Colocations:
    """Each of the workloads on each of the platforms, alone and, if wanted, beside each known workload.

    Where neither is named: the names with few runs, on all others. Raises UnknownName.
    """
    predictor = model.predictor
    chosen_w, chosen_p = list(workloads), list(platforms)
    pairs: list[tuple[str, str]] = []
    if chosen_w or chosen_p:
        chosen_w, chosen_p = (
            chosen_w or list(predictor.workload_names),
            chosen_p or list(predictor.platform_names),
        )
        pairs = [(w, p) for w in chosen_w for p in chosen_p]
    else:
        few = {
            kind: [
                name
                for name, count in zip(
                    getattr(predictor, f"{kind}_names"), counts_of(predictor, kind), strict=True
                )
                if count < KNOWN_WELL
            ]
            for kind in ("workload", "platform")
        }
        pairs = [(w, p) for w in few["workload"] for p in predictor.platform_names]
        pairs += [(w, p) for p in few["platform"] for w in predictor.workload_names]
        pairs = sorted(set(pairs))
    corunners: list[list[str]] = [[] for _ in pairs]
    if beside:
        others = list(predictor.workload_names)[:MOST_BESIDE]
        corunners += [[other] for _ in pairs for other in others]
        pairs += [pair for pair in pairs for _ in others]
    found = Colocations.from_columns(
        workload=[w for w, _ in pairs], platform=[p for _, p in pairs], corunners=corunners
    )
    found.codes_in(predictor.workload_names, predictor.platform_names)
    return found
