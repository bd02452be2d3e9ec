"""Co-locations as objects of JSON, read one by one: a bad one has a reason and stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jostle._base.documents import Unanswered, shortened
from jostle.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from jostle.data import Colocations
    from jostle.models import Timelines

KEYS = frozenset({"workload", "platform", "corunners", "covariates"})
# Of an item whose company changes: stretches (objects of start_seconds and corunners, instead of corunners),
# for how long it has run, how much of its work is done, and whether after that others may come.
TIMED = frozenset({"stretches", "elapsed_seconds", "done_ratio", "future"})
MOST_CORUNNERS = 64
MOST_STRETCHES = 1000
_LONGEST_NAME = 200
MOST_SUGGESTED = 20  # sentences in one answer that look for names that are meant


@dataclass(frozen=True)
class KnownNames:
    """Names that a model answers about, as codes by name; `platforms` without those that are inputs alone.
    answers_new: whether it answers about other names, too."""

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    workloads: dict[str, int]
    platforms: dict[str, int]
    covariates: tuple[str, ...] = ()
    answers_new: bool = False

    @classmethod
    def of(cls, predictor: Any) -> KnownNames:
        workloads, platforms = tuple(predictor.workload_names), tuple(predictor.platform_names)
        inputs = getattr(predictor, "input_platforms", ())
        codes = {name: code for code, name in enumerate(platforms) if name not in inputs}
        of_runs = tuple(getattr(predictor, "covariate_names", ()))
        new = bool(getattr(predictor, "answers_new_names", False))
        return cls(
            workloads, platforms, {n: c for c, n in enumerate(workloads)}, codes, of_runs, new
        )

    def of_kind(self, kind: str) -> dict[str, int]:
        """Return {name: code} of the workloads or the platforms."""
        return self.platforms if kind == "platform" else self.workloads

    def unknown(self, kind: str, name: str) -> str:
        """Write the sentence for a name that the model does not know."""
        return _unknown(kind, name[:_LONGEST_NAME], tuple(self.of_kind(kind)))

    def new_names(self, item: dict[str, Any], *, suggest: bool = True) -> str:
        """Say which names of a good item the model has never met; empty where it knows all."""
        parts = [item, *(item.get("stretches") or ())]
        beside = sorted({name for part in parts for name in part.get("corunners") or ()})
        named = [("workload", item["workload"]), ("platform", item.get("platform"))]
        return " ".join(
            self.unknown(kind, name) if suggest else f"unknown {kind} {name[:_LONGEST_NAME]!r}"
            for kind, name in [*named, *(("co-runner", name) for name in beside)]
            if name is not None and name not in self.of_kind(kind)
        )


@lru_cache(maxsize=1024)
def _unknown(kind: str, name: str, known: tuple[str, ...]) -> str:
    return str(UnknownName(kind, name, known))


class _Codes(dict[str, int]):
    """Codes by name, which grow with names that were never met. first: the code of the first of them."""

    def __init__(self, known: dict[str, int], first: int) -> None:
        super().__init__(known)
        self.first, self.new = first, list[str]()

    def __missing__(self, name: Any) -> int:
        if not isinstance(name, str) or not name.strip():
            raise KeyError(name)
        self[name] = self.first + len(self.new)
        self.new.append(name)
        return self[name]


@dataclass(frozen=True)
class ReadItems:
    """Items of a question, n of them, as they were read. colocations: of the m good ones. keys: m, the same
    for the same question. at: (m,) where each stands. errors: {place: why not}. new: {place: which names were
    never met}."""

    colocations: Colocations
    keys: list[tuple[Any, ...]]
    at: list[int]
    errors: dict[int, str]
    n: int
    new: dict[int, str]

    def listed(self, good: Sequence[Any]) -> tuple[Any, ...]:
        """Return n answers in the order of the items; good: the m of the good ones."""
        answers: list[Any] = [None] * self.n
        for place, one in zip(self.at, good, strict=True):
            answers[place] = with_new_names(one, self.new.get(place, ""))
        for place, why in self.errors.items():
            answers[place] = Unanswered(why, place)
        return tuple(answers)


def with_new_names(answer: Any, new: str) -> Any:
    """Add to the reason of an answer which of its names are new. new: what new_names says; empty for none."""
    return replace(answer, reason=f"{answer.reason}; {new}") if new else answer


def read_items(items: Sequence[Any], known: KnownNames) -> ReadItems:
    """Read items into co-locations in the model's own codes; those that cannot be read have an error."""
    import numpy as np

    from jostle.data import Colocations, covariate_of

    workloads, platforms = (
        _Codes(codes, len(names)) if known.answers_new else codes
        for codes, names in (
            (known.workloads, known.workload_names), (known.platforms, known.platform_names),
        )
    )  # fmt: skip
    met = len(known.workload_names), len(known.platform_names)
    only = next(iter(platforms.values())) if len(known.platforms) == 1 else None
    workload: list[int] = []
    platform: list[int] = []
    corunner: list[int] = []
    offsets, keys, at, errors, new = [0], [], [], {}, {}
    told: list[dict[str, float | str]] = []
    for place, item in enumerate(items):
        try:
            if item.keys() - KEYS:
                raise KeyError
            beside = item.get("corunners")
            if beside is None:
                beside = ()
            elif not isinstance(beside, list) or len(beside) > MOST_CORUNNERS:
                raise TypeError
            w = workloads[item["workload"]]
            p = only if only is not None and "platform" not in item else platforms[item["platform"]]
            others = sorted([workloads[name] for name in beside])
            more = _covariates(item.get("covariates"), known)
        except (KeyError, TypeError, AttributeError):
            errors[place] = why_not(item, known, suggest=len(errors) < MOST_SUGGESTED)
            continue
        workload.append(w)
        platform.append(p)
        corunner += others
        about: tuple[Any, ...] = (w, p, tuple(others))
        if p >= met[1] or max(w, *others, 0) >= met[0]:  # codes of this request alone
            about = (item["workload"], item.get("platform"), tuple(sorted(beside)))
            new[place] = known.new_names(item, suggest=len(new) < MOST_SUGGESTED)
        keys.append((*about, *sorted(more.items())))
        told.append(more)
        offsets.append(len(corunner))
        at.append(place)
    colocations = Colocations(
        (*known.workload_names, *getattr(workloads, "new", ())),
        (*known.platform_names, *getattr(platforms, "new", ())),
        np.array(workload, np.int32),
        np.array(platform, np.int32),
        np.array(offsets, np.int64),
        np.array(corunner, np.int32),
        {name: covariate_of([one.get(name) for one in told]) for name in known.covariates},
    )
    return ReadItems(colocations, keys, at, errors, len(items), new)


