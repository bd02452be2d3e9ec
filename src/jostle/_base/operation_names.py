"""Verbs by their files: what may be asked of a model, of a placement or of traced runs. None is imported.

A verb is a file in `operations/model`, `placement` or `forecasts` with an object of its own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar

ABOUT = ("model", "placement", "forecasts")
_FOLDER = Path(__file__).parents[1] / "operations"
_T = TypeVar("_T", bound=type)


@cache
def verb_names(about: str) -> tuple[str, ...]:
    """The verbs about a `model`, a `placement` or `forecasts`, sorted. Nothing is imported for it."""
    names = (module.name for module in iter_modules([str(_FOLDER / about)]))
    return tuple(sorted(name for name in names if not name.startswith("_")))


def load_verb(about: str, name: str) -> Any:
    """The Verb of this name, imported."""
    return getattr(import_module(f"jostle.operations.{about}.{name}"), name)


def answers_verbs(
    about: str, names: Iterable[str] | None = None, extra: tuple[str, ...] = ()
) -> Callable[[_T], _T]:
    """Gives a class each of these verbs as a method: `method(*arguments, progress=..., **options)` makes the
    verb's question and hands it to the object's own `ask(verb, items, question, progress)`.

    names: some of the verbs. extra: options that are no part of the question, which `ask` takes by name.
    """

    def give(kind: _T) -> _T:
        for name in verb_names(about) if names is None else names:
            setattr(kind, name, _method(about, name, extra))
        return kind

    return give


def _method(about: str, name: str, extra: tuple[str, ...]) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **options: Any) -> Any:
        more = {key: options.pop(key) for key in extra if key in options}
        return load_verb(about, name).of(self, *arguments, about=more, **options)

    method.__name__ = name
    method.__doc__ = f"See jostle.operations.{about}.{name}."
    return method
