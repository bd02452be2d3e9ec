"""A document with arrays on disk: numbers in safetensors, everything else in JSON, never a pickle.

    <folder>/<stem>.json                 the document; names its tensors' file and hash
    <folder>/<stem>-<hash>.safetensors

The JSON is renamed into place last and names its tensors by hash, so that a reader meets the old document
or the new one, never half of each. One checksum covers every byte of both files. Writers of one folder
take turns by a lock that the system drops with them when they are killed; each sweeps what a killed one
left. A reader takes no lock: where the tensors were swept after it had read the JSON, there is a newer one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from jostle.errors import BadData, UnreadableFile

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


def write_document(
    path: str | os.PathLike[str],
    stem: str,
    schema: str,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Raises NotPermitted where the disk does not take it."""
    from safetensors.numpy import save as to_bytes

    # These bring Arrow, which reading does without.
    from jostle._files import errors_explained, make_folder, sweep, write_whole

    folder = Path(path)
    content = to_bytes(dict(arrays))
    digest = hashlib.sha256(content).hexdigest()
    name = f"{stem}-{digest[:16]}.safetensors"
    whole = {"schema": schema, "sha256": _BLANK, "tensors": name, "tensors_sha256": digest}
    text = json.dumps({**whole, **document}, indent=1).encode()
    text = text.replace(_BLANK.encode(), hashlib.sha256(text).hexdigest().encode(), 1)
    kept = f"The {stem} that was there before, if any, is untouched"
    with errors_explained(folder, kept):
        make_folder(folder)
        with _turn(folder) as is_mine:
            # Each is on the disk before the next begins: a JSON never names tensors that are not there.
            write_whole(folder / name, content)
            write_whole(folder / f"{stem}.json", text)
            sweep(folder)
            if is_mine:  # or these may be what another writer is about to name
                for old in folder.glob(f"{stem}-*.safetensors"):
                    if old.name != name:
                        old.unlink(missing_ok=True)


def read_document(
    path: str | os.PathLike[str], stem: str, schema: str, *, fix: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(document, arrays). Raises UnreadableFile for a missing, truncated or changed one, BadData for
    another schema; fix: what to do then."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    folder = Path(path)
    try:
        document, content = _read_both(folder, f"{stem}.json", schema, fix)
        if hashlib.sha256(content).hexdigest() != document["tensors_sha256"]:
            raise _changed(folder / document["tensors"], fix)
        return document, from_bytes(content)
    except FileNotFoundError as error:
        raise UnreadableFile(f"no {stem} here", where=str(error.filename), fix=fix) from None
    except RecursionError:
        text = f"not a readable {stem}: nested too deep"
        raise UnreadableFile(text, where=str(folder), fix=fix) from None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UnreadableFile(
            f"not a readable {stem}: {error}", where=str(folder), fix=fix
        ) from None


def _read_both(folder: Path, head: str, schema: str, fix: str) -> tuple[dict[str, Any], bytes]:
    """The JSON and the tensors that belong to it. Raises what read_document raises."""
    for _ in range(_ATTEMPTS):
        document = _read_head(folder / head, schema, fix)
        with suppress(FileNotFoundError):  # a writer may have replaced both meanwhile
            return document, (folder / document["tensors"]).read_bytes()
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder / head))


def _read_head(path: Path, schema: str, fix: str) -> dict[str, Any]:
    """The JSON, every byte of it as it was saved. Raises what read_document raises."""
    text = path.read_bytes()
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    if document.get("schema") != schema:
        raise BadData(f"schema {document.get('schema')!r} is not {schema}", where=str(path))
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
