"""A route of the service that answers an operation: its question, its answer and its function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from sys import modules
from typing import TYPE_CHECKING, Any

from jostle._base.documents import AnswerDocument, shortened
from jostle._base.option_fields import REQUIRED
from jostle.errors import UsageError
from jostle.operations import question_of, question_schema, served_options

if TYPE_CHECKING:
    from jostle.server.http._running_service import Serving

LONGEST_ID = 253
OPERATIONS: dict[str, Operation] = {}


class Question:
    """Base class of questions whose fields are the keys of a body, of a query, or names in a path."""

    @classmethod
    def of(cls, *arguments: Any, **options: Any) -> Any:
        """Make the question as a client's method is called. Raises UsageError."""
        return cls(*arguments, **options)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Any:
        """Make the question from the values of a request. Raises UsageError."""
        return question_of(cls, values)

    @classmethod
    def schema(cls) -> tuple[list[str], dict[str, Any]]:
        """Return (fields without which nothing can be answered, {field: JSON schema})."""
        options = served_options(cls).values()
        return [one.name for one in options if one.default is REQUIRED], question_schema(cls)

    def sent(self) -> list[dict[str, Any]]:
        """List the values of each request that a client makes of the question."""
        return [{name: value for name, value in vars(self).items() if value is not None}]


@dataclass(frozen=True)
class Nothing(Question):
    """Question without fields."""


@dataclass(frozen=True, kw_only=True)
class StateAnswer(AnswerDocument):
    """Base class of answers about the service's state. model: filled in by the operation."""

    model: dict[str, Any] | None = None

    def __init_subclass__(cls, schema: str = "", **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.schema = schema


@dataclass(frozen=True)
class Operation:
    """An operation on the service's state. act: (service, question) -> answer. result: what the client's
    method gives of the answers, one for each request that the question takes."""

    method: str
    path: str
    question: type[Question]
    answer: type[AnswerDocument]
    act: Callable[[Serving, Any], Awaitable[Any]]
    result: Callable[[Sequence[Any]], Any]

    async def __call__(self, service: Serving, question: Any) -> AnswerDocument:
        """Answer the question, and name the model of that moment. Raises what `act` raises."""
        served = service.folder.served
        answer = await self.act(service, question)
        return answer if answer.model or served is None else replace(answer, model=served.label)


def operation(
    method: str, path: str, question: type[Question], result: Callable[[Sequence[Any]], Any]
) -> Callable[[Any], Any]:
    """Make a function an operation under its own name."""

    def make(act: Any) -> Any:
        answer = vars(modules[act.__module__])[act.__annotations__["return"]]
        made = Operation(method, path, question, answer, act, result)
        return OPERATIONS.setdefault(act.__name__, made)

    return make


def checked_id(value: str) -> str:
    """Raises UsageError."""
    # What was not UTF-8 came as the same replacement character, whatever it was.
    if not 0 < len(value) <= LONGEST_ID or {"\0", "\ufffd"} & set(value):
        fix = f"Give 1 to {LONGEST_ID} characters of UTF-8."
        raise UsageError(f"the id {shortened(repr(value), 80)} is not a name", fix=fix)
    return value
