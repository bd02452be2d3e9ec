"""Questions as JSON: the fields of a question that a service takes, checked one by one, and their schema.

Fields that are paths are not taken: files are asked about where they lie.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle._base.option_fields import REQUIRED, Limits, Option, options_of
from jostle.errors import UsageError
from jostle.operations._operation import Verb, all_verbs

_LARGEST = 2**31 - 1
_LONGEST_SECONDS = 1e9
_TEXT = {"type": "string"}


@dataclass(frozen=True)
class Local:
    """Marks a field that a service does not take."""


def served_verbs(about: str) -> tuple[Verb, ...]:
    """List the operations that can be asked over HTTP: those whose question names no file."""
    return tuple(
        verb
        for verb in all_verbs(about)
        if not any(o.kind is Path and o.default is REQUIRED for o in options_of(verb.question))
    )


def served_options(question: type) -> dict[str, Option]:
    """List the fields of a question that can be sent over HTTP, by name."""
    return {
        one.name: one
        for one in options_of(question)
        if one.kind is not Path and Local() not in one.marks
    }


def question_of(kind: type, values: Mapping[str, Any]) -> Any:
    """Make the question from values as they came out of JSON; null is the default. Raises UsageError, also
    for a key that means nothing here: it must have been meant for something."""
    options = served_options(kind)
    if odd := sorted(values.keys() - options):
        known = ", ".join(sorted(options))
        raise UsageError(f"unknown key {odd[0][:100]!r}", fix=f"Known: {known}.")
    rest = {name: value for name, value in values.items() if value is not None}
    for one in options.values():
        if one.default is REQUIRED and one.name not in rest:
            raise UsageError(f"`{one.name}` is missing", fix=one.help)
    return kind(**{name: _checked(options[name], value) for name, value in rest.items()})


def question_schema(kind: type) -> dict[str, Any]:
    """Describe each field of a question by its JSON schema."""
    return {name: _schema(one) for name, one in served_options(kind).items()}


def _checked(option: Option, value: Any) -> Any:
    name = option.name
    if option.is_many:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise UsageError(f"`{name}` is neither a name nor a list of names")
        return tuple(names)
    if option.is_mapping:
        texts = isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
        if not texts or not all(value.values()) or "" in value:
            raise UsageError(f"`{name}` is not an object of names")
        return value
    if option.kind is bool:
        if not isinstance(value, bool):
            raise UsageError(f"`{name}` is neither true nor false")
        return value
    if option.kind is str:
        if not isinstance(value, str):
            raise UsageError(f"`{name}` is not a text")
        if option.choices and value not in option.choices:
            raise UsageError(f"`{name}` is not one of {', '.join(option.choices)}")
        return value
    return _number(option, value)


def _number(option: Option, value: Any) -> float | int:
    least, most, above = _limits(option)
    if isinstance(value, float) and option.kind is int and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"`{option.name}` is not a number")
    if option.kind is int and not isinstance(value, int):
        raise UsageError(f"`{option.name}` is not a whole number")
    if not least <= value <= most or value == above:
        side = "from" if above is None else "above"
        raise UsageError(f"`{option.name}` is {value:g}, not {side} {least:g} to {most:g}")
    return option.kind(value)


def _limits(option: Option) -> tuple[float, float, float | None]:
    """Return (least, most, what the value has to be above) of an option; the last is None without such a
    limit."""
    marks = next((mark for mark in option.marks if isinstance(mark, Limits)), Limits())
    largest = _LARGEST if option.kind is int else _LONGEST_SECONDS
    least = marks.above or 0 if marks.least is None else marks.least
    return least, largest if marks.most is None else marks.most, marks.above


def _schema(option: Option) -> dict[str, Any]:
    kind: dict[str, Any]
    if option.is_many:
        kind = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
    elif option.choices:
        kind = {"enum": list(option.choices)}
    elif option.is_mapping:
        kind = {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}
    elif option.kind in (int, float):
        least, most, above = _limits(option)
        name = "integer" if option.kind is int else "number"
        lower = "minimum" if above is None else "exclusiveMinimum"
        kind = {"type": name, lower: least, "maximum": most}
    else:
        kind = {"type": "boolean"} if option.kind is bool else _TEXT
    if option.default is not REQUIRED:
        kind = {"anyOf": [kind, {"type": "null"}]}
    return {**kind, "description": option.help} if option.help else kind
