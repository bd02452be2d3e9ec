"""A service asked from Python: the library's verbs and types, answered elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._verbs import answers_verbs, load_verb
from jostle._verbs.documents import Unanswered, from_document
from jostle.answers import (
    ExplainQuestion,
    Explanations,
    LimitAnswer,
    Predictions,
    PredictQuestion,
    Verb,
    served_options,
    served_verbs,
)
from jostle.errors import BadRows, JostleError, MissingExtra, NotPermitted, UsageError
from jostle.placement import Fleet, Request, Requests, Standard
from jostle.service._documents import error_of, fleet_rows, request_row

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from jostle.bounds import Bounds
    from jostle.bridge import Peaks
    from jostle.models import Drift
    from jostle.progress import Progress
    from jostle.runs import Colocations, Runs

_SERVED = tuple(verb.name for verb in served_verbs("placement"))
_AT_ONCE = 2000  # items in one request


@answers_verbs("placement", _SERVED, extra=("fleet", "standard"))
class Client:
    """Answers of the service at `url`, such as http://127.0.0.1:8000.

    api_key: where the service asks for one. timeout_seconds: for each request. transport: of httpx, for
    tests. Questions about a fleet are about the service's own unless one is given. Every call raises what the
    library raises, with its sentence, and NotPermitted where the service does not answer. model: version and
    data version behind the last answer.

    Verbs about where requests can go are those of jostle.answers.placement, such as `rank(requests,
    by="cost", fleet=..., standard=...)`.
    """

    if TYPE_CHECKING:

        def __getattr__(self, verb: str) -> Callable[..., Any]: ...

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 30.0,
        transport: Any = None,
    ) -> None:
        try:
            import httpx
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "service") from None
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout_seconds, transport=transport
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise UsageError(f"{url!r} is not an address: {error}") from None
        self._failed: Any = (httpx.HTTPError, httpx.InvalidURL)
        self.url, self.model = url, {}

    model: dict[str, str]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # What a model says

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds, NaN where there is no answer. Raises BadRows for names the model has never met."""
        return self._predictions(colocations, DEFAULT_CONFIDENCE).seconds

    def bound(self, colocations: Colocations, confidence: float = DEFAULT_CONFIDENCE) -> Bounds:
        """Upper bounds, each with its outcome. Raises BadRows for names that the model has never met."""
        return self._predictions(colocations, confidence).bounds

    def explain(
        self,
        colocations: Colocations,
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        full: bool = False,
    ) -> Explanations:
        """Of each: what its prediction rests on. full: all that the method itself knows of it."""
        question = ExplainQuestion(confidence, full=full)
        return self._about(load_verb("model", "explain"), colocations, question, 64)

    def _predictions(self, colocations: Colocations, confidence: float) -> Predictions:
        question = PredictQuestion(confidence)
        return self._about(load_verb("model", "predict"), colocations, question, _AT_ONCE)

    def _about(self, verb: Verb, colocations: Colocations, question: Any, most: int) -> Any:
        """What a verb about a model answers, in requests of at most so many items."""
        columns = colocations.to_columns()
        names = ("workload", "platform", "corunners")
        rows = zip(*(columns[name] for name in names), strict=True)
        items = [dict(zip(names, row, strict=True)) for row in rows]
        values = {name: getattr(question, name) for name in served_options(verb.question)}
        answers = [
            from_document(
                verb.answer,
                self._call("POST", f"/v1/{verb.name}", {"items": items[n : n + most], **values}),
            )
            for n in range(0, max(len(items), 1), most)
        ]
        items = [one for answer in answers for one in answer.items]
        bad = [(n, one.error) for n, one in enumerate(items) if isinstance(one, Unanswered)]
        if bad:
            text = f"{len(bad)} of {len(items)} rows have no answer, first row {bad[0][0]}: {bad[0][1]}"
            raise BadRows(text, rows=bad[:20], where=self.url)
        return replace(answers[0], items=tuple(items))

    # Where requests can go

    def ask(
        self,
        verb: Verb,
        requests: Any,
        question: Any,
        progress: Progress | None = None,
        *,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Any:
        """What a verb about a placement answers. fleet, standard: instead of the service's own."""
        rows = Requests.of(requests)
        body: dict[str, Any] = {"items": [request_row(row) for row in rows.good]}
        body |= {} if standard is None else vars(standard)
        body |= {} if fleet is None else {"fleet": fleet_rows(Fleet.of(fleet))}
        values = question.sent() if hasattr(question, "sent") else vars(question)
        body |= {name: value for name, value in values.items() if value is not None}
        answer = from_document(verb.answer, self._call("POST", f"/v1/{verb.name}", body))
        if len(rows.good) == len(rows):
            return answer
        # Rows that could not be read were not sent: they stand where they stood.
        left, items = iter(answer.items), []
        for row, status, number in zip(rows.rows, rows.status, rows.numbers, strict=True):
            one = Unanswered(status, number) if row is None else next(left)
            items.append(replace(one, row=number) if isinstance(one, Unanswered) else one)
        return replace(answer, items=tuple(items))

    # What recorded runs say

    def limit(
        self, peaks: Peaks, confidence: float = DEFAULT_CONFIDENCE, over: float | None = None
    ) -> LimitAnswer:
        """What a run never exceeds, of runs that are sent with the question."""
        body = {"items": peaks.to_items(), "component": peaks.component, "confidence": confidence}
        body |= {} if over is None else {"over": over}
        return from_document(LimitAnswer, self._call("POST", "/v1/limit", body))

    # What changes

    def add_runs(self, runs: Runs) -> list[str]:
        """Store observed runs under their run_ids; of each `stored`, `already_stored`, `conflict` or `error`.

        On the disk of the service when this returns. Again does no harm.
        """
        statuses: list[str] = []
        names = ["workload", "platform", "corunners", "runtime_seconds", "measured_at", "window_id"]
        table = runs.table.select(["run_id", *names]).rename_columns(["id", *names])
        items = [
            {
                key: value.isoformat() if key == "measured_at" else value
                for key, value in row.items()
                if value is not None
            }
            for row in table.to_pylist()
        ]
        for start in range(0, len(items), _AT_ONCE):
            answer = self._call("POST", "/v1/runs", {"items": items[start : start + _AT_ONCE]})
            statuses += [one["status"] for one in answer["items"]]
        return statuses

    def drifts(self) -> list[Drift]:
        """What drifts, as the observed runs tell that came since the model answers."""
        from jostle.models import Drift

        return [Drift(**one) for one in self._call("GET", "/v1/drift", None)["drifts"]]

    def put_placement(
        self,
        id: str,
        request: Request | str,
        node: str,
        *,
        ttl_seconds: float | None = None,
        require: str = "slot",
    ) -> float:
        """Say that it runs on the node, or move or renew it; until when, in seconds since 1970.

        request: a Request, or text such as fft@1.5x. require: `slot`, `safe` or `nothing`. Raises UsageError
        where the node does not take it.
        """
        try:
            row = Request.of_text(request) if isinstance(request, str) else request
        except ValueError as error:
            raise UsageError(str(error)) from None
        body = {**request_row(row), "node": node, "require": require}
        body.pop("name", None)
        if ttl_seconds is not None:
            body["ttl_seconds"] = ttl_seconds
        answer = self._call("PUT", f"/v1/placements/{quote(id, safe='')}", body)
        return float(answer["expires_at"])

    def delete_placement(self, id: str) -> bool:
        """Say that it runs no more; whether it was there."""
        answer = self._call("DELETE", f"/v1/placements/{quote(id, safe='')}", None)
        return answer["status"] == "removed"

    # What is there

    def fleet(self) -> Fleet:
        """The service's fleet as it is now, with its tenants."""
        nodes = self._call("GET", "/v1/fleet", None)["nodes"]
        return from_document(Fleet, {"nodes": nodes})

    def models(self) -> list[dict[str, Any]]:
        """What is served: versions, names, and what bounds rest on."""
        return self._call("GET", "/v1/models", None)["models"]

    @property
    def is_ready(self) -> bool:
        """Whether the service answers, with a calibrated model."""
        try:
            self._call("GET", "/readyz", None)
        except JostleError:
            return False
        return True

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        try:
            response = self._http.request(method, path, **({} if body is None else {"json": body}))
        except ValueError as error:  # NaN, which JSON does not know
            raise UsageError(f"the question cannot be sent: {error}") from None
        except self._failed as error:
            why = str(error) or type(error).__name__
            raise NotPermitted(
                f"the service does not answer: {why}", where=self.url, fix="See that it runs."
            ) from None
        try:
            document = response.json()
        except ValueError:
            raise NotPermitted(
                f"not an answer of a service: {response.text[:80]!r}", where=self.url
            ) from None
        if response.status_code != 200:
            raise error_of(document, response.status_code, self.url)
        if label := document.get("model"):
            self.model = dict(label)
        return document
