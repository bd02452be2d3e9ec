"""A document with arrays on disk: numbers in safetensors, everything else in JSON, never a pickle.

    <folder>/<stem>.json                 the document; names its tensors' file and hash
    <folder>/<stem>-<hash>.safetensors

The JSON is renamed into place last and names its tensors by hash, so that a reader meets the old document
or the new one, never half of each.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jostle._files import write_whole
from jostle.errors import BadData, NotPermitted, UnreadableFile


def write_document(
    path: str | os.PathLike[str],
    stem: str,
    schema: str,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> None:
    """Raises NotPermitted or UnreadableFile where the disk does not take it."""
    from safetensors.numpy import save as to_bytes

    folder = Path(path)
    content = to_bytes(dict(arrays))
    digest = hashlib.sha256(content).hexdigest()
    name = f"{stem}-{digest[:16]}.safetensors"
    whole = {"schema": schema, "tensors": name, "sha256": digest, **document}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
        write_whole(folder / f"{stem}.json", json.dumps(whole, indent=1).encode())
        for old in folder.glob(f"{stem}-*.safetensors"):
            if old.name != name:
                old.unlink(missing_ok=True)
    except PermissionError as error:
        raise NotPermitted(str(error.strerror), where=str(folder)) from None
    except OSError as error:
        raise UnreadableFile(
            f"could not write the {stem}: {error.strerror}",
            where=str(folder),
            fix=f"A {stem} that was there before is untouched; make room and do it again.",
        ) from None


def read_document(
    path: str | os.PathLike[str], stem: str, schema: str, *, fix: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(document, arrays). Raises UnreadableFile for a missing, truncated or changed one, BadData for
    another schema; fix: what to do then."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_bytes

    folder = Path(path)
    head = folder / f"{stem}.json"
    try:
        document = json.loads(head.read_text("utf-8"))
        if not isinstance(document, dict):
            raise ValueError("not a JSON object")
        if document.get("schema") != schema:
            raise BadData(f"schema {document.get('schema')!r} is not {schema}", where=str(head))
        content = (folder / document["tensors"]).read_bytes()
        if hashlib.sha256(content).hexdigest() != document["sha256"]:
            raise UnreadableFile(
                "the file is not the one that was saved (truncated or changed)",
                where=str(folder / document["tensors"]),
                fix=fix,
            )
        return document, from_bytes(content)
    except FileNotFoundError as error:
        raise UnreadableFile(f"no {stem} here", where=str(error.filename), fix=fix) from None
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UnreadableFile(
            f"not a readable {stem}: {error}", where=str(folder), fix=fix
        ) from None
