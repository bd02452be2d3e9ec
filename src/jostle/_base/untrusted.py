"""What came from elsewhere is not trusted: foreign errors become sentences, what unpacks without end stops.

Readers check what they know to check. For what nobody thought of there is `understood`: whatever a file
makes a reader or a library raise is an UnreadableFile that names the file.
"""

from __future__ import annotations

import errno
import gzip
import os
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from os import PathLike, fspath
from typing import IO, Any, TypeVar

import numpy as np

from jostle.errors import JostleError, UnreadableFile

# Traces shrink to a tenth or a thirtieth; what shrinks to less than a five-hundredth holds nothing.
_MOST_TIMES_LARGER = 500
_ALWAYS_ALLOWED_BYTES = 1 << 28
T = TypeVar("T")
_AGAIN = "Copy or record it again."


@contextmanager
def understood(where: object, fix: str = _AGAIN) -> Iterator[None]:
    """Raises UnreadableFile for every error that is not Jostle's own, and for a file that may never end.

    where: the file, or a stream.
    """
    name = fspath(where) if isinstance(where, (str, PathLike)) else getattr(where, "name", None)
    place = str(name if name is not None else "<stream>")
    try:
        if isinstance(where, (str, PathLike)):
            require_regular(where)
        yield
    except JostleError:
        raise
    except OSError as error:
        raise UnreadableFile(
            f"cannot be read: {error.strerror or error}", where=place, fix=fix
        ) from error
    except RecursionError as error:
        raise UnreadableFile("nested too deep to be read", where=place, fix=fix) from error
    except MemoryError as error:
        raise UnreadableFile(
            "needs more memory than there is", where=place, fix="Read a part of it."
        ) from error
    except Exception as error:
        line = (str(error).strip() or "no reason given").splitlines()[0][:200]
        raise UnreadableFile(
            f"cannot be understood ({type(error).__name__}: {line})", where=place, fix=fix
        ) from error


def understands(field: str) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Wrap an importer's `read` so that `understood` explains errors in the file that this field names."""

    def decorate(read: Callable[[Any], T]) -> Callable[[Any], T]:
        @wraps(read)
        def reading(self: Any) -> T:
            with understood(getattr(self, field)):
                return read(self)

        return reading

    return decorate


def most_unpacked(size: int) -> int:
    """Return bytes that a file of this size may unpack to: 500 times as many, and 256 MiB always."""
    return max(_ALWAYS_ALLOWED_BYTES, _MOST_TIMES_LARGER * size)


def require_reason(where: object, unpacked: int, size: int) -> None:
    """Refuse what unpacks to so many bytes from a file of that size. Raises UnreadableFile."""
    if unpacked > most_unpacked(size):
        raise UnreadableFile(
            f"unpacks to {unpacked} bytes of {size}, which no table does",
            where=str(where),
            fix="Write it anew in parts if you trust it.",
        )


