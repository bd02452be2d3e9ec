"""Answers as JSON documents and back: one rule for every record, whatever interface it passes.

A document has a key for each field and for each property in `also`, without a leading `is_`; numbers that are
not finite are null.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from jostle._base.report import Report, Reported, finite
from jostle.errors import UnknownName

MOST_NOTES = 20
LONGEST = 300  # characters of a sentence


class Record:
    """A part of an answer: a frozen dataclass. also: properties that stand in its document, too."""

    also: ClassVar[tuple[str, ...]] = ()

    def to_document(self) -> dict[str, Any]:
        """Make the JSON object of the record."""
        names = _keys(type(self))
        return {key: _plain(getattr(self, name)) for name, key in names}


class AnswerDocument(Record):
    """Hold an answer with what it is written as. schema: of its document. model: version and data version of
    what answered."""

    schema: ClassVar[str]
    model: dict[str, Any] | None

    def to_document(self) -> dict[str, Any]:
        """Make the JSON object of the answer; every interface sends this one."""
        return {"schema": self.schema, "model": self.model} | super().to_document()


class VerbAnswer(AnswerDocument, Reported):
    """Base class of the answers of operations, which people read as a report."""

    @abstractmethod
    def report(self) -> Report:
        """Write the answer for people, as tables and sentences."""

    @property
    def exit_code(self) -> int:
        """The exit code of a command that prints the answer."""
        return 0

    @property
    def campaign_notes(self) -> list[str]:
        """Sentences on what it costs that the question named no campaign."""
        cost = (self.model or {}).get("unknown_campaign_error_ratio")
        return [f"campaign: none is named, which costs {cost:.1%} in the mean"] if cost else []

    @property
    def notes(self) -> list[str]:
        """List why items have no answer, names that are not known with those they are like, and the cost of
        no campaign."""
        unknown = getattr(self, "unknown_names", ())[:MOST_NOTES]
        return [*notes_on(getattr(self, "items", ())), *unknown, *self.campaign_notes]


@dataclasses.dataclass(frozen=True)
class Unanswered(Record):
    """A question without an answer. row: where it stands in its table. error: why, in a sentence."""

    error: str
    row: int = 0
    status: typing.Literal["error"] = "error"

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", shortened(self.error))


def shortened(text: str, most: int = LONGEST) -> str:
    """Cut a sentence that holds a user's names to at most `most` characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def answered(items: Sequence[Any]) -> tuple[Any, ...]:
    """Keep the items that have an answer."""
    return tuple(item for item in items if not isinstance(item, Unanswered))


def notes_on(items: Sequence[Any]) -> list[str]:
    """Write a sentence for each item without an answer, at most MOST_NOTES, and how many more there are."""
    bad = [item for item in items if isinstance(item, Unanswered)]
    notes = [f"no answer to row {item.row}: {item.error}" for item in bad[:MOST_NOTES]]
    more = len(bad) - MOST_NOTES
    return notes + ([f"and {more} more rows"] if more > 0 else [])


def unknown_sentences(kind: str, names: Iterable[str], known: Collection[str]) -> tuple[str, ...]:
    """Say of each name that is not known, once, which known ones it is like.

    kind: `workload` or `platform`.
    Returns at most MOST_NOTES sentences.
    """
    odd = [name for name in dict.fromkeys(names) if name not in known][:MOST_NOTES]
    return tuple(shortened(str(UnknownName(kind, name, tuple(known)))) for name in odd)


