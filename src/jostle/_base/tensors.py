"""Fitted objects saved and loaded: safetensors beside JSON, the schema checked on loading.

    <folder>/<stem>.json                 the document; names its tensors' file and hash
    <folder>/<stem>-<hash>.safetensors

The JSON is renamed into place last and names its tensors by hash, so that a reader meets the old document
or the new one, never half of each. One checksum covers every byte of both files. Writers of one folder
take turns by a lock that the system drops with them when they are killed; each sweeps what a killed one
left. A reader takes no lock: where the tensors were swept after it had read the JSON, there is a newer one.

A dataclass is saved by its fields and their type hints. An array stands under its place in the object
(`stack.parts.0.1.hit`), everything else in a document of the same shape as the object. Hints may be arrays,
numbers, text, dataclasses, unions of dataclasses (told apart by their class's name), `X | None`, tuples,
mappings and frozen sets of these. What is read is not trusted: what does not fit the hints is refused with
ValueError, and only classes that the hints name are made.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from jostle._base.untrusted import require_regular
from jostle.errors import BadData, NotPermitted, UnreadableFile, UsageError

_BLANK = "0" * 64  # stands where the checksum will, while it is taken
_ATTEMPTS = 50
# Network file systems may know no locks on folders.
_WITHOUT_LOCKS = {
    errno.EBADF,
    errno.ENOLCK,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EINVAL,
}

Arrays = dict[str, np.ndarray]
# Metadata of a dataclass field that is left out; it has its default in what is read again.
UNSAVED = {"unsaved": True}


def write_document(
    path: str | os.PathLike[str],
    stem: str,
    schema: str,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    only_over: str | None = None,
) -> None:
    """Write a document. only_over: the checksum of the document that has to be there, `` for none; any unless
    given.

    Raises UsageError if a dataset lies in the folder, NotPermitted where the disk does not take it, or
    another document is there.
    """
    from safetensors.numpy import save as to_bytes

    # These bring Arrow, which reading does without.
    from jostle._base.files import errors_explained, make_folder, sweep, write_whole

    folder = Path(path)
    if next(folder.glob("*/*.parquet"), None) is not None:
        raise UsageError(
            f"a dataset lies in this folder: no {stem} is written into it",
            where=str(folder),
            fix=f"Give the {stem} a folder of its own.",
        )
    content = to_bytes(dict(arrays))
    digest = hashlib.sha256(content).hexdigest()
    name = f"{stem}-{digest[:16]}.safetensors"
    whole = {"schema": schema, "sha256": _BLANK, "tensors": name, "tensors_sha256": digest}
    text = json.dumps({**whole, **document}, indent=1).encode()
    text = text.replace(_BLANK.encode(), hashlib.sha256(text).hexdigest().encode(), 1)
    untouched = f"The {stem} that was there before, if any, is untouched"
    with errors_explained(folder, untouched):
        make_folder(folder)
        with _turn(folder) as is_mine:
            if only_over is not None and checksum_of(folder / f"{stem}.json") != only_over:
                raise NotPermitted(f"another {stem} came meanwhile: it stays", where=str(folder))
            # Each is on the disk before the next begins: a JSON never names tensors that are not there.
            write_whole(folder / name, content)
            write_whole(folder / f"{stem}.json", text)
            sweep(folder)
            if is_mine:  # or these may be what another writer is about to name
                for old in folder.glob(f"{stem}-*.safetensors"):
                    if old.name != name:
                        old.unlink(missing_ok=True)


def checksum_of(path: Path) -> str:
    """Read the checksum in the document at `path` as it is now; empty if there is none. Raises
    UnreadableFile."""
    try:
        require_regular(path)
        return str(json.loads(path.read_bytes())["sha256"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableFile(f"not a readable {path.stem}: {error}", where=str(path)) from None


def read_document(
    path: str | os.PathLike[str], stem: str, schema: str, *, fix: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read (document, arrays) as write_document wrote them. fix: what the error says to do.

    Raises UnreadableFile for a missing, truncated or changed one, BadData for another schema.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    folder = Path(path)
    try:
        document, content = _read_both(folder, f"{stem}.json", schema, fix)
        if hashlib.sha256(content).hexdigest() != document["tensors_sha256"]:
            raise _changed(folder / document["tensors"], fix)
        return document, from_bytes(content)
    except FileNotFoundError as error:
        is_head = Path(error.filename).name == f"{stem}.json"
        what = f"no {stem} here" if is_head else f"this file of the {stem} is missing"
        raise UnreadableFile(what, where=str(error.filename), fix=fix) from None
    except RecursionError:
        text = f"not a readable {stem}: nested too deep"
        raise UnreadableFile(text, where=str(folder), fix=fix) from None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UnreadableFile(
            f"not a readable {stem}: {error}", where=str(folder), fix=fix
        ) from None


def _read_both(folder: Path, head: str, schema: str, fix: str) -> tuple[dict[str, Any], bytes]:
    """Read the JSON and the bytes of the tensors that belong to it. Raises what read_document raises."""
    tensors = folder / head
    for _ in range(_ATTEMPTS):
        document = _read_head(folder / head, schema, fix)
        tensors = folder / document["tensors"]
        with suppress(FileNotFoundError):  # a writer may have replaced both meanwhile
            require_regular(tensors)
            return document, tensors.read_bytes()
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(tensors))


def _read_head(path: Path, schema: str, fix: str) -> dict[str, Any]:
    """Read the JSON, and check that it is as it was saved, byte by byte. Raises what read_document raises."""
    require_regular(path)
    text = path.read_bytes()
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    if document.get("schema") != schema:
        what = f"schema {document.get('schema')!r} is not {schema}, which this Jostle reads"
        raise BadData(what, where=str(path), fix=fix)
    digest = str(document["sha256"])
    if hashlib.sha256(text.replace(digest.encode(), _BLANK.encode(), 1)).hexdigest() != digest:
        raise _changed(path, fix)
    # Whoever can write a document can make its checksum, too: no other folder is read for it.
    name = document["tensors"]
    if not isinstance(name, str) or "/" in name or "\0" in name or name in ("", ".", ".."):
        raise UnreadableFile(f"{name!r:.80} names no file of this folder", where=str(path), fix=fix)
    return document


def _changed(path: Path, fix: str) -> UnreadableFile:
    return UnreadableFile(
        "the file is not the one that was saved (truncated or changed)", where=str(path), fix=fix
    )


@contextmanager
def _turn(folder: Path) -> Iterator[bool]:
    """Waits until no other writer is at work in the folder; False where the file system has no such locks."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        is_mine = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            is_mine = False
        yield is_mine
    finally:
        os.close(descriptor)  # drops the lock, too