def parquet_file(where: object, source: Any, size: int, cell_bytes: int = 8) -> Any:
    """Open a Parquet file that is known to unpack within reason: by its footer, by its cells, of which
    repeats take no room at all, and by its texts, each of which may stand for many.

    source: a path, or a file that can be read twice. size: its bytes. cell_bytes: what a cell takes at most
    once it is read, texts aside. Raises UnreadableFile, and what pyarrow does.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    footer, texts, cells = file.metadata, Counter[str](), 0
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    for group in groups:
        for n in range(group.num_columns):
            column, width = group.column(n), cell_bytes
            if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
                width += file.schema.column(n).length
            elif column.physical_type == "BYTE_ARRAY":
                most = column.num_values * column.total_uncompressed_size
                texts[column.path_in_schema] += most
            cells += column.num_values * width
    require_reason(where, max(cells, sum(group.total_byte_size for group in groups)), size)
    for path, most in texts.items():
        if most > most_unpacked(size):  # a text for each cell, as long as all of them: it may be
            column = pq.ParquetFile(source, read_dictionary=[path]).read([path]).column(0)
            cells += sum(map(text_bytes, column.chunks))
    require_reason(where, cells, size)
    return file


def text_bytes(array: Any) -> int:
    """Return bytes of an Arrow array once each of its cells stands for itself, told without unpacking any.

    array: what the format allows (as `validate(full=True)` has it).
    Raises UnreadableFile for types that repeat in other ways than by words and views of texts.
    """
    import pyarrow as pa
    from pyarrow import types

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return text_bytes(array.storage)
    if types.is_struct(kind):
        return sum(map(text_bytes, array.flatten()))
    if isinstance(array, (pa.ListArray, pa.LargeListArray, pa.FixedSizeListArray)):
        return text_bytes(array.flatten())
    if types.is_dictionary(kind) and types.is_primitive(kind.value_type):
        return array.nbytes
    if types.is_dictionary(kind) and not types.is_nested(kind.value_type):
        codes = array.indices.drop_null().to_numpy(zero_copy_only=False)
        return int(_lengths(array.dictionary)[codes].sum())
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return int(_lengths(array).sum())
    if types.is_nested(kind) or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        raise UnreadableFile(
            f"holds cells of {kind}", where="the table", fix="Write texts and numbers."
        )
    return array.nbytes


def _lengths(texts: Any) -> np.ndarray:
    """Count the bytes of each text. Returns (n,) int64."""
    import pyarrow.compute as pc
    from pyarrow import types

    if types.is_string_view(texts.type) or types.is_binary_view(texts.type):  # no kernel takes one
        heads = np.frombuffer(texts.buffers()[1], np.int32)[::4].astype(np.int64)
        there = texts.is_valid().to_numpy(zero_copy_only=False)
        return heads[texts.offset : texts.offset + len(texts)] * there
    return pc.fill_null(pc.call_function("binary_length", [texts]), 0).to_numpy().astype(np.int64)


def require_regular(path: str | PathLike[str]) -> None:
    """Refuse a pipe, a device, or a file that the kernel makes up: each may never end. Raises OSError."""
    try:
        status = os.stat(path)  # once: it may go at any moment
    except (OSError, ValueError):
        return
    is_regular = stat.S_ISREG(status.st_mode)
    if is_regular and not status.st_size:  # what the kernel makes up has no size
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            is_regular = not os.read(descriptor, 1)
        except OSError:
            is_regular = False
        finally:
            os.close(descriptor)
    if not (is_regular or stat.S_ISDIR(status.st_mode)):
        text = "it is no regular file, so it may never end; copy what it holds into one"
        raise OSError(errno.EINVAL, text, fspath(path))


class Unpacked:
    """A gzip file as a stream of bytes that ends with an error where it unpacks beyond reason.

    Raises UnreadableFile for a damaged file, and for one that unpacks to more than 500 times its size
    and more than 256 MiB.
    """

    def __init__(self, packed: IO[bytes], size: int, where: str) -> None:
        self._file, self._where = gzip.GzipFile(fileobj=packed), where
        self._left = most_unpacked(size)

    def read(self, count: int) -> bytes:
        """Read up to so many bytes; none at the end."""
        return self._counted(self._file.read, count)

    def readline(self) -> bytes:
        """Read what is left of a line, with its end."""
        return self._counted(self._file.readline, self._left + 1)

    def _counted(self, read: Callable[[int], bytes], count: int) -> bytes:
        try:
            part = read(count)
        except (OSError, EOFError, zlib.error) as error:
            raise UnreadableFile(f"damaged gzip: {error}", where=self._where, fix=_AGAIN) from None
        self._left -= len(part)
        if self._left < 0:
            raise UnreadableFile(
                f"unpacks to more than {_MOST_TIMES_LARGER} times its size, which no recording does",
                where=self._where,
                fix="Unpack it yourself if you trust it, and give the unpacked file.",
            )
        return part


def printable(text: str) -> str:
    """Return text as it can be stored and shown: no half of a character, and control characters spelled
    out."""
    if text.isprintable():
        return text
    whole = text.encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in whole)
