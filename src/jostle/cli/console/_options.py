"""Commands made from settings: every field of a frozen dataclass is an option, its help the field's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Optional

import click
import typer

from jostle._options import REQUIRED, Limits, Option, Positional, Short, options_of

Parameters = list[inspect.Parameter]


def command_of(
    settings: type, act: Callable[..., Any], shared: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """A function for typer: `act(settings(...), **others)`.

    settings: a frozen dataclass whose fields become options. shared: a function whose own parameters
    (with typer annotations) the command takes besides, and which are handed to `act` by name.
    """
    fields = options_of(settings)
    names = [option.name for option in fields]
    own = [_parameter(option) for option in fields]
    others = [] if shared is None else _parameters(shared)

    def command(**values: Any) -> Any:
        given = {
            name: _value(option, values.pop(name))
            for name, option in zip(names, fields, strict=True)
        }
        return act(settings(**given), **values)

    command.__doc__ = inspect.getdoc(settings)
    # Required ones first: Python wants it so, and the order of options means nothing to the command line.
    parameters = sorted([*own, *others], key=lambda p: p.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _parameters(function: Callable[..., Any]) -> Parameters:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in found]


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = list[option.kind] if option.is_many else option.kind
    required = option.default is REQUIRED
    if option.is_optional or (option.is_many and not option.default):
        kind = Optional[kind]  # noqa: UP045 (made at run time)
    default: Any = option.default
    if option.is_many and not required:
        default = list(option.default) if option.default else None
    said: dict[str, Any] = {"help": option.help}
    for mark in option.marks:
        if isinstance(mark, Limits):
            said |= {"min": mark.least, "max": mark.most}
    if option.choices:
        said["click_type"] = click.Choice(option.choices)
    if any(isinstance(mark, Positional) for mark in option.marks):
        annotation = Annotated[kind, typer.Argument(**said)]
    else:
        flag = "--" + option.name.rstrip("_").replace("_", "-")
        flags = [f"{flag}/--no-{flag[2:]}" if option.kind is bool and option.default else flag]
        flags += [mark.flag for mark in option.marks if isinstance(mark, Short)]
        annotation = Annotated[kind, typer.Option(*flags, **said)]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=annotation,
    )


def _value(option: Option, value: Any) -> Any:
    if option.is_many:
        return tuple(value) if value else (option.default if option.default is not REQUIRED else ())
    return value
