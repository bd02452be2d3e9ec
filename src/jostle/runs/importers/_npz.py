"""Foreign npz files: what they declare is checked against what is there before anything is made of it."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from jostle._untrusted import understood
from jostle.errors import BadData, UnreadableFile

_AGAIN = "Fetch the file again."
_MOST_BYTES = 1 << 32
_MOST_TIMES_LARGER = 1000  # by which arrays of measurements are packed at the very most


class Arrays(dict[str, np.ndarray]):
    """The arrays of an npz file; a missing one, or one of another kind, is an error that names the file."""

    def __init__(self, file: Path, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(arrays)
        self.file = file

    def __missing__(self, key: str) -> np.ndarray:
        raise BadData(f"the file has no array {key!r}", where=str(self.file))

    def numbers(self, key: str, *shape: int | None) -> np.ndarray:
        """float64 of this shape, None for any length. Raises BadData."""
        return self._shaped(key, "iuf", "numbers", shape).astype(np.float64)

    def codes(self, key: str, *shape: int | None) -> np.ndarray:
        """int64, as many dimensions as `shape` has entries beyond the first. Raises BadData."""
        return self._shaped(key, "iu", "whole numbers", (None, *shape), exact=False).astype(
            np.int64
        )

    def texts(self, key: str) -> list[str]:
        """Names, which must be text and different. Raises BadData."""
        found = [
            str(value)
            for value in self._shaped(key, "U", "texts", (None,), exact=False).reshape(-1)
        ]
        if len(set(found)) < len(found):
            raise BadData(f"the array {key!r} names something twice", where=str(self.file))
        return found

    def _shaped(
        self, key: str, kinds: str, what: str, shape: tuple[int | None, ...], exact: bool = True
    ) -> np.ndarray:
        array = self[key]
        if array.dtype.kind not in kinds and array.size:
            raise BadData(
                f"the array {key!r} holds {array.dtype}, not {what}", where=str(self.file)
            )
        fits = 1 <= array.ndim <= len(shape) and (not exact or array.ndim == len(shape))
        sides = zip(array.shape, shape, strict=False)
        if not fits or any(wanted is not None and side != wanted for side, wanted in sides):
            wanted = ", ".join("any" if side is None else str(side) for side in shape)
            text = f"the array {key!r} has shape {array.shape}, not ({wanted})"
            raise BadData(text, where=str(self.file))
        return array


def read_npz(file: Path) -> Arrays:
    """All arrays of a file. Raises UnreadableFile for one that is damaged, holds objects, or declares more
    than it has."""
    where = str(file)
    with understood(file, _AGAIN), zipfile.ZipFile(file) as opened:
        packed = sum(member.compress_size for member in opened.infolist())
        whole = sum(member.file_size for member in opened.infolist())
        if whole > _MOST_BYTES or whole > _MOST_TIMES_LARGER * packed + (1 << 20):
            text = f"unpacks to {whole} bytes from {packed}, which no measurements do"
            raise UnreadableFile(text, where=where, fix=_AGAIN)
        for member in opened.infolist():
            if not member.filename.endswith(".npy"):
                raise UnreadableFile(
                    f"{member.filename!r:.80} is no array", where=where, fix=_AGAIN
                )
            with opened.open(member) as stream:
                needed = _declared_bytes(stream)
            if needed is None or needed > member.file_size:
                text = f"the array {member.filename!r:.80} holds objects, or less than it declares"
                raise UnreadableFile(text, where=where, fix=_AGAIN)
        with np.load(file, allow_pickle=False) as arrays:
            return Arrays(file, {key: arrays[key] for key in arrays.files})


def _declared_bytes(stream: Any) -> int | None:
    """What the header of an array says that follows it; None for objects. Raises ValueError."""
    version = np.lib.format.read_magic(stream)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise ValueError(f"version {version} of npy")
    shape, _, kind = read[version](stream)
    if min(shape, default=0) < 0 or kind.hasobject:
        return None
    return math.prod(shape) * kind.itemsize
