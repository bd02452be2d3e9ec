"""Commands made from settings: every field of a frozen dataclass is an option, its help the field's own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Optional

import typer

from jostle._options import REQUIRED, Flag, Limits, Option, Positional, Short, options_of
from jostle.cli.console._fields import named_values
from jostle.errors import JostleError


def command_of(
    settings: type | tuple[type, ...], act: Callable[..., Any], text: str | None = None
) -> Callable[..., Any]:
    """A function for typer: `act(settings(...))`.

    settings: a frozen dataclass whose fields become options, or several, of which `act` takes one each; a
    field that two of them have is one option. text: the help, by default the docstring of the first.
    """
    records = settings if isinstance(settings, tuple) else (settings,)
    fields = {record: options_of(record) for record in records}
    own = {option.name: _parameter(option) for known in fields.values() for option in known}
    flags = {option.name: _spelling(option) for known in fields.values() for option in known}

    def command(**values: Any) -> Any:
        try:
            made = [
                record(**{option.name: _value(option, values[option.name]) for option in known})
                for record, known in fields.items()
            ]
            return act(*made)
        except JostleError as error:
            for part in ("what", "fix"):
                setattr(error, part, _with_flags(getattr(error, part), flags))
            raise

    # A line of the help is as wide as the terminal, not as the source: only paragraphs are kept.
    text = inspect.cleandoc(text or inspect.getdoc(records[0]) or "")
    command.__doc__ = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    # Required ones first: Python wants it so, and the order of options means nothing to the command line.
    parameters = sorted(own.values(), key=lambda p: p.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _parameter(option: Option) -> inspect.Parameter:
    is_mapping = option.kind is dict  # NAME=VALUE, repeated
    is_many = option.is_many or is_mapping
    kind: Any = list[str if is_mapping else option.kind] if is_many else option.kind
    required = option.default is REQUIRED
    if option.is_optional or (is_many and not required and not option.default):
        kind = Optional[kind]  # noqa: UP045 (made at run time)
    default: Any = option.default
    if is_many and not required:
        default = list(option.default) if option.default else None
    given: dict[str, Any] = {"help": option.help}
    if limits := _mark(option, Limits):
        given |= {"min": limits.least, "max": limits.most}
    if option.choices:
        choices = tuple(option.choices)
        given |= {"parser": _one_of(choices), "metavar": "|".join(choices)}
        given |= {"autocompletion": lambda: list(choices)}
    if place := _mark(option, Positional):
        annotation = Annotated[kind, typer.Argument(**{"metavar": place.metavar, **given})]
    else:
        annotation = Annotated[kind, typer.Option(*_flags(option), **given)]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=annotation,
    )


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Takes one of these words. typer's own kinds of parameters moved between its versions."""

    def choice(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return choice


def _flags(option: Option) -> list[str]:
    flag, short = _mark(option, Flag), _mark(option, Short)
    if flag is not None:
        name = flag.flag
    else:
        name = "--" + option.name.rstrip("_").replace("_", "-")
        if option.kind is bool and option.default:
            name = f"{name}/--no-{name[2:]}"
    return [name, short.flag] if short is not None else [name]


def _spelling(option: Option) -> str:
    """What a person types for it."""
    if place := _mark(option, Positional):
        return place.metavar or option.name.upper()
    return _flags(option)[0].split("/")[0]


def _with_flags(text: str | None, flags: Mapping[str, str]) -> str | None:
    """An error of the library, which names an argument as `seed`, with the option that gives it: --seed."""
    return text and re.sub(r"`(\w+)`", lambda match: flags.get(match[1], match[0]), text)


def _mark(option: Option, kind: type) -> Any:
    return next((mark for mark in option.marks if isinstance(mark, kind)), None)


def _value(option: Option, value: Any) -> Any:
    if option.kind is dict:
        return named_values(tuple(value)) if value else option.default
    if option.is_many:
        return tuple(value) if value else (option.default if option.default is not REQUIRED else ())
    return value
