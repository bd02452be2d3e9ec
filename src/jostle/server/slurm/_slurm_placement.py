"""Where a job goes and how long it may take, in one question: the plugin of Slurm has two seconds."""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.option_fields import Limits
from jostle._base.report import duration, finite
from jostle.conformal import OUTCOMES, status_of
from jostle.errors import UsageError
from jostle.placement import (
    REASONS,
    Fleet,
    Node,
    Placement,
    Request,
    Requests,
    SetBounds,
    Standard,
    level_of_chosen,
)
from jostle.server.asking._fleet_queries import CONFIDENCE, LIMIT, NULL, VISIBLE
from jostle.server.operations import Question, StateAnswer
from jostle.server.state._live_placements import LivePlaces, NoPlace, WantedPlacement
from jostle.server.state._served_model import Served

_ATTEMPTS = 5
_NEVER = ("bad_node", "not_allowed", "pinned_elsewhere", "labels")  # reasons that stay
_LEVEL = re.compile(r"0?[.][0-9]{0,12}[1-9]")
_LEVELS = {"anyOf": [{"type": "string", "pattern": f"^{_LEVEL.pattern}$"}, CONFIDENCE, NULL]}


@dataclass(frozen=True)
class JobQuestion(Question):
    """Question of Slurm's plugin about one job."""

    workload: Annotated[str, "Which workload."]
    deadline: Annotated[str | None, "Its limit: 20ms, 1.5x."] = None
    confidence: Annotated[float | None, "Of its deadline."] = None
    # A job past its time limit is killed: so that is surer than a deadline, unless the job says otherwise.
    limit_confidence: Annotated[float, "Of its time limit."] = 0.99
    nodes: Annotated[tuple[str, ...] | None, "Those it may go to, all unless given."] = None
    time_limit_minutes: Annotated[int | None, "Its own, if it has one.", Limits(1)] = None

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Any:
        """Make the question from the plugin's values, in which a confidence may be a text such as 0.95."""
        texts = {k: v for k, v in values.items() if "confidence" in k and isinstance(v, str)}
        levels = {k: float(v) for k, v in texts.items() if _LEVEL.fullmatch(v)}
        question = super().read({**values, **levels})
        for level in (question.confidence, question.limit_confidence):
            if level is not None:
                exact_confidence(level)
        return question

    @classmethod
    def schema(cls) -> tuple[list[str], dict[str, Any]]:
        required, fields = super().schema()
        changed = {"workload": VISIBLE, "deadline": {"anyOf": [LIMIT, NULL]}}
        return required, fields | changed | dict.fromkeys(
            ("confidence", "limit_confidence"), _LEVELS
        )

    @property
    def row(self) -> dict[str, Any]:
        """The job as a row of a table of requests."""
        return {key: getattr(self, key) for key in ("workload", "deadline", "confidence")}

    def request(self) -> Request:
        """Raises UsageError."""
        read = Requests.read([self.row])
        if read.rows[0] is None:
            raise UsageError(read.status[0])
        return read.rows[0]


@dataclass(frozen=True)
class JobAnswer(StateAnswer, schema="slurm_submit/v2"):
    """Answer to Slurm's plugin about one job. comment: of the job. bound_seconds: promised, None where
    nothing is; then expected_seconds, if anything tells. outcome: of its bound on the node, a key of
    OUTCOMES; or a key of REASONS, why there is none. placement: its id, to let it go by. placed: whether it
    breaks nobody's promise there at once; else, where it may go to a node at all, it begins there in
    begins_in_minutes, when nobody with a promise is left."""

    placed: bool
    comment: str
    node: str | None = None
    bound_seconds: float | None = None
    expected_seconds: float | None = None
    outcome: str | None = None
    time_limit_minutes: int | None = None
    placement: str | None = None
    begins_in_minutes: int | None = None


def place_job(
    job: JobQuestion, places: LivePlaces, served: Served, standard: Standard, stay: float
) -> JobAnswer:
    """Choose the node with the least bound that still takes the job, and hold it under a placement of its
    own.

    If no bound is valid and nobody's promise is at stake, the job goes where it is expected to end first, and
    nothing is promised. Anywhere else it would break a promise, so it begins later: a time limit that was
    handed out kills a job that is slowed past it. Raises UsageError for a job that cannot be.
    """
    request, reasons, id = job.request(), dict[str, str](), ""
    for _ in range(_ATTEMPTS):
        (ranking,) = places.now(served, standard).rank([request])
        safe = {row.node: row.bound_seconds for row in ranking.rows()}
        reasons = dict.fromkeys(safe, "ok") | {out.node: out.reason for out in ranking.details}
        reasons = {k: why for k, why in reasons.items() if job.nodes is None or k in job.nodes}
        safe = {name: bound for name, bound in safe.items() if name in reasons}
        id = f"slurm-{uuid.uuid4().hex[:16]}"
        if safe:
            node, bound = next(iter(safe.items()))
            minutes, wish = _limited(job, request, list(safe), places, served)
            bound = _at_most(request, list(safe), places, served, standard) or bound
            about = f"at most {duration(bound)}"
            answer = JobAnswer(True, about, node, bound, time_limit_minutes=minutes)
        elif found := places.unpromised(request, reasons, id, served, standard):
            node, expected = found
            seconds, wish = finite(expected), {"workload": job.workload}
            about = "" if seconds is None else f"about {duration(seconds)} are expected and "
            about += "nothing is promised"
            answer = JobAnswer(True, about, node, expected_seconds=seconds)
        else:
            break
        sets, here = places.sets(served, standard), Fleet((places.fleet.nodes[node],))
        (told,) = Placement(here, sets).safe([request]).answers
        outcome = next((one.outcome for one in told.members if one.is_newcomer), reasons[node])
        # A limit that holds whoever comes may be under the bound beside those who are there to the end.
        own = wish == job.row or served.model.acts is None
        require = ("safe" if own else "others") if safe else "slot"
        try:
            places.put(WantedPlacement(id, node, wish, stay, require), served, standard)
        except NoPlace:  # another replica was faster
            continue
        text = f"jostle: {about} on {node} ({_behind(outcome)}), placement={id}"
        text += _remarks(job, answer.time_limit_minutes, wish)
        return replace(answer, comment=text, outcome=outcome, placement=id)
    whys = sorted({why for why in reasons.values() if why != "ok"}) or ["not_allowed"]
    why = "; ".join(REASONS[reason] for reason in whys)
    told = f"jostle: no node is sure to keep the limit ({why})"
    later = _later(job, reasons, places, served, standard, stay)
    if later is None:
        return JobAnswer(False, told)
    node, minutes = later
    told += f", it begins on {node}" + (f" in {minutes} min" if minutes else "")
    told += f" beside nobody with a limit, placement={id}"
    wish, length = {"workload": job.workload}, stay + 60.0 * minutes
    places.put(WantedPlacement(id, node, wish, length, "nothing"), served, standard)
    return JobAnswer(False, told, node, placement=id, begins_in_minutes=minutes)


