"""Methods by name, Jostle's own and those of other packages alike: entry points of one group."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from jostle._base.option_fields import options_of
from jostle._base.plugins import load, names_of
from jostle.errors import UnknownName, UsageError
from jostle.learn.contract._method_contract import Method

if TYPE_CHECKING:
    import numpy as np

GROUP = "jostle.methods"
METHOD_PARTS = ("name", "needs", "prepare", "fit", "restore")
DEFAULT_METHOD = "ensemble"  # what is fitted where no method is named, in every door


def method_names() -> tuple[str, ...]:
    """List the names of all installed methods, sorted."""
    return names_of(GROUP)


def method_named(name: str) -> type[Any]:
    """Find the settings class of a method.

    Raises UsageError for a name that no installed package brings, and for an entry point that does not
    load or is no method.
    """
    try:
        method = load(GROUP, name)
    except UnknownName as error:
        raise UsageError(
            error.what, fix=f"Known: {', '.join(method_names())}; others come with their package."
        ) from None
    missing = [part for part in METHOD_PARTS if part not in dir(method)]
    if missing:
        raise UsageError(
            f"the method {name!r} has no {missing[0]!r}: it does not obey the contract"
        )
    return method


def as_fitted(kind: Any, settings: Mapping[str, Any]) -> Any:
    """Make a method of this class with the settings that a saved model has of it."""
    many = {option.name for option in options_of(kind) if option.is_many}
    given = {
        name: tuple(value) if name in many and value is not None else value
        for name, value in settings.items()
    }
    return kind(**given)


def method_of(method: Any = None) -> Method[Any]:
    """Make a method a value object: given as such, as a class, or by name; the usual one for None.

    Raises UsageError for a name that no installed package brings, and for what is no method.
    """
    if method is None or isinstance(method, str):
        method = method_named(DEFAULT_METHOD if method is None else method)
    if isinstance(method, type):
        method = method()
    if not all(hasattr(method, part) for part in ("prepare", "fit")):
        raise UsageError(
            f"a method cannot be a {type(method).__name__}",
            fix=f"Give a name ({', '.join(method_names())}), or a value such as Factorization().",
        )
    return method


class Restores:
    """Gives a method its `restore`. fitted: the dataclass that it fits, as `module:class`, imported when a
    model is loaded."""

    fitted: ClassVar[str]

    @classmethod
    def restore(cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> Any:
        """Restore what to_arrays gave."""
        module, _, name = cls.fitted.partition(":")
        return getattr(import_module(module), name).from_arrays(arrays, document)
