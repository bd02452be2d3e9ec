"""The exception tree: every error Jostle raises on purpose, in one file.

Each leaf says what was wrong, where, and what to do, and carries the exit code that the command line
ends with. A caller that wants one net catches :class:`JostleError`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from numbers import Integral
from typing import Any


class JostleError(Exception):
    """Base of all errors that Jostle raises on purpose.

    what: one sentence, what was wrong. where: the file, row, column or name it was found at.
    fix: what to do about it.
    """

    exit_code = 70

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__(what, where, fix)

    def __reduce__(
        self,
    ) -> Any:  # the constructors differ; what they made travels between processes
        return _remade, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        end = "" if text.endswith(("?", "!")) else "."
        return f"{text.rstrip('.')}{end} {self.fix}" if self.fix else text


def _remade(kind: type[JostleError], args: tuple[Any, ...], state: dict[str, Any]) -> JostleError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class UsageError(JostleError):
    """An argument or option makes no sense."""

    exit_code = 2


class MissingExtra(UsageError):
    """A library that only some of Jostle needs is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"this needs {module}, which is not installed",
            fix=f"Install it with: {install_command(extra)}",
        )


def install_command(extra: str) -> str:
    """Write the command that adds an extra to Jostle as it is installed here: from an index, or from a
    checkout."""
    import json
    from importlib import metadata

    try:
        record = metadata.distribution("jostle").read_text("direct_url.json") or ""
    except metadata.PackageNotFoundError:
        record = ""
    try:
        origin: dict[str, Any] = json.loads(record) if record else {}
    except ValueError:
        origin = {}
    url = str(origin.get("url", ""))
    if not url.startswith("file://"):
        return f"pip install 'jostle[{extra}]'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{url.removeprefix('file://')}[{extra}]'"


_CALLED = {"ot": "pot", "sklearn": "scikit-learn"}  # modules that are not called like their package


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Find the extra that brings the module which an import did not find; None if no extra brings it."""
    module = (error.name or "").partition(".")[0]
    package = _normal(_CALLED.get(module, module))
    having = [
        (len(names), extra)
        for extra, names in extras().items()
        if package in {_normal(name) for name in names}
    ]
    # Some bring others' libraries, too: the smallest is meant.
    named = _CALLED.get(module, module)
    return MissingExtra(named, min(having, key=lambda one: one[0])[1]) if having else None


@contextmanager
def needing_extras() -> Generator[None]:
    """Around what needs a library that only an extra brings: MissingExtra where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise (missing_extra(error) or error) from None


def extras() -> dict[str, list[str]]:
    """List the packages that each extra brings, {extra: packages}, without the extra that joins them all."""
    import re
    from importlib import metadata

    try:
        lines = metadata.requires("jostle") or []
    except metadata.PackageNotFoundError:
        return {}
    by_extra: dict[str, list[str]] = {}
    for line in lines:
        package = re.match(r"\s*([A-Za-z0-9._-]+)", line)
        extra = re.search(r"extra\s*==\s*[\"']([^\"']+)[\"']", line)
        if package and extra and extra[1] != "all" and package[1].lower() != "jostle":
            by_extra.setdefault(extra[1], []).append(package[1])
    return by_extra


def _normal(package: str) -> str:
    return package.lower().replace("_", "-")


class NotEnoughRuns(JostleError):
    """Error: too little data to learn from or to give a valid bound."""

    exit_code = 3


class BadData(JostleError):
    """Error: malformed input data."""

    exit_code = 4


class BadRows(BadData):
    """Error: rows of a table that break its schema; `rows` holds (row number, reason) of each."""

    def __init__(
        self,
        what: str,
        *,
        rows: list[tuple[int, str]] | None = None,
        where: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.rows = rows or []
        super().__init__(what, where=where, fix=fix)


class UnreadableFile(BadData):
    """A file is missing, truncated, or not what its name says."""


class UnknownName(BadData):
    """A workload or platform that the data or model does not know."""

    def __init__(
        self, kind: str, name: str, known: list[str] | tuple[str, ...], *, where: str | None = None
    ) -> None:
        import difflib

        near = difflib.get_close_matches(name, known, n=3)
        few = list(known[:5]) + (["…"] if len(known) > 5 else [])
        fix = (
            f"Did you mean {' or '.join(near)}?" if near else f"Known: {', '.join(few) or 'none'}."
        )
        super().__init__(f"unknown {kind} {name!r}", where=where, fix=fix)


def require_known(
    kind: str,
    names: str | Iterable[str | None] | None,
    known: Collection[str],
    *,
    where: str | None = None,
) -> None:
    """Raises UnknownName for the first of these names that is not known; None is no name."""
    for name in [names] if isinstance(names, str) else names or ():
        if name is not None and name not in known:
            listed = sorted(known) if isinstance(known, (set, frozenset)) else list(known)
            raise UnknownName(kind, name, listed, where=where)


def require_choice(what: str, value: str, known: Iterable[str]) -> None:
    """Raises UsageError for a value that is none of those."""
    if value not in (known := tuple(known)):
        raise UsageError(f"unknown {what} {value!r}", fix=f"Known: {', '.join(known)}.")


def require_whole(name: str, value: Any, least: int = 0) -> None:
    """Raises UsageError for what is no whole number, or one below the least."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise UsageError(f"`{name}` is {value!r}, no whole number from {least} on")


def require_colocations(given: Any) -> None:
    """Raises UsageError for what is no co-locations."""
    if not hasattr(given, "number_of_corunners"):
        raise UsageError(
            f"a {type(given).__name__} is no co-locations to ask about",
            fix="Give jostle.Colocations.from_columns(...), or runs' `.colocations`.",
        )


def require_runs(given: Any) -> None:
    """Raises UsageError for what is no runs."""
    if not hasattr(given, "is_ok"):
        raise UsageError(
            f"a {type(given).__name__} is no runs",
            fix="Give jostle.read_runs(folder), or jostle.Runs.from_columns(...).",
        )


class NotPermitted(JostleError):
    """The operating system or this host does not allow what was asked."""

    exit_code = 5
