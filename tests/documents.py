"""Documents with arrays as they stand on disk, read and written by hand, whatever Jostle makes of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors.numpy import load, save

import jostle
from jostle.ensemble import Ensemble

BLANK = "0" * 64  # stands where the checksum will, while it is taken


@cache
def model_schema() -> str:
    """As a saved model says it."""
    twice = {"workload": ["a", "b"] * 2, "platform": ["p"] * 4}
    runs = jostle.Runs.from_columns(**twice, runtime_seconds=[1.0, 2.0, 1.1, 2.1])
    with TemporaryDirectory() as folder:
        jostle.fit(runs, Ensemble(experts=("rules",))).save(folder)
        return read_parts(Path(folder))[0]["schema"]


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
    known = document if "schema" in document else {"schema": model_schema(), **document}
    whole = {**known, "tensors": name, "tensors_sha256": digest}
    (folder / f"{stem}.json").write_bytes(signed(whole))


def signed(document: Mapping[str, Any]) -> bytes:
    """The JSON with the checksum that belongs to it."""
    return filled(json.dumps({**document, "sha256": BLANK}).encode())


def filled(text: bytes) -> bytes:
    """The same where BLANK stands for the checksum."""
    return text.replace(BLANK.encode(), hashlib.sha256(text).hexdigest().encode(), 1)
