"""A service asked from Python: the library's verbs and types, answered elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jostle._base.confidence import DEFAULT_CONFIDENCE
from jostle._base.documents import Unanswered, from_document
from jostle._base.operation_names import load_verb
from jostle.errors import (
    BadData,
    BadRows,
    JostleError,
    NotEnoughRuns,
    NotPermitted,
    UsageError,
    needing_extras,
)
from jostle.operations import LimitAnswer, Predictions, PredictQuestion, Verb, served_options
from jostle.placement import Fleet, Requests, Standard
from jostle.server._client_verbs import ClientVerbs
from jostle.server.asking._fleet_queries import node_row, request_row
from jostle.server.operations import Operation

if TYPE_CHECKING:
    import ssl

    import numpy as np

    from jostle._base.progress import Progress
    from jostle.conformal import Bounds
    from jostle.data import Colocations
    from jostle.models import Timelines
    from jostle.usage import Peaks

_AT_ONCE = {"explain": 64}  # items in one request
_KINDS: dict[str, type[JostleError]] = {
    "UsageError": UsageError,
    "NoPlace": UsageError,
    "NotEnoughRuns": NotEnoughRuns,
}


class Client(ClientVerbs):
    """Answers of the service at `url`, such as http://127.0.0.1:8000.

    api_key: where the service asks for one. tls: trust in its certificate, and a certificate of one's own.
    timeout_seconds: for each request. transport: of httpx, for tests. Questions about a fleet are about the
    service's own unless one is given. Every call raises what the
    library raises, with its sentence, and NotPermitted where the service does not answer. model: version and
    data version behind the last answer.

    Verbs about where requests can go are those of a Placement, such as `rank(requests, least="cost")`; each
    takes a `fleet` and a `standard`, too. The rest are operations of the service, such as `fleet()`.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = 30.0,
        transport: Any = None,
    ) -> None:
        with needing_extras():
            import httpx
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        try:
            self._http = httpx.Client(
                base_url=url,
                headers=headers,
                timeout=timeout_seconds,
                transport=transport,
                verify=True if tls is None else tls,
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

    def predict(
        self, colocations: Colocations | Timelines, *, campaign: str | None = None
    ) -> np.ndarray:
        """Predict seconds (n,); NaN without an answer. campaign: as in `bound`. Raises BadRows for names that
        the model does not know."""
        question = PredictQuestion(throughout=True, campaign=campaign)
        return self._predictions(colocations, question).seconds

    def bound(
        self,
        colocations: Colocations | Timelines,
        confidence: float = DEFAULT_CONFIDENCE,
        *,
        campaign: str | None = None,
    ) -> Bounds:
        """Bound runtimes; each bound comes with its outcome. campaign: the one asked about, of the campaigns
        of the model's runs. Raises BadRows for names that the model has never met."""
        question = PredictQuestion(confidence, throughout=True, campaign=campaign)
        return self._predictions(colocations, question).bounds

    def _predictions(self, colocations: Any, question: PredictQuestion) -> Predictions:
        return self.ask(load_verb("model", "predict"), colocations, question)

    def ask(
        self,
        verb: Verb,
        items: Any,
        question: Any,
        progress: Progress | None = None,
        *,
        fleet: Any = None,
        standard: Standard | None = None,
    ) -> Any:
        """Ask the service what an operation answers. items: Colocations, or requests. fleet, standard:
        instead of the service's own."""
        values = vars(question)
        names = served_options(verb.question)
        body = {k: v for k, v in values.items() if k in names and v is not None}
        if verb.about == "model":
            return self._about_model(verb, items.to_columns(), body)
        rows = Requests.of(items)
        body |= {} if standard is None else vars(standard)
        body |= {} if fleet is None else {"fleet": [node_row(one) for one in Fleet.of(fleet).nodes]}
        answer = self._answer(verb, [request_row(row) for row in rows.good], body)
        # Rows that could not be read were not sent: they stand where they stood.
        left, listed = iter(answer.items), []
        for row, status, number in zip(rows.rows, rows.status, rows.numbers, strict=True):
            one = Unanswered(status, number) if row is None else next(left)
            listed.append(replace(one, row=number) if isinstance(one, Unanswered) else one)
        return replace(answer, items=tuple(listed))

    def _about_model(self, verb: Verb, columns: Any, body: dict[str, Any]) -> Any:
        most = _AT_ONCE.get(verb.name, 2000)
        sent = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        parts = range(0, max(len(sent), 1), most)
        answers = [self._answer(verb, sent[n : n + most], body) for n in parts]
        items = [one for answer in answers for one in answer.items]
        bad = [(n, one.error) for n, one in enumerate(items) if isinstance(one, Unanswered)]
        if bad:
            text = f"{len(bad)} of {len(items)} rows have no answer, first row {bad[0][0]}: {bad[0][1]}"
            raise BadRows(text, rows=bad[:20], where=self.url)
        return replace(answers[0], items=tuple(items))

    def _answer(self, verb: Verb, items: list[Any], body: dict[str, Any]) -> Any:
        document = self._call("POST", f"/v1/{verb.name}", {"items": items, **body})
        return self._read(verb.answer, document)

    def limit(
        self, peaks: Peaks, confidence: float = DEFAULT_CONFIDENCE, over: float | None = None
    ) -> LimitAnswer:
        """Ask what a run never exceeds, given runs that are sent with the question."""
        body = {"component": peaks.component, "confidence": confidence}
        body |= {} if over is None else {"over": over}
        return self._answer(load_verb("forecasts", "limit"), peaks.to_items(), body)

    def answers(self, operation: Operation, question: Any) -> list[Any]:
        """Ask an operation of the service, once for each request that the question takes. Returns the
        answers."""
        answers = []
        for values in question.sent():
            names = [name for name in values if f"{{{name}}}" in operation.path]
            parts = {name: quote(values.pop(name), safe="") for name in names}
            path = operation.path.format(**parts)
            document = self._call(operation.method, path, values or None)
            answers.append(self._read(operation.answer, document))
        return answers

    def _read(self, kind: Any, document: dict[str, Any]) -> Any:
        schema = document.get("schema")
        try:
            if schema == kind.schema:
                return from_document(kind, document)
        except (AttributeError, KeyError, TypeError, ValueError):
            pass
        raise NotPermitted(
            f"what it answers, {str(schema)[:80]!r}, cannot be read as {kind.schema!r}",
            where=self.url,
            fix="Have the same Jostle there as here.",
        )

    @property
    def is_ready(self) -> bool:
        """True if the service answers, with a calibrated model."""
        try:
            self._call("GET", "/readyz", None)
        except JostleError:
            return False
        return True

    def _call(self, method: str, path: str, values: Any) -> dict[str, Any]:
        sent = {} if values is None else {"params" if method == "GET" else "json": values}
        try:
            response = self._http.request(method, path, **sent)
        except ValueError as error:  # NaN, which JSON does not know
            raise UsageError(f"the question cannot be sent: {error}") from None
        except self._failed as error:
            why = str(error) or type(error).__name__
            raise NotPermitted(
                f"the service does not answer: {why}", where=self.url, fix="See that it runs."
            ) from None
        try:
            document = response.json()
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise NotPermitted(
                f"not an answer of a service: {response.text[:80]!r}",
                where=self.url,
                fix="See that a service of Jostle runs there.",
            )
        if response.status_code != 200:
            raise _error_of(document, response.status_code, self.url)
        if isinstance(label := document.get("model"), dict):
            self.model = dict(label)
        return document


def _error_of(problem: dict[str, Any], status: int, where: str) -> JostleError:
    """Turn a problem document into the error that the library would raise."""
    sentence = str(problem.get("detail") or f"the service answers with status {status}")
    kind = _KINDS.get(str(problem.get("error")), BadData)
    return (NotPermitted if status in (401, 403) or status >= 500 else kind)(sentence, where=where)
