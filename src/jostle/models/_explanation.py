"""What an answer rests on, in terms that one can act on, for a model of any method.

All of it comes from what every model has: predictions with and without each co-runner, the runs that were
learned from, and the bound. What the method itself knows of its answer is `explain` of what it learned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.report import Report, Reported, Table, duration
from jostle.errors import JostleError, UsageError
from jostle.models.timelines._timelines import Timelines

if TYPE_CHECKING:
    from jostle.conformal import Bounds
    from jostle.data import Runs

ENOUGH = 20  # runs of a name past which more of it hardly change its answers
_A_THOUSANDTH = 1e-3


@dataclass(frozen=True)
class CorunnerCost:
    """Cost of one co-runner.

    without_seconds: the prediction if it were not there. itself_ratio: how many times longer the co-runner
    takes beside all than without this workload; NaN where there is no answer.
    """

    name: str
    without_seconds: float
    itself_ratio: float


@dataclass(frozen=True)
class Measured:
    """The measured co-location most like the one asked about. runs: how many. seconds: their median."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    runs: int
    seconds: float


@dataclass(frozen=True, repr=False)
class Why(Reported):
    """Explanation of a prediction.

    seconds, alone_seconds: predicted, and predicted alone; NaN where there is no answer. bounds: of this one.
    corunners: what each costs. evidence: runs that were learned from, by what they share with the question.
    nearest: None where no runs were given, or none is of the workload or platform. doubt: what the answer
    rests on least. measure: what would remove it. over: `throughout` in this company, a `timeline` of it, of
    which each co-runner is missing as a whole, or the `future`. covariates: what was known of the run.
    covariates_ratio: how many times as long as usual it takes by these.
    """

    workload: str
    platform: str
    seconds: float
    bounds: Bounds
    alone_seconds: float
    corunners: tuple[CorunnerCost, ...]
    evidence: dict[str, int]
    nearest: Measured | None
    doubt: str
    measure: str
    over: str = "throughout"
    covariates: dict[str, float | str] = field(default_factory=dict)
    covariates_ratio: float = 1.0

    @property
    def bound_seconds(self) -> float:
        """Infinite where no bound is valid."""
        return float(self.bounds.seconds[0])

    @property
    def confidence(self) -> float:
        """The confidence of the bound."""
        return self.bounds.confidence

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a document."""
        own = {name: value for name, value in vars(self).items() if name != "bounds"}
        return own | {
            "bound_seconds": self.bound_seconds,
            "confidence": self.confidence,
            "corunners": [dict(vars(one)) for one in self.corunners],
            "nearest": None if self.nearest is None else vars(self.nearest),
        }

    def report(self) -> Report:
        """Report sentences, and a table where there are co-runners."""
        where = f"{self.workload} on {self.platform}{_beside([one.name for one in self.corunners])}"
        if self.over != "throughout":
            where += (
                f" in turn, over {'this timeline' if self.over == 'timeline' else 'what may come'}"
            )
        line = f"{where}: {duration(self.seconds)}"
        if np.isfinite(self.bound_seconds):
            line += f", at most {duration(self.bound_seconds)} with confidence {self.confidence:g}"
        parts: list[Table | str] = [line, ""]
        if self.covariates:
            listed = _listed(
                f"{name} {value if isinstance(value, str) else f'{value:g}'}"
                for name, value in self.covariates.items()
            )
            more = _times(self.covariates_ratio)
            parts += [f"By {listed} it takes {more} as long as is usual of {self.workload}.", ""]
        if self.corunners:
            parts += [*self._costs(), ""]
        parts.append(f"Rests on {self._rests()}.")
        if self.nearest is not None:
            n = self.nearest
            times = "once" if n.runs == 1 else f"{n.runs} times, in the median"
            near = f"{n.workload} on {n.platform}{_beside(n.corunners)}"
            parts.append(f"Nearest measured: {near}, {times} {duration(n.seconds)}.")
        parts += [f"Largest doubt: {self.doubt}.", f"What would help: {self.measure}."]
        return Report(self.to_json(), parts)

    def __str__(self) -> str:
        """Write the explanation in plain lines."""
        return str(self.report())

    def _costs(self) -> list[Table | str]:
        rows = [
            [
                one.name,
                duration(one.without_seconds),
                _change(self.seconds, one.without_seconds),
                _times(one.itself_ratio),
            ]
            for one in self.corunners
        ]
        alone = f"Alone it would take {duration(self.alone_seconds)}"
        slower = self.seconds / self.alone_seconds
        if np.isfinite(slower):
            same = abs(slower - 1) < _A_THOUSANDTH
            alone += ": they do not slow it" if same else f": beside them {_times(slower)}"
        columns = ["co-runner", "without it", "costs", "is itself slowed by it"]
        return [alone + ".", Table(columns, rows)]

    def _rests(self) -> str:
        e = self.evidence
        parts = [f"{e['workload']} runs of {self.workload}"]
        if self.corunners:
            parts[0] += f" ({e['beside']} of them beside others)"
        parts.append(f"{e['platform']} on {self.platform}")
        if self.corunners:
            parts.append(f"{e['corunner']} with the co-runner that has the fewest")
        if e["same_set"] >= 0:
            parts.append(f"{e['same_set']} of exactly this set")
        return ", ".join(parts)


def why(model: Any, asked: Any, confidence: float, runs: Runs | None = None) -> Why:
    """Explain one co-location, or one timeline. Raises UsageError for several, UnknownName."""
    if len(asked) != 1:
        raise UsageError(f"one co-location can be explained at a time, not {len(asked)}")
    timed = asked if isinstance(asked, Timelines) else None
    here: Any = asked if timed is None else timed.colocations.take(timed.now)
    workload, platform, corunners = here.row(0)
    if timed is not None:
        corunners = tuple(
            sorted({name for one in timed.colocations.to_columns()["corunners"] for name in one})
        )
    bounds = model.bound(asked, confidence)
    seconds = float(model.predict(asked)[0])
    evidence = model.predictor.evidence(here)
    counts = {
        name: int(getattr(evidence, name)[0])
        for name in ("workload", "beside", "platform", "platform_beside", "corunner", "same_set")
    }
    # Of a name that is there more than once, too: beside all, beside all but this workload, and without it.
    names = list(dict.fromkeys(corunners))
    rests = {name: _without(corunners, name) for name in names}
    others = [
        *((name, (*rest, workload)) for name, rest in rests.items()),
        *rests.items(),
        *((workload, rest) for rest in (rests.values() if timed is None else ())),
        (workload, ()),
    ]
    *each, alone = _seconds(model, platform, others, here.covariates)
    if timed is not None:
        each += [float(model.predict(timed.without(name))[0]) for name in names]
    cost = {
        name: CorunnerCost(name, float(without), float(beside / apart))
        for name, beside, apart, without in zip(names, *np.split(np.array(each), 3), strict=True)
    }
    doubt, measure = _doubt(workload, platform, corunners, counts, str(bounds.outcome[0]))
    return Why(
        workload,
        platform,
        seconds,
        bounds,
        alone if corunners else seconds,
        tuple(cost[name] for name in corunners),
        counts,
        None if runs is None else nearest_measured(runs, workload, platform, corunners),
        doubt,
        measure,
        "throughout" if timed is None else timed.over[0],
        {name: values[0].item() for name, values in here.covariates.items()},
        seconds / float(model.predict(_as_usual(asked))[0]) if here.covariates else 1.0,
    )


def _as_usual(asked: Any) -> Any:
    """Drop from a question what is known of the run."""
    if isinstance(asked, Timelines):
        return replace(asked, colocations=_as_usual(asked.colocations))
    return replace(asked, covariates={})


def _without(corunners: tuple[str, ...], name: str) -> tuple[str, ...]:
    place = corunners.index(name)
    return corunners[:place] + corunners[place + 1 :]


def _seconds(
    model: Any,
    platform: str,
    asked: list[tuple[str, tuple[str, ...]]],
    covariates: Mapping[str, np.ndarray],
) -> list[float]:
    """Return predictions of workloads beside others, NaN where there is none: a co-runner may be one that
    never ran as a workload. covariates: of the last workload; of others they are not known."""
    from jostle.data import Colocations

    every = Colocations.from_columns(
        workload=[workload for workload, _ in asked],
        platform=[platform] * len(asked),
        corunners=[list(corunners) for _, corunners in asked],
        covariates={
            name: [values[0].item() if who == asked[-1][0] else None for who, _ in asked]
            for name, values in covariates.items()
        },
    )
    try:
        return model.predict(every).tolist()
    except JostleError:
        if len(asked) == 1:
            return [float("nan")]
        own = [covariates if one[0] == asked[-1][0] else {} for one in asked]
        pairs = zip(asked, own, strict=True)
        return [_seconds(model, platform, [one], mine)[0] for one, mine in pairs]


def nearest_measured(
    runs: Runs, workload: str, platform: str, corunners: tuple[str, ...]
) -> Measured | None:
    """Find the workload's co-location with the most co-runners in common and the fewest others, on the
    platform if it ran there, elsewhere if not."""
    ok = runs.ok()
    c = ok.colocations
    if workload not in c.workload_names:
        return None
    mine = np.flatnonzero(c.workload == c.workload_names.index(workload))
    there = mine[np.array(c.platform_names)[c.platform[mine]] == platform]
    rows = there if len(there) else mine
    if not len(rows):
        return None
    wanted = Counter(corunners)

    def apart(i: Any) -> int:
        beside = Counter(c.row(int(i))[2])
        return (wanted - beside).total() + (beside - wanted).total()

    best = int(min(rows, key=apart))
    same = rows[c.group[rows] == c.group[best]]
    names = c.row(best)
    return Measured(*names, len(same), float(np.median(ok.runtime_seconds[same])))


def _doubt(
    workload: str, platform: str, corunners: tuple[str, ...], counts: dict[str, int], outcome: str
) -> tuple[str, str]:
    """Return (what the answer rests on least, the measurement that would remove this doubt)."""
    here = f"{workload} on {platform}"
    if not counts["workload"] or not counts["platform"]:
        name = workload if not counts["workload"] else platform
        more = f"some {ENOUGH} runs of it, alone and beside others"
        return f"no run of {name} was learned from", more
    if corunners and not counts["beside"]:
        return f"{workload} was measured alone only", f"runs of {here} beside others"
    if corunners and not counts["platform_beside"]:
        return f"nothing was measured beside others on {platform}", f"runs of {here} beside others"
    if outcome in ("unseen_group", "larger_sets"):
        return (
            f"no run to check against had {len(corunners)} co-runners",
            f"sets of {len(corunners) + 1} measured together",
        )
    weakest = min(
        [(counts["workload"], workload), (counts["platform"], platform)]
        + ([(counts["corunner"], "the co-runner with the fewest")] if corunners else [])
    )
    if weakest[0] < ENOUGH:
        return (
            f"only {weakest[0]} run{'s' if weakest[0] != 1 else ''} tell of {weakest[1]}",
            f"some {ENOUGH - weakest[0]} more of it, beside others among them",
        )
    if corunners and counts["same_set"] == 0:
        return (
            f"these were never measured together on {platform}",
            f"one run of {here}{_beside(corunners)}",
        )
    if outcome == "too_few_runs":
        return "too few runs were held out for this confidence", "more runs of any such kind"
    return "how much single runs of the same differ", f"repeats of {here}{_beside(corunners, '')}"


def _listed(names: Any) -> str:
    names = list(names)
    return " and ".join(([", ".join(names[:-1])] if names[1:] else []) + names[-1:])


def _beside(names: Any, alone: str = " alone") -> str:
    listed = _listed(names)
    return f" beside {listed}" if listed else alone


def _times(ratio: float) -> str:
    return "no answer" if not np.isfinite(ratio) else f"× {ratio:.2f}"


def _change(seconds: float, without: float) -> str:
    change = seconds - without
    if not np.isfinite(change):
        return "no answer"
    if abs(change) < _A_THOUSANDTH * seconds:
        return "nothing"
    return duration(change) if change > 0 else f"saves {duration(-change)}"