def _behind(outcome: str) -> str:
    """Write what stands behind a bound: its status, or why there is none."""
    if (status := status_of(outcome)) != "none":
        return status
    return OUTCOMES[outcome][1] if outcome in OUTCOMES else REASONS.get(outcome, outcome)


def _later(
    job: JobQuestion,
    reasons: dict[str, str],
    places: LivePlaces,
    served: Served,
    standard: Standard,
    stay: float,
) -> tuple[str, int] | None:
    """Find (node, minutes) after which nobody with a limit is left there, as a job past its limit is killed:
    the soonest, of equals the one with the fewest tenants. None if no node will do, or no limit ends."""
    sets, now = places.sets(served, standard), places.store.clock()
    found: list[tuple[int, int, str]] = []
    for name, why in reasons.items():
        node = places.fleet.nodes.get(name)
        if node is None or why in _NEVER or (node.slots is not None and node.slots < 1):
            continue
        code, ends = sets.platform_code.get(node.platform, -1), [0.0]
        for tenant in (one for one in node.tenants if one.has_objective):
            limit = float(sets.limits([tenant], np.array([code]))[0, 0])
            row, _ = places.fleet.placed.get(tenant.name, (None, None))
            # It was put there when, or before, it began; Slurm looks at limits once a minute.
            ends.append(math.inf if row is None else row.expires_at - stay + limit + 90.0 - now)
        if math.isfinite(wait := max(ends)):
            found.append((math.ceil(max(wait, 0.0) / 60.0), len(node.tenants), name))
    return (min(found)[2], min(found)[0]) if found else None


def _remarks(job: JobQuestion, minutes: int | None, wish: dict[str, Any]) -> str:
    """Write what else the comment says of the time limit that goes with a promise. wish: what is kept for the
    job."""
    if minutes is None:
        return ""
    own, text = job.time_limit_minutes, ""
    if wish == job.row:
        text = ", its time limit only if nobody else comes"
    if own is not None and own < minutes:
        text += f", and it may take {minutes} min: its time limit of {own} min is short"
    return text


def _at_most(
    request: Request, safe: list[str], places: LivePlaces, served: Served, standard: Standard
) -> float | None:
    """Return seconds on the node that was chosen, as `at` tells them where newcomers count. safe: see
    _limited."""
    nodes = [places.fleet.nodes[name] for name in safe]
    here = Placement(Fleet((nodes[0],)), _sure(places.sets(served, standard), request, nodes))
    told: Any = here.at([request]).items[0]
    return told.bound_seconds if getattr(told, "over", "") == "future" else None


def _sure(sets: SetBounds, request: Request, nodes: Sequence[Node]) -> SetBounds:
    """Raise the confidence of bounds until the least of many holds, if the calibration can say how far."""
    if len(nodes) == 1:
        return sets
    return sets.by(level_of_chosen(sets, [request], nodes, is_least=True), None)


def _limited(
    job: JobQuestion, request: Request, safe: list[str], places: LivePlaces, served: Served
) -> tuple[int | None, dict[str, Any]]:
    """Choose a time limit. Returns (whole minutes, None if no bound is valid at that confidence; what is kept
    for the job).

    A job past its limit is killed, so the limit that is handed out is an objective that later placements
    keep; if its own deadline is sooner than so sure a bound, the deadline alone is kept. safe: the nodes that
    it may go to, the one that was chosen first.
    """
    nodes, wish = [places.fleet.nodes[name] for name in safe], Request(job.workload)
    sets = _sure(places.sets(served, Standard(job.limit_confidence)), wish, nodes)
    (row,) = Placement(Fleet((nodes[0],)), sets).walltime([wish]).rows
    if row.bound_seconds is None:
        return None, job.row
    minutes = max(1, math.ceil(row.bound_seconds / 60.0))
    code = sets.platform_code[nodes[0].platform]
    deadline = float(sets.limits([request], np.array([code]))[0, 0])
    if deadline < row.bound_seconds:
        return minutes, job.row
    level = max(job.limit_confidence, job.confidence or 0.0)
    kept = {"deadline": f"{min(60.0 * minutes, deadline)!r}s", "confidence": level}
    return minutes, {"workload": job.workload, **kept}
