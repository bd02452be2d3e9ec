"""The fields of a settings dataclass as options: names, types, defaults, and what each means.

A field says what it means in its annotation, `rank: Annotated[int, "Width of the embeddings."] = 128`, so
that commands, documentation and saved models all read the same sentence.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jostle.errors import UsageError

REQUIRED: Any = dataclasses.MISSING


@dataclass(frozen=True)
class Positional:
    """Marks a field that a command takes by its place: Annotated[Path, "The dataset.", Positional()].

    metavar: what stands for it in the help; by default its name.
    """

    metavar: str | None = None


@dataclass(frozen=True)
class Short:
    """Marks a field that a command also takes by one letter: Short("-o")."""

    flag: str


# A field of what is asked about one bound.
Confidence = typing.Annotated[float, "How sure the bound is, under 1.", Short("-c")]
Throughout = typing.Annotated[
    bool,
    "These co-runners to the end.  [default: on a model of a log they end in their turn, and others come as "
    "lately seen]",
]


@dataclass(frozen=True)
class Flag:
    """Marks a field whose option is not called as the field is: Flag("--budget"), Flag("--on/--off")."""

    flag: str


@dataclass(frozen=True)
class NoOption:
    """Marks a field that is set in Python, or in a file of settings: commands have no option for it."""


@dataclass(frozen=True)
class Limits:
    """Marks the least and the most that a number may be. above: what it has to be more than."""

    least: float | None = None
    most: float | None = None
    above: float | None = None

    def wanted_instead(self, value: float) -> str:
        """Say in words what a value outside the limits has to be; empty for a good one."""
        if not math.isfinite(value):
            return "a finite number"
        if self.least is not None and value < self.least:
            return f"at least {self.least:g}"
        if self.above is not None and value <= self.above:
            return f"above {self.above:g}"
        return f"at most {self.most:g}" if self.most is not None and value > self.most else ""


@dataclass(frozen=True)
class OneOf:
    """Marks the values that a text may have."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Option:
    """Describe one field of a record of settings. kind: its type without `None`; of a tuple or a mapping,
    that of its members or values.

    default: REQUIRED where it has none. is_many, is_mapping: whether it takes several values, or values by
    names. is_optional: whether None is a value. choices: the values of a Literal or OneOf, else none. marks:
    further annotations.
    """

    name: str
    kind: type
    default: Any
    help: str
    is_many: bool = False
    is_optional: bool = False
    choices: tuple[str, ...] = ()
    marks: tuple[Any, ...] = ()
    is_mapping: bool = False


@lru_cache(maxsize=256)
def options_of(settings: type) -> tuple[Option, ...]:
    """List the fields of a dataclass that its constructor takes, in their order, as options.

    Raises TypeError for a field with a help sentence and a type that no option can have.
    """
    hints = typing.get_type_hints(settings, include_extras=True)
    return tuple(
        _option(field, hints[field.name]) for field in dataclasses.fields(settings) if field.init
    )


def settings_from(settings: type, values: Mapping[str, Any]) -> Any:
    """Make settings with these values, and the defaults elsewhere.

    Raises UsageError for a value that is not a field, naming those that are.
    """
    known = [option.name for option in options_of(settings)]
    odd = sorted(set(values) - set(known))
    if odd:
        raise UsageError(
            f"{settings.__name__} has no option {odd[0]!r}", fix=f"It has {', '.join(known)}."
        )
    return settings(**values)


def settings_of_texts(settings: type, texts: Sequence[str]) -> Any:
    """Make settings from texts NAME=VALUE; several values are separated by commas.

    Raises UsageError for a name or value that the settings do not have.
    """
    known = {option.name: option for option in options_of(settings)}
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UsageError(f"the setting {text!r} is not NAME=VALUE")
        values[name] = _of_text(known[name], value.strip()) if name in known else value
    made = settings_from(settings, values)
    check_settings(made)
    return made


def _of_text(option: Option, text: str) -> Any:
    if option.is_optional and text.lower() == "none":
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()] if option.is_many else [text]
    try:
        if option.kind is bool:
            read = [{"true": True, "false": False}[part.lower()] for part in parts]
        else:
            read = [option.kind(part) for part in parts]
    except (KeyError, ValueError):
        wanted = f"It is a {option.kind.__name__}."
        raise UsageError(f"{option.name} cannot be {text!r}", fix=wanted) from None
    return tuple(read) if option.is_many else read[0]


def check_settings(settings: Any) -> None:
    """Raises UsageError for a field outside of its Limits, or that is none of its choices."""
    for option in options_of(type(settings)):
        value = getattr(settings, option.name)
        given = () if value is None else value if isinstance(value, tuple | list) else (value,)
        limits = next((mark for mark in option.marks if isinstance(mark, Limits)), None)
        for one in given:
            if option.choices and one not in option.choices:
                fix = f"One of {', '.join(option.choices)}."
                raise UsageError(f"`{option.name}` is {one!r}, which is not known", fix=fix)
            if limits is not None and (wanted := limits.wanted_instead(one)):
                raise UsageError(f"`{option.name}` is {one}, not {wanted}")


def _option(field: dataclasses.Field[Any], hint: Any) -> Option:
    marks: tuple[Any, ...] = ()
    if typing.get_origin(hint) is typing.Annotated:
        hint, marks = typing.get_args(hint)[0], typing.get_args(hint)[1:]
    text = next((mark for mark in marks if isinstance(mark, str)), "")
    optional = many = False
    choices: tuple[str, ...] = ()
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [part for part in typing.get_args(hint) if part is not type(None)]
        optional = len(rest) < len(typing.get_args(hint))
        several = [part for part in rest if typing.get_origin(part) in (tuple, Sequence)]
        hint = several[0] if several else rest[0] if len(rest) == 1 else str
    is_mapping = typing.get_origin(hint) is Mapping
    if is_mapping:
        hint = typing.get_args(hint)[1]
    if typing.get_origin(hint) in (tuple, Sequence):
        many, hint = True, typing.get_args(hint)[0]
    if typing.get_origin(hint) is typing.Literal:
        choices, hint = typing.get_args(hint), str
    if not isinstance(hint, type) and text:
        raise TypeError(f"the field {field.name!r} has a type that no option can have: {hint!r}")
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    others = tuple(mark for mark in marks if not isinstance(mark, str))
    choices = next((mark.values for mark in marks if isinstance(mark, OneOf)), choices)
    kind = hint if isinstance(hint, type) else object
    return Option(field.name, kind, default, text, many, optional, choices, others, is_mapping)
