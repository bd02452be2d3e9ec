"""Verbs by their files: what may be asked of a model, of a placement or of traced runs. None is imported.

A verb is a file in `operations/model`, `placement` or `forecasts` with an object of its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import MethodType
from typing import Any, TypeVar

ABOUT = ("model", "placement", "forecasts")
_FOLDER = Path(__file__).parents[1] / "operations"
_T = TypeVar("_T", bound=type)


@cache
def verb_names(about: str) -> tuple[str, ...]:
    """List the operations about a `model`, a `placement` or `forecasts`, sorted, without importing them."""
    names = (module.name for module in iter_modules([str(_FOLDER / about)]))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_verb(about: str, name: str) -> Any:
    """Import the operation of this name. Returns its Verb."""
    return getattr(import_module(f"jostle.operations.{about}.{name}"), name)


def answers_verbs(
    about: str, names: Iterable[str] | None = None, extra: tuple[str, ...] = ()
) -> Callable[[_T], _T]:
    """Give a class each of these verbs as a method, which hands the verb's question to the object's own
    `ask(verb, items, question, progress)`. A stub beside the class says their types.

    names: some of the verbs. extra: options that are no part of the question, which `ask` takes by name.
    """

    def give(kind: _T) -> _T:
        for name in verb_names(about) if names is None else names:
            setattr(kind, name, _VerbMethod(about, name, extra))
        return kind

    return give


class _VerbMethod:
    """A method with the parameters and the help of a verb's question, which is imported at the first look."""

    def __init__(self, about: str, name: str, extra: tuple[str, ...]) -> None:
        self.about, self.name, self.extra = about, name, extra

    def __get__(self, subject: Any, kind: type | None = None) -> Callable[..., Any]:
        return self._function if subject is None else MethodType(self._function, subject)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        verb = load_verb(self.about, self.name)

        def method(subject: Any, *arguments: Any, **options: Any) -> Any:
            more = {key: options.pop(key) for key in self.extra if key in options}
            return verb.of(subject, *arguments, about=more, **options)

        signed: Any = method
        signed.__name__, signed.__doc__ = self.name, verb.documentation
        signed.__signature__ = verb.signature(self.extra)
        return method
