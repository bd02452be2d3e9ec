"""What to measure next: the runs that would narrow the answers asked about most, with what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._base.report import Report, Reported, Table, duration
from jostle.data import Colocations
from jostle.errors import UsageError
from jostle.learn import Data, method_named
from jostle.models.updates._update_model import AGAIN, KNOWN_WELL, NAMES, counts_of

MOST_BESIDE = 50  # co-runners that candidates are drawn from
MOST_CANDIDATES = 200_000
DOUBTS = "factorization"  # the method that says what is in doubt where the model's own does not


@dataclass(frozen=True)
class SuggestedRun:
    """A run to measure. seconds: how long it is predicted to take. doubt: by how much the answers asked about
    are usually off once it and all before it are measured, as a ratio above 1."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    seconds: float
    doubt: float


@dataclass(frozen=True, repr=False)
class Suggestions(Reported):
    """Runs to measure next.

    doubt: by how much the answers asked about are usually off now, as a ratio above 1. runs: what to measure,
    the one that tells most first.
    """

    doubt: float
    runs: tuple[SuggestedRun, ...]

    def report(self) -> Report:
        """Make a table of the runs, the most useful first."""
        names = ("workload", "platform", "corunners", "seconds", "doubt")
        rows = [vars(run) for run in self.runs]
        cells: dict[str, Any] = {n: n for n in names} | {"seconds": lambda r: duration(r.seconds)}
        title = f"answers are off by x{self.doubt:.2f} now"
        return Report({"doubt": self.doubt, "runs": rows}, [Table.of(self.runs, cells, title)])


def suggest(
    model: Any, candidates: Colocations | None, asked: Colocations | None, most: int, seed: int
) -> Suggestions:
    """See Model.suggest."""
    method: Any = method_named(str(model.metadata["method"]))
    if model.kept is None:
        raise UsageError("the model keeps none of its runs, so it suggests none", fix=AGAIN)
    asked = usual_questions(model) if asked is None else asked
    candidates = asked if candidates is None else candidates
    if len(candidates) > MOST_CANDIDATES:
        raise UsageError(
            f"{len(candidates)} candidates are more than {MOST_CANDIDATES}",
            fix="Name fewer workloads or platforms.",
        )
    if not len(asked):
        return Suggestions(1.0, ())
    predictor, known = model.predictor, model.kept.learned
    if not hasattr(method, "suggested"):
        # What a method does not know of its doubts, one that does says of the same runs.
        method, known = method_named(DOUBTS), known.joined(model.kept.calibration)
        other = method()
        predictor = other.fit(other.prepare(Data(known.as_runs())), seed=seed)
    before, chosen = method.suggested(predictor, known, candidates, asked, most=most, seed=seed)
    rows = candidates.take(np.array([row for row, _ in chosen], np.int64))
    seconds = model.predict(rows).tolist() if len(rows) else []
    runs = [
        SuggestedRun(*rows.row(place), seconds[place], float(np.exp(after)))
        for place, (_, after) in enumerate(chosen)
    ]
    return Suggestions(float(np.exp(before)), tuple(runs))


def usual_questions(
    model: Any,
    workloads: Sequence[str] = (),
    platforms: Sequence[str] = (),
    *,
    beside: bool = False,
    seed: int = 0,
) -> Colocations:
    """Ask each of the workloads on each of the platforms, alone and, if wanted, beside other workloads.

    Where neither is named: the names with few runs, on all others; where all have enough, every workload on
    every platform. Of more than can be weighed at once some are drawn with the seed. Raises UnknownName.
    """
    predictor = model.predictor
    every_w, every_p = list(predictor.workload_names), list(predictor.platform_names)
    random = np.random.default_rng([seed, 43])
    most = MOST_CANDIDATES // 2 if beside else MOST_CANDIDATES
    if workloads or platforms:
        pairs = _pairs(list(workloads) or every_w, list(platforms) or every_p, most, random)
    else:
        few_w, few_p = (
            [name for name, n in counts_of(predictor, kind).items() if n < KNOWN_WELL]
            for kind in NAMES
        )
        of_both = _pairs(few_w, every_p, most, random) + _pairs(every_w, few_p, most, random)
        pairs = sorted(set(of_both)) or _pairs(every_w, every_p, most, random)
    if len(pairs) > most:
        pairs = [pairs[at] for at in np.sort(random.permutation(len(pairs))[:most])]
    corunners: list[list[str]] = [[] for _ in pairs]
    if beside and pairs:
        # As many others for each as there is room for.
        number = min(MOST_BESIDE, len(every_w), max(most // len(pairs), 1))
        for w, p in list(pairs):
            drawn = random.choice(len(every_w), number, replace=False)
            pairs += [(w, p)] * number
            corunners += [[every_w[other]] for other in np.sort(drawn).tolist()]
    questions = Colocations.from_columns(
        workload=[w for w, _ in pairs], platform=[p for _, p in pairs], corunners=corunners
    )
    questions.codes_in(predictor.workload_names, predictor.platform_names)
    return questions


def _pairs(
    workloads: Sequence[str], platforms: Sequence[str], most: int, random: np.random.Generator
) -> list[tuple[str, str]]:
    """Pair each with each, or draw so many of the pairs."""
    n = len(workloads) * len(platforms)
    at = np.arange(n) if n <= most else np.unique(random.integers(0, n, most))
    return [(workloads[k // len(platforms)], platforms[k % len(platforms)]) for k in at.tolist()]