class Codec(NamedTuple):
    """Say, in `Annotated[Any, Codec(…)]`, how a value that is no dataclass becomes JSON, and back."""

    to_json: Any
    from_json: Any


def to_arrays(value: Any) -> tuple[Arrays, dict[str, Any]]:
    """Split a dataclass into (arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
    arrays: Arrays = {}
    return arrays, _dumped(value, type(value), "", arrays)


def from_arrays(kind: Any, arrays: Mapping[str, np.ndarray], document: Any) -> Any:
    """Make the object of this class from its arrays and its JSON. Raises ValueError, KeyError, TypeError for
    anything else."""
    return _read(document, kind, "", arrays)


class Serializable:
    """Gives a dataclass `to_arrays` and `from_arrays`."""

    def to_arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Split the object into (arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        return to_arrays(self)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], document: Any) -> Any:
        """Raises ValueError, KeyError, TypeError for what to_arrays did not give."""
        return from_arrays(cls, arrays, document)


@lru_cache(maxsize=256)
def _hints_of(kind: type) -> tuple[tuple[str, Any], ...]:
    """List the saved fields of a dataclass with their type hints."""
    hints = get_type_hints(kind, include_extras=True)
    saved = [f.name for f in fields(kind) if f.init and "unsaved" not in f.metadata]
    return tuple((name, hints[name]) for name in saved)


def _at(path: str, name: Any) -> str:
    return f"{path}.{name}" if path else f"{name}"


def _dumped(value: Any, hint: Any, path: str, arrays: Arrays) -> Any:
    """Turn a value into JSON, and add its arrays to `arrays` under its path."""
    if get_origin(hint) is Annotated:
        codec = hint.__metadata__[0]
        return codec.to_json(value)
    if value is None:
        return None
    if np.ndarray in _options_of(hint):
        arrays[path] = np.asarray(value, order="C")
        return "array"
    if is_dataclass(value):
        known = _hints_of(type(value))
        parts = {n: _dumped(getattr(value, n), h, _at(path, n), arrays) for n, h in known}
        is_one_of_many = len(_options_of(hint)) > 1
        return {"kind": type(value).__name__, **parts} if is_one_of_many else parts
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        key_hint, item_hint = get_args(_options_of(hint)[0])
        items = [_dumped(v, item_hint, _at(path, n), arrays) for n, v in enumerate(value.values())]
        if key_hint is str:
            return dict(zip(value, items, strict=True))
        return [[_dumped(k, key_hint, "", arrays), v] for k, v in zip(value, items, strict=True)]
    if isinstance(value, (tuple, list)):
        inner = _hints_of_tuple(_options_of(hint)[0], len(value))
        both = enumerate(zip(value, inner, strict=True))
        return [_dumped(one, h, _at(path, n), arrays) for n, (one, h) in both]
    return value.item() if isinstance(value, np.generic) else value


def _options_of(hint: Any) -> tuple[Any, ...]:
    """List the members of a union but None; the hint alone if it is no union."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(one for one in get_args(hint) if one is not types.NoneType)
    return (hint,)


