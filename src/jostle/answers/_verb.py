"""A verb: a question, an answer, and a function from the one to the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from sys import modules
from typing import Any

from jostle._verbs import ABOUT, load_verb, verb_names
from jostle._verbs.documents import VerbAnswer
from jostle.progress import no_progress


@dataclass(frozen=True)
class Verb:
    """name: everywhere. about: `model` or `placement`. question, answer: dataclasses; a question has defaults
    for all that is optional. act: (model or placement, items, question, progress) -> answer, without
    items where the question says all. is_long: it may take seconds, so a service asks a process of its own.
    needs_items: whether it cannot be asked about none. also: further names of its HTTP operation."""

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
        """Whether it is asked about many co-locations or requests at once."""
        return len(signature(self.act).parameters) == 4

    @property
    def help(self) -> str:
        """What it is for."""
        return (self.question.__doc__ or "").strip()

    def asked(self, *arguments: Any, **options: Any) -> tuple[Any, Any]:
        """(items, question) of a call from Python: the items first, then the question's fields."""
        items: Any = ()
        if self.takes_items and arguments:
            items, arguments = arguments[0], arguments[1:]
        elif self.takes_items:
            items = options.pop("requests", ())
        return items, self.question(*arguments, **options)

    def of(self, subject: Any, *arguments: Any, **options: Any) -> Any:
        """What it answers about a model or a placement. The question: itself, or its fields."""
        items, rest = (arguments[0], arguments[1:]) if self.takes_items else ((), arguments)
        is_whole = bool(rest) and isinstance(rest[0], self.question)
        question = rest[0] if is_whole else self.question(*rest, **options)
        if hasattr(subject, "ask"):
            return subject.ask(self, items, question)
        return self(subject, items, question, no_progress)

    def __call__(self, subject: Any, items: Any, question: Any, progress: Any) -> Any:
        rest = (items, question) if self.takes_items else (question,)
        return self.act(subject, *rest, progress)


def verb(question: type, **marks: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Makes a function the verb of its name and of the folder that it lies in. marks: of a Verb."""

    def make(act: Callable[..., Any]) -> Verb:
        about = act.__module__.split(".")[-2]
        answer = vars(modules[act.__module__])[act.__annotations__["return"]]
        return Verb(act.__name__, about, question, answer, act, **marks)

    return make


def all_verbs(about: str | None = None) -> tuple[Verb, ...]:
    """Every verb, of a model first."""
    kinds = ABOUT if about is None else (about,)
    return tuple(load_verb(kind, name) for kind in kinds for name in verb_names(kind))