def from_document(kind: Any, document: Any) -> Any:
    """Make the record that a document was made of. kind: its class, or any annotation of a field."""
    if _is_record(kind):
        hints, keys = _hints(kind), {"model": "model"} | dict(_keys(kind))
        parts = {name: keys[name] for name in _fields(kind) if keys[name] in document}
        return kind(**{name: from_document(hints[name], document[parts[name]]) for name in parts})
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if document is None:
            return None
        return from_document(_alternative(parts, document), document)
    if origin is not None and isinstance(document, list):
        if origin is tuple and parts[-1] is not ...:
            return tuple(from_document(p, one) for p, one in zip(parts, document, strict=True))
        return tuple(from_document(parts[0], one) for one in document)
    if origin in (tuple, list):
        raise TypeError(f"{document!r} is no list")
    if kind is float:
        return math.nan if document is None else float(document)
    return Path(document) if kind is Path else document


def _alternative(parts: tuple[Any, ...], document: Any) -> Any:
    """Choose the record of a union whose fields with one possible value, such as `status`, have it in the
    document."""
    rest = [part for part in parts if part is not type(None)]
    if isinstance(document, dict):
        for part in rest:
            if _is_record(part) and all(
                document.get(key) in typing.get_args(_hints(part)[name])
                for name, key in _keys(part)
                if typing.get_origin(_hints(part)[name]) is typing.Literal
            ):
                return part
    return rest[0]


def schema_of(kind: Any, shared: dict[str, Any]) -> dict[str, Any]:
    """Describe what an annotation becomes in a document; further keys may come in later versions.

    kind: a record's class, or the annotation of a field.
    shared: {class: schema} of OpenAPI's `components/schemas`; every record is added here, once.
    Returns the JSON schema, in which a record is a reference to its own.
    """
    if _is_record(kind):
        if kind.__name__ not in shared:
            shared[kind.__name__] = {}  # before its fields, one of which may be such a record
            shared[kind.__name__] = _schema_of_record(kind, shared)
        return {"$ref": f"#/components/schemas/{kind.__name__}"}
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(part, shared) for part in parts]}
    if origin is typing.Literal:
        return {"enum": list(parts)}
    if origin is tuple and parts[-1] is not ...:
        return {"type": "array", "prefixItems": [schema_of(part, shared) for part in parts]}
    if kind in _TYPES:
        return _TYPES[kind]
    if origin in (dict, Mapping):
        return {"type": "object"}
    return {} if origin is None else {"type": "array", "items": schema_of(parts[0], shared)}


def _schema_of_record(kind: Any, shared: dict[str, Any]) -> dict[str, Any]:
    hints = _hints(kind)
    properties = {key: schema_of(hints.get(name, Any), shared) for name, key in _keys(kind)}
    if issubclass(kind, AnswerDocument):
        properties = {"schema": {"const": kind.schema}, **properties, "model": {}}
    return {"type": "object", "properties": properties, "required": list(properties)}


_TYPES: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": ["number", "null"]},
    type(None): {"type": "null"},
}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_document()
    if dataclasses.is_dataclass(value) or hasattr(value, "_asdict"):
        return {key: _plain(getattr(value, name)) for name, key in _keys(type(value))}
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, Path) else finite(value)


def _is_record(kind: Any) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")


def _fields(kind: Any) -> list[str]:
    """List the field names of a dataclass or a named tuple."""
    return list(getattr(kind, "_fields", None) or (f.name for f in dataclasses.fields(kind)))


@lru_cache(maxsize=256)
def _keys(kind: type) -> tuple[tuple[str, str], ...]:
    """Pair the attributes of a record with the keys of its document: ((attribute, key), ...), the status
    first."""
    names = [*_fields(kind), *getattr(kind, "also", ())]
    if "status" in names:  # first, so that a reader knows at once
        names.insert(0, names.pop(names.index("status")))
    return tuple(
        (name, name.removeprefix("is_"))
        for name in names
        if name != "model" or not issubclass(kind, AnswerDocument)
    )


@lru_cache(maxsize=256)
def _hints(kind: Any) -> dict[str, Any]:
    own = typing.get_type_hints(kind)
    for name in getattr(kind, "also", ()):
        own[name] = typing.get_type_hints(getattr(kind, name).fget).get("return", Any)
    return own
