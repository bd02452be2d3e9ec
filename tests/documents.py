"""Documents with arrays as they stand on disk, read and written by hand, whatever Jostle makes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from jostle.models import SCHEMA

BLANK = "0" * 64  # stands where the checksum will, while it is taken


def read_parts(folder: Path, stem: str = "model") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(document, arrays), unchecked."""
    document = json.loads((folder / f"{stem}.json").read_bytes())
    return document, load((folder / document["tensors"]).read_bytes())


def write_parts(
    folder: Path,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    stem: str = "model",
) -> None:
    """With right checksums; of a model's schema unless the document has another."""
    content = save(dict(arrays))
    digest = hashlib.sha256(content).hexdigest()
    name = f"{stem}-{digest[:16]}.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    known = document if "schema" in document else {"schema": SCHEMA, **document}
    whole = {**known, "tensors": name, "tensors_sha256": digest}
    (folder / f"{stem}.json").write_bytes(signed(whole))


def signed(document: Mapping[str, Any]) -> bytes:
    """The JSON with the checksum that belongs to it."""
    return filled(json.dumps({**document, "sha256": BLANK}).encode())


def filled(text: bytes) -> bytes:
    """The same where BLANK stands for the checksum."""
    return text.replace(BLANK.encode(), hashlib.sha256(text).hexdigest().encode(), 1)
