"""Rows of Parquet and Arrow files, which take no more room than a table of their size does."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from jostle._base.untrusted import parquet_file, require_reason, text_bytes
from jostle.errors import UnreadableFile

_CELL_BYTES = 64  # that a cell of a table takes at least as an object
_MAGIC = b"ARROW1"  # how a file of Arrow begins and ends; a stream does not
_DICTIONARY = 2  # the kind of message that holds the words of a column


def arrow_rows(content: bytes, where: str, *, is_parquet: bool = False) -> list[dict[str, Any]]:
    """Return a mapping of columns to cells each. Raises UnreadableFile."""
    source = pa.BufferReader(content)
    try:
        if is_parquet:
            return parquet_file(where, source, len(content), _CELL_BYTES).read().to_pylist()
        is_file = content.startswith(_MAGIC)
        messages = _messages_of_file(content) if is_file else _messages_of_stream(source)
        require_reason(where, sum(map(_unpacked_bytes, messages)), len(content))
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        rows, taken = [], 0
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            batch.validate(full=True)
            taken += batch.num_rows * max(8, batch.num_columns * _CELL_BYTES)
            taken += sum(map(text_bytes, batch.columns))
            require_reason(where, taken, len(content))
            rows += batch.to_pylist()
        return rows
    except (OSError, pa.ArrowException, struct.error, IndexError) as error:
        kind = "Parquet" if is_parquet else "Arrow"
        raise UnreadableFile(f"not a readable {kind} file: {error}", where=where) from None


def _messages_of_stream(source: Any) -> Iterator[Any]:
    reader = pa.ipc.MessageReader.open_stream(source)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _messages_of_file(content: bytes) -> Iterator[Any]:
    """Yield those with words and cells, which the footer names."""
    (size,) = struct.unpack_from("<i", content, len(content) - len(_MAGIC) - 4)
    footer = content[-len(_MAGIC) - 4 - size :]
    for number in (2, 3):
        for at, _, _ in struct.iter_unpack(
            "<qqq", _vector(footer, _followed(footer, 0), number, 24)
        ):
            yield pa.ipc.read_message(pa.py_buffer(memoryview(content)[at:]))


def _unpacked_bytes(message: Any) -> int:
    """Return bytes of a message's cells once they are unpacked, which stand before each packed buffer."""
    if message.body is None:
        return 0
    table, body = message.metadata.to_pybytes(), message.body
    root = _followed(table, 0)
    batch = _followed(table, _field(table, root, 2))
    if table[_field(table, root, 1)] == _DICTIONARY:
        batch = _followed(table, _field(table, batch, 1))
    if not _field(table, batch, 3):  # nothing is packed
        return body.size
    places = struct.iter_unpack("<qq", _vector(table, batch, 2, 16))
    heads = (struct.unpack_from("<q", body, at)[0] for at, size in places if size)
    return body.size + sum(max(0, head) for head in heads)


# What stands in a flatbuffer: fields by their numbers, as Message.fbs and File.fbs of Arrow have them.
def _field(buffer: bytes, table: int, number: int) -> int:
    """Return where a field of a table stands; 0 for one that it has not."""
    names = table - struct.unpack_from("<i", buffer, table)[0]
    (size,) = struct.unpack_from("<H", buffer, names)
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", buffer, names + place)[0] if place < size else 0
    return table + offset if offset else 0


def _followed(buffer: bytes, at: int) -> int:
    return at + struct.unpack_from("<I", buffer, at)[0]


def _vector(buffer: bytes, table: int, number: int, size: int) -> bytes:
    """Return the items of a vector, each of so many bytes."""
    at = _field(buffer, table, number)
    if not at:
        return b""
    at = _followed(buffer, at)
    (count,) = struct.unpack_from("<I", buffer, at)
    return buffer[at + 4 : at + 4 + size * count]