def _covariates(given: Any, known: KnownNames) -> dict[str, float | str]:
    """Read the covariates that an item gives of its run. Raises KeyError for those that the model does not
    take."""
    if _bad_covariates(given, known.covariates):
        raise KeyError
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in (given or {}).items()
    }


def is_timed(item: Any) -> bool:
    """Check whether an item says something of time: co-runners that change, or how far the run has come."""
    return isinstance(item, dict) and not TIMED.isdisjoint(item)


def read_timeline(
    model: Any, item: dict[str, Any], known: KnownNames, throughout: bool
) -> Timelines:
    """Read the timeline of an item that says something of time. throughout: see over_time, for an item
    without `future`. Raises UsageError."""
    from jostle.models import Timelines, over_time

    rest = {key: value for key, value in item.items() if key not in TIMED}
    parts = item.get("stretches")
    if parts is None:
        parts = [{"start_seconds": 0, "corunners": rest.pop("corunners", None)}]
    is_list = isinstance(parts, list) and 0 < len(parts) <= MOST_STRETCHES
    if not is_list or "corunners" in rest or not all(isinstance(one, dict) for one in parts):
        raise UsageError(
            f"stretches is no list of 1 to {MOST_STRETCHES} objects with start_seconds and corunners, in the "
            "place of corunners"
        )
    platform = rest.get(
        "platform", next(iter(known.platforms)) if len(known.platforms) == 1 else None
    )
    stretches = []
    for part in parts:
        odd = part.keys() - {"start_seconds", "corunners"}
        one = {**rest, "platform": platform, "corunners": part.get("corunners")}
        if odd or read_items([one], known).errors:
            raise UsageError(f"unknown key {min(odd)!r}" if odd else why_not(one, known))
        stretches.append(
            (_finite(part.get("start_seconds"), "start_seconds"), one["corunners"] or [])
        )
    future = item.get("future")
    if not isinstance(future, (bool, type(None))):
        raise UsageError("`future` is neither true nor false")
    elapsed, done = item.get("elapsed_seconds"), item.get("done_ratio")
    asked = Timelines.from_columns(
        workload=[item["workload"]],
        platform=[platform],
        stretches=[stretches],
        elapsed_seconds=[0.0 if elapsed is None else _finite(elapsed, "elapsed_seconds")],
        done_ratio=[None if done is None else _finite(done, "done_ratio")],
        future=future or False,
    )
    return over_time(model, asked, throughout=throughout or future is not None)


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e12:
        raise UsageError(f"`{name}` is not a number, or larger than 1e12")
    return float(value)


def why_not(item: Any, known: KnownNames | None, *, suggest: bool = True) -> str:
    """Say in a sentence why an item is no co-location, or which name in it the model does not know."""
    if not isinstance(item, dict):
        return f"the item is {type(item).__name__}, not an object with workload and platform"
    if odd := sorted(item.keys() - KEYS):
        return f"unknown key {odd[0]!r}. Known: {', '.join(sorted(KEYS | TIMED))}."
    for key in ("workload", "platform"):
        if key not in item:
            return f"the item has no {key}"
    beside = item.get("corunners")
    if beside is not None and not isinstance(beside, list):
        return "corunners is not a list of names. Use [] for a workload that runs alone."
    if beside and len(beside) > MOST_CORUNNERS:
        return f"{len(beside)} co-runners; at most {MOST_CORUNNERS} are taken"
    if problem := _bad_covariates(
        item.get("covariates"), () if known is None else known.covariates
    ):
        return problem
    named = [("workload", item["workload"]), ("platform", item["platform"])]
    for kind, name in [*named, *(("co-runner", name) for name in beside or ())]:
        if not isinstance(name, str) or not name.strip():
            return f"{kind} is {shortened(repr(name), 80)}, not a name"
        if known is not None and not known.answers_new and name not in known.of_kind(kind):
            return known.unknown(kind, name) if suggest else f"unknown {kind} {name!r}"
    return "the item cannot be read"


def _bad_covariates(given: Any, known: tuple[str, ...]) -> str | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        return 'covariates is no object of numbers and texts, such as {"input_bytes": 3e9}'
    if odd := sorted(set(map(str, given)) - set(known)):
        return str(UnknownName("covariate", odd[0][:_LONGEST_NAME], known))
    if any(
        isinstance(one, bool) or not isinstance(one, (int, float, str)) for one in given.values()
    ):
        return "a covariate is neither a number nor a text"
    return None
