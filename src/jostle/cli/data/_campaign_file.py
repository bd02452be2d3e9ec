"""A campaign as a TOML file: the options of `jostle measure`, and a table [[job]] for each command line."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jostle._base.option_fields import Option, options_of
from jostle._base.untrusted import require_regular
from jostle.cli.console import flags_of, words_of
from jostle.errors import UnreadableFile, UsageError

_JOB, _COMMAND = "job", "command"
# Its texts, numbers and lists are TOML's, too.
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)
_SAMPLES = {float: 60.0, int: 1}  # of numbers without a default
_NOT_IN_FILES = ("plan", "check", "opcodes", "words", "workload", _COMMAND)


def campaign_lines(
    records: Iterable[tuple[type, Mapping[str, Any]]], jobs: Sequence[Any], workloads: Sequence[str]
) -> list[str]:
    """Write the lines of a campaign's file. records: (settings' class, values of its fields). jobs: their
    objects. workloads: the names of what is not a job."""
    lines = ["# A campaign: edit it, and measure it with jostle measure FILE.", ""]
    lines.append(f"workload = {_text(list(workloads))}")
    for kind, values in records:
        for option in _options(kind):
            value = values[option.name]
            help_ = option.help.replace("; may be repeated", "").partition("  [")[0]
            comment = "# " if value in (None, (), "") else ""
            lines.append(f"{comment}{_key(option)} = {_text(value, option)}  # {help_}")
    for job in jobs:
        own = [
            f"{_key(option)} = {_text(value, option)}"
            for option in _options(type(job))
            if (value := getattr(job, option.name)) != option.default
        ]
        commands = [shlex.join(job.words)] if job.words else []
        named = [line for line in own if line.startswith("name = ")]
        for number, command in enumerate([*commands, *job.command]):
            rest = [line for line in own if line not in named or (commands and not number)]
            lines += ["", f"[[{_JOB}]]", f"{_COMMAND} = {_text(command)}", *rest]
        if own and not commands and not job.command:
            lines += ["", f"[[{_JOB}]]", *own]
    keys = ", ".join(_key(option) for option in _options(type(jobs[0])))
    return [
        *lines,
        "",
        f"# [[{_JOB}]]  # of one command line",
        f"# {keys}",
    ]


def read_campaign(
    path: Path, given: Iterable[tuple[type, Mapping[str, Any]]], job: Any
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Read a campaign's file. Returns (for each of the settings the values of its fields, the jobs).

    given: (settings' class, values of the command line); those that are not defaults overrule the file. job:
    an object of the class of jobs, whose workloads are added. Raises UnreadableFile, UsageError for a key
    that no option is called, or a value that it cannot have.
    """
    try:
        require_regular(path)
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not a campaign: {error}", where=str(path)) from None
    entries, names = document.pop(_JOB, []), document.pop("workload", [])
    values: list[dict[str, Any]] = []
    for kind, own in given:
        read = _taken(kind, document, path)
        default = {option.name: option.default for option in options_of(kind)}
        stays = {name: value for name, value in own.items() if value != default[name]}
        values.append({**own, **read, **stays})
    if document:
        known = [_key(option) for kind, _ in given for option in _options(kind)]
        raise UsageError(
            f"no option is called {next(iter(document))!r}",
            where=str(path),
            fix=f"There are {', '.join([*known, 'workload'])}, and tables [[{_JOB}]].",
        )
    if not (_is_list(names, str) and _is_list(entries, dict)):
        raise UsageError(f"workload is a list of names, [[{_JOB}]] a table", where=str(path))
    jobs = [replace(job, words=(), workload=(*names, *job.workload))]
    for entry in entries:
        words = (
            {"words": tuple(words_of(entry.pop(_COMMAND), str(path)))} if _COMMAND in entry else {}
        )
        jobs.append(type(job)(**words, **_taken(type(job), entry, path)))
        if entry:
            known = ", ".join([_COMMAND, *(_key(option) for option in _options(type(job)))])
            text = f"no option of a {_JOB} is called {next(iter(entry))!r}"
            raise UsageError(text, where=str(path), fix=f"There are {known}.")
    return values, jobs


def _options(kind: type) -> Iterator[Option]:
    """Yield the options that files hold."""
    for option in options_of(kind):
        if option.help and option.name not in _NOT_IN_FILES:
            yield option


def _key(option: Option) -> str:
    return flags_of(option)[0][2:].partition("/")[0]


def _taken(kind: type, document: dict[str, Any], path: Path) -> dict[str, Any]:
    """Take the values of these fields out of the document."""
    values = {}
    for option in _options(kind):
        if (key := _key(option)) in document:
            values[option.name] = _value(option, document.pop(key), f"{path}, {key}")
    return values


def _value(option: Option, value: Any, where: str) -> Any:
    if option.is_mapping:
        return {str(name): str(one) for name, one in _one(dict, value, where).items()}
    if option.is_many:
        values = value if isinstance(value, list) else [value]
        return tuple(_one(option.kind, one, where) for one in values)
    return _one(option.kind, value, where)


def _one(kind: type, value: Any, where: str) -> Any:
    """Raises UsageError."""
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise UsageError(f"{value!r:.80} is no {kind.__name__}", where=where)
    return value


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(one, kind) for one in value)


def _text(value: Any, option: Option | None = None) -> str:
    """Write a value as TOML has it; a sample if there is no value."""
    if value is None:
        value = (
            []
            if option and option.is_many
            else ""
            if option is None
            else _SAMPLES.get(option.kind, "")
        )
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(name)} = {_text(one)}" for name, one in value.items()) + "}"
    text = _JSON.encode(value)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)
