"""A verb: a question, an answer, and a function from the one to the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc, signature
from sys import modules
from typing import Any

from jostle._base.documents import VerbAnswer
from jostle._base.operation_names import ABOUT, load_verb, verb_names
from jostle._base.option_fields import options_of
from jostle._base.progress import Progress, no_progress


@dataclass(frozen=True)
class Verb:
    """An operation: question, answer and the function between. name: everywhere. about: `model`, `placement`
    or `forecasts`. question, answer: dataclasses; a question has defaults for all that is optional. act:
    (subject, items, question, progress) -> answer, without items where the question says all. is_long: it may
    take seconds, so a service asks a process of its own. needs_items: whether it cannot be asked about none.
    also: further names of its HTTP operation."""

    name: str
    about: str
    question: type
    answer: type[VerbAnswer]
    act: Callable[..., Any]
    is_long: bool = False
    needs_items: bool = True
    also: tuple[str, ...] = ()

    @property
    def takes_items(self) -> bool:
        """True if it is asked about many co-locations or requests at once."""
        return len(signature(self.act).parameters) == 4

    @property
    def help(self) -> str:
        """The help text of the operation."""
        return cleandoc(self.question.__doc__ or "")

    @property
    def items_name(self) -> str | None:
        """The parameter name of the items; None if the question says all."""
        return list(signature(self.act).parameters)[1] if self.takes_items else None

    def signature(self, extra: Sequence[str] = ()) -> Signature:
        """Describe the parameters of `of` as a method has them. extra: further ones, given by name."""
        first = [] if self.items_name is None else [self.items_name]
        empty = Parameter.empty if self.needs_items else ()
        parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
        parameters += [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=empty) for n in first]
        fields = signature(self.question).parameters.values()
        parameters += [one.replace(annotation=Parameter.empty) for one in fields]
        named = {"progress": no_progress} | dict.fromkeys(extra)
        parameters += [Parameter(n, Parameter.KEYWORD_ONLY, default=d) for n, d in named.items()]
        return Signature(parameters, return_annotation=self.answer)

    @property
    def documentation(self) -> str:
        """The help, and a line for each field of the question that has a sentence."""
        fields = [f"{one.name}\n    {one.help}" for one in options_of(self.question) if one.help]
        head = ["Parameters\n----------"] if fields else []
        return "\n\n".join([self.help, "\n".join([*head, *fields])]).strip()

    def of(
        self,
        subject: Any,
        *arguments: Any,
        progress: Progress = no_progress,
        about: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Ask the operation about a model or a placement: the items first, then the question or its fields.

        about: what the subject's own `ask` takes besides.
        """
        items: Any = ()
        if self.takes_items:
            items, arguments = (
                (arguments[0], arguments[1:])
                if arguments
                else (options.pop(self.items_name or "", ()), arguments)
            )
        is_whole = bool(arguments) and isinstance(arguments[0], self.question)
        question = arguments[0] if is_whole else self.question(*arguments, **options)
        ask = getattr(subject, "ask", None)
        if ask is None:
            return self(subject, items, question, progress)
        return ask(self, items, question, progress, **(about or {}))

    def __call__(self, subject: Any, items: Any, question: Any, progress: Any) -> Any:
        rest = (items, question) if self.takes_items else (question,)
        return self.act(subject, *rest, progress)


def verb(question: type, **marks: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function the verb of its name and of the folder that it lies in. marks: of a Verb."""

    def make(act: Callable[..., Any]) -> Verb:
        about = act.__module__.split(".")[-2]
        answer = vars(modules[act.__module__])[act.__annotations__["return"]]
        return Verb(act.__name__, about, question, answer, act, **marks)

    return make


def all_verbs(about: str | None = None) -> tuple[Verb, ...]:
    """List every operation, those about a model first. about: `model`, `placement` or `forecasts`; None for
    all."""
    kinds = ABOUT if about is None else (about,)
    return tuple(load_verb(kind, name) for kind in kinds for name in verb_names(kind))