def _hints_of_tuple(hint: Any, size: int) -> tuple[Any, ...]:
    inner = get_args(hint)
    if len(inner) == 2 and inner[1] is Ellipsis:
        return (inner[0],) * size
    return inner


def _read(value: Any, hint: Any, path: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Invert _dumped: make the value of this hint. Raises ValueError for what does not fit the hint."""
    if get_origin(hint) is Annotated:
        return hint.__metadata__[0].from_json(value)
    options = _options_of(hint)
    if value is None and types.NoneType in get_args(hint):
        return None
    if len(options) > 1:
        named = {one.__name__: one for one in options}
        kind = _checked(value, Mapping, path).get("kind")
        if kind not in named:
            raise ValueError(f"{path} is of no known kind: {kind!r:.60}")
        return _read(value, named[kind], path, arrays)
    return _read_one(value, next(iter(options)), path, arrays)


def _read_one(value: Any, hint: Any, path: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Make the value of a hint that is no union, as _read does."""
    origin: Any = get_origin(hint)
    inner: Any = get_args(hint)
    if hint is np.ndarray:
        return _checked(arrays.get(path), np.ndarray, path)
    if is_dataclass(hint):
        parts, known = _checked(value, Mapping, path), _hints_of(hint)
        if missing := [name for name, _ in known if name not in parts]:
            raise ValueError(f"{_at(path, missing[0])} is missing")
        fields = {name: _read(parts[name], h, _at(path, name), arrays) for name, h in known}
        kind: Any = hint
        return kind(**fields)
    if origin is tuple:
        listed = _checked(value, list, path)
        hints = _hints_of_tuple(hint, len(listed))
        if len(hints) != len(listed):
            raise ValueError(f"{path} has {len(listed)} entries, not {len(hints)}")
        both = enumerate(zip(listed, hints, strict=True))
        return tuple(_read(one, h, _at(path, n), arrays) for n, (one, h) in both)
    if origin is frozenset:
        listed = _checked(value, list, path)
        return frozenset(_read(one, inner[0], path, arrays) for one in listed)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key_hint, item_hint = inner
        is_plain = key_hint is str
        pairs = _checked(value, Mapping, path).items() if is_plain else _checked(value, list, path)
        return {
            _read(key, key_hint, path, arrays): _read(item, item_hint, _at(path, n), arrays)
            for n, (key, item) in enumerate(pairs)
        }
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        raise ValueError(f"{path} is {value}, not a number")
    return _checked(value, hint, path)


def _checked(value: Any, kind: Any, path: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{path or 'it'} is {value!r:.60}, not of the kind {kind.__name__}")
    return value
