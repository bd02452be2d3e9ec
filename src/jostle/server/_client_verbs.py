"""What a client asks of a service, as methods; the stub beside this says their types."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from jostle._base.operation_names import answers_verbs
from jostle.operations import served_verbs
from jostle.server.operations import OPERATIONS, Operation


def _method(name: str, operation: Operation) -> Callable[..., Any]:
    """Make an operation of the service a method with the parameters of its question."""

    def call(client: Any, *arguments: Any, **options: Any) -> Any:
        question = operation.question.of(*arguments, **options)
        return operation.result(client.answers(operation, question))

    signed: Any = call
    signed.__name__, signed.__doc__ = name, operation.act.__doc__
    is_own = "of" in vars(operation.question)
    made_by = operation.question.of if is_own else operation.question
    parameters = signature(made_by).parameters.values()
    itself = Parameter("self", Parameter.POSITIONAL_ONLY)
    signed.__signature__ = Signature([itself, *parameters])
    return call


def _with_operations(kind: type[ClientVerbs]) -> type[ClientVerbs]:
    """Give the class every operation of a service as a method."""
    for name, operation in OPERATIONS.items():
        setattr(kind, name, _method(name, operation))
    return kind


@_with_operations
@answers_verbs("placement", [v.name for v in served_verbs("placement")], ("fleet", "standard"))
@answers_verbs("model", ("explain",))
class ClientVerbs:
    """Methods of a client that ask a service every operation, by the object's own `ask` and `answers`."""
