"""Commands made from functions: every field of a frozen dataclass that one takes is an option."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from typing import Annotated, Any, Optional

import typer

from jostle._base.option_fields import (
    REQUIRED,
    Flag,
    Limits,
    NoOption,
    Option,
    Positional,
    Short,
    options_of,
)
from jostle.cli.console._output import show
from jostle.errors import JostleError, UsageError

JSON = Option("json_", bool, False, "Print one JSON document.")


def command_of(
    settings: Any, act: Callable[..., Any], text: str | None = None
) -> Callable[..., Any]:
    """Make a function for typer: it makes the settings that `act` takes from options, and prints the Report
    that `act` returns or yields, or what has a `report()`; the last one gives the exit code. An `act`
    annotated to return None prints by itself, and has no --json.

    settings: the class of a frozen dataclass, or several; None for the annotations of the parameters of
    `act`, of which a bool is whether there is --json. An object of such a class gives other defaults, and
    Annotated[dict, class or object] the values alone. A field that is a dataclass stands for its own fields,
    one without a sentence is no option, and one that two of them have is one option. text: the help, by
    default the docstring of the first of the settings, or of `act`.
    """
    signature = inspect.signature(act, eval_str=settings is None)
    parts = [p.annotation for p in signature.parameters.values()]
    if settings is not None:
        parts = settings if isinstance(settings, tuple) else (settings,)
    records = [_Record(part) for part in parts if part is not bool]
    options = {option.name: option for record in records for option in record.options()}
    if signature.return_annotation not in (None, "None"):
        options.setdefault(JSON.name, JSON)
    flags = {name: _spelling(option) for name, option in options.items()}

    def command(**values: Any) -> None:
        code, as_json = 0, values.get(JSON.name, False)
        try:
            objects = (record.value(values) for record in records)
            answer = act(*(as_json if part is bool else next(objects) for part in parts))
            for report in answer if isinstance(answer, Generator) else [answer]:
                if report is not None:
                    show(report.report() if hasattr(report, "report") else report, as_json)
                    code = report.exit_code
        except JostleError as error:
            for part in ("what", "fix"):
                setattr(error, part, _with_flags(getattr(error, part), flags))
            raise
        if code:
            raise typer.Exit(code)

    # A line of the help is as wide as the terminal, not as the source: only paragraphs are kept.
    text = inspect.cleandoc(
        text or inspect.getdoc(act if settings is None else records[0].kind) or ""
    )
    command.__doc__ = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    # Required ones first: Python wants it so, and the order of options means nothing to the command line.
    own = [_parameter(option) for option in options.values()]
    parameters = sorted(own, key=lambda p: p.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


class _Record:
    """Settings as options. settings: a class, or an object of it whose values are the defaults; of
    Annotated[dict, either] a dict is made."""

    def __init__(self, settings: Any) -> None:
        (base,) = getattr(settings, "__metadata__", (settings,))
        self.kind = base if isinstance(base, type) else type(base)
        self.make = dict if base is not settings else self.kind
        self.parts: dict[str, Any] = {}
        self.rest: dict[str, Any] = {}
        for option in options_of(self.kind):
            if not isinstance(base, type):
                option = replace(option, default=getattr(base, option.name))
            if option.default is not REQUIRED:
                self.rest[option.name] = option.default
            if _mark(option, NoOption) is not None:
                continue
            if is_dataclass(option.default):
                self.parts[option.name] = _Record(option.default)
            elif option.help or option.default is REQUIRED:
                self.parts[option.name] = option

    def options(self) -> Iterator[Option]:
        for part in self.parts.values():
            yield from part.options() if isinstance(part, _Record) else (part,)

    def value(self, values: Mapping[str, Any]) -> Any:
        """Make the settings from the values of options."""
        own = {
            name: part.value(values)
            if isinstance(part, _Record)
            else _value(part, values[part.name])
            for name, part in self.parts.items()
        }
        return self.make(**(self.rest | own))


def _parameter(option: Option) -> inspect.Parameter:
    is_many = option.is_many or option.is_mapping
    kind: Any = str if option.is_mapping else option.kind
    kind = list[kind] if is_many else kind
    required = option.default is REQUIRED
    if option.is_optional or (is_many and not required and not option.default):
        kind = Optional[kind]  # noqa: UP045 (of a type of run time)
    default: Any = option.default
    if is_many and not required:
        default = list(option.default) if option.default else None
    settings: dict[str, Any] = {"help": option.help}
    if limits := _mark(option, Limits):
        settings |= {"min": limits.least, "max": limits.most}
    if option.choices:
        choices = tuple(option.choices)
        settings |= {"parser": _one_of(choices), "metavar": "|".join(choices)}
        settings |= {"autocompletion": lambda: list(choices)}
    if place := _mark(option, Positional):
        annotation = Annotated[kind, typer.Argument(**{"metavar": place.metavar, **settings})]
    else:
        annotation = Annotated[kind, typer.Option(*flags_of(option), **settings)]
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if required else default,
        annotation=annotation,
    )


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Take one of these words. typer's own kinds of parameters moved between its versions."""

    def choice(text: str) -> str:
        if text not in choices:
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(choices)}")
        return text

    return choice


def flags_of(option: Option) -> list[str]:
    """List the flags of an option as a person types them, the long one first."""
    flag, short = _mark(option, Flag), _mark(option, Short)
    if flag is not None:
        name = flag.flag
    else:
        name = "--" + option.name.rstrip("_").replace("_", "-")
        if option.kind is bool and option.default:
            name = f"{name}/--no-{name[2:]}"
    return [name, short.flag] if short is not None else [name]


def _spelling(option: Option) -> str:
    """Return the name of an option or argument as a person types it."""
    if place := _mark(option, Positional):
        return place.metavar or option.name.upper()
    return flags_of(option)[0].split("/")[0]


def _with_flags(text: str | None, flags: Mapping[str, str]) -> str | None:
    """Replace arguments that an error of the library names, such as `seed`, with their options: --seed."""
    return text and re.sub(r"`(\w+)`", lambda match: flags.get(match[1], match[0]), text)


def _mark(option: Option, kind: type) -> Any:
    return next((mark for mark in option.marks if isinstance(mark, kind)), None)


def _value(option: Option, value: Any) -> Any:
    if option.is_mapping:
        return dict(_named(option, text) for text in value) if value else option.default
    if option.is_many:
        return tuple(value) if value else (option.default if option.default is not REQUIRED else ())
    return value


def _named(option: Option, text: str) -> tuple[str, Any]:
    """Split the text NAME=VALUE of an option into (name, value). Raises UsageError."""
    is_text = option.kind is str
    name, _, value = text.partition("=") if is_text else text.rpartition("=")
    with suppress(ValueError):
        if name.strip() and "=" in text:
            return name.strip(), option.kind(value)
    kind = "VALUE" if is_text else "NUMBER, like instructions=2e9"
    raise UsageError(f"{_spelling(option)} {text!r}", fix=f"Say NAME={kind}.")
