"""The cells of a log, some at a time: unpacked, decoded, below the line that names the columns."""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from jostle._base.untrusted import Unpacked, parquet_file, require_regular
from jostle.data.read._log_shapes import shaped
from jostle.data.tables._read_table import text_of
from jostle.data.tables.lines import encoding_of, foreign_text, require_text
from jostle.errors import UnreadableFile

_BLOCK = 16 << 20  # bytes at a time
_HEAD = 1 << 16
_ABOVE = 20  # lines that may stand above the names


class LogStream:
    """A log. words: what its columns may be called. printed_by: the command that makes one. After reading,
    understood and notes say what it is, and lost holds the cells of lines that cannot be read."""

    def __init__(self, file: Any, where: str, words: frozenset[str], printed_by: str) -> None:
        self.file, self.where, self.words, self.printed_by = file, where, words, printed_by
        self.understood: list[str] = []
        self.notes: list[str] = []
        self.lost: list[list[str]] = []
        self._mended: list[list[str]] = []

    def cells(self) -> Iterator[dict[str, Any]]:
        """Return columns of text by name. Raises UnreadableFile."""
        if self.where.endswith((".parquet", ".pq")):
            yield from _parquet_cells(self.file, self.where)
            return
        try:
            with _opened(self.file) as raw:
                stream = Decoded(raw)
                head = stream.peek(_HEAD)
                if not head.strip():
                    raise UnreadableFile("the file is empty", where=self.where, fix=self._fix)
                shape = None
                if _is_no_table(head):
                    whole = stream.rest()
                    shape = shaped(whole.decode("utf-8", "replace"), self.where)
                    stream = Decoded(io.BytesIO(whole))
                if shape is None:
                    yield from self._table(stream, head)
                elif shape[1]:
                    self.understood.append(f"read as {shape[0]}")
                    yield {name: pa.array(values, pa.string()) for name, values in shape[1].items()}
                if stream.is_foreign:
                    self.notes.append("bytes that are no UTF-8 were read as Latin-1")
        except (pa.ArrowException, OSError, EOFError) as error:
            if "Empty CSV" not in str(error):  # a header alone: no job
                raise _unreadable(error, self.where) from None

    @property
    def _fix(self) -> str:
        told = f"Print it so: {self.printed_by}." if self.printed_by else ""
        return told or "Its first line names columns."

    def _table(self, stream: Decoded, head: bytes) -> Iterator[dict[str, Any]]:
        names, delimiter, skipped = self._header(head)
        for _ in range(skipped + 1):
            stream.readline()
        if skipped:
            self.notes.append(f"{skipped} lines above the names of the columns are left out")
        if not stream.peek(1):
            return  # a header alone: no job
        parse = pyarrow.csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if delimiter != "|" else False,
            invalid_row_handler=lambda row: self._skip(row.text, names, delimiter),
        )
        convert = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        # Block by block: Arrow's own reader of streams reads ahead in a thread, which outlives an error.
        for block in _blocks(stream):
            read = pyarrow.csv.ReadOptions(
                block_size=len(block) + 1, use_threads=False, column_names=names
            )
            table = pyarrow.csv.read_csv(pa.py_buffer(block), read, parse, convert)
            for batch in table.to_batches():
                yield dict(zip(names, batch.columns, strict=True))
        if self._mended:
            texts = [pa.array(column, pa.string()) for column in zip(*self._mended, strict=True)]
            yield dict(zip(names, texts, strict=True))

    def _skip(self, text: str, names: list[str], delimiter: str) -> str:
        cells, free = text.split(delimiter), [name.lower() for name in names]
        if delimiter == "|" and len(cells) > len(names) and "jobname" in free:
            at = free.index("jobname")
            end = at + 1 + len(cells) - len(names)
            self._mended.append([*cells[:at], "|".join(cells[at:end]), *cells[end:]])
        elif text.strip():
            self.lost.append(cells)
        return "skip"

    def _header(self, head: bytes) -> tuple[list[str], str, int]:
        """Return (names, what parts them, lines above them). Raises UnreadableFile."""
        lines = head.decode("utf-8-sig", "replace").splitlines() or [""]
        known = [
            sum(cell.strip(' "').lower() in self.words for cell in line.split(_delimiter(line)))
            for line in lines[:_ABOVE]
        ]
        at = known.index(max(known)) if max(known) > 1 else 0
        delimiter = _delimiter(lines[at])
        if delimiter not in lines[at]:
            raise UnreadableFile("its first line has one cell", where=self.where, fix=self._fix)
        (names,) = csv.reader([lines[at].strip("\r\n")], delimiter=delimiter)
        names = [name.strip() or f"column {place}" for place, name in enumerate(names)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            what = f"the column {twice[0]!r} is there more than once"
            raise UnreadableFile(what, where=self.where, fix="Rename one of them.")
        return names, delimiter, at


def _blocks(stream: Decoded) -> Iterator[bytes]:
    """Read whole lines, about _BLOCK bytes at a time. Raises ArrowInvalid for one longer than two blocks."""
    held = b""
    while part := stream.read(_BLOCK):
        held += part
        end = max(held.rfind(b"\n"), held.rfind(b"\r")) + 1
        if held[:end].strip():
            yield held[:end]
            held = held[end:]
        if len(held) > 2 * _BLOCK:
            raise pa.ArrowInvalid(f"a line has more than {len(held)} bytes")
    if held.strip():
        yield held


def _delimiter(line: str) -> str:
    return max("|,;\t", key=line.count)


def _is_no_table(head: bytes) -> bool:
    """Return whether a log begins as none that has a delimiter and a header does."""
    lines = [line for line in head.splitlines()[:20] if line.strip()]
    first = lines[0].lstrip(b"\xef\xbb\xbf \t") if lines else b""
    dashes = any(set(line.strip()) <= set(b"- ") and b"--" in line for line in lines[1:])
    parts = sum(first.count(one) for one in (b"|", b",", b";", b"\t"))
    return (
        first[:1] in (b"{", b"[", b"#", b"=", b"<")
        or (parts == 0 and len(first.split()) > 2)
        or dashes
        or b" = " in first
        or re.match(rb'"JOB_|JobId=|Job Id: |0\d\d \(\d', first) is not None
        or (first[2:3] == b"/" and first[19:20] == b";")
        or (parts == 0 and first.count(b":") > 20)
    )


class Decoded:
    """A stream in UTF-8, whatever its bytes: what is none counts as Latin-1."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held, self.is_foreign = b"", False
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def peek(self, count: int) -> bytes:
        while len(self._held) < count and (part := self._stream.read(count - len(self._held))):
            self._held += part
        return self._held[:count]

    def readline(self) -> bytes:
        line, mark, rest = self._held.partition(b"\n")
        if not mark:
            line, rest = line + self._stream.readline(), b""
        self._held = rest
        return line + mark

    def rest(self) -> bytes:
        return b"".join(iter(lambda: self.read(_BLOCK), b""))

    def read(self, count: int) -> bytes:
        part, self._held = (self._held, b"") if self._held else (self._stream.read(count), b"")
        try:
            self._decoder.decode(part, final=not part)
        except UnicodeDecodeError:
            self._decoder.reset()
            self.is_foreign = True
            return foreign_text(part).encode()
        return part


@contextmanager
def _opened(file: Any) -> Iterator[Any]:
    if file == "-" or not isinstance(file, (str, os.PathLike)):
        yield sys.stdin.buffer if file == "-" else file
        return
    require_regular(file)
    with open(file, "rb") as raw:
        head = raw.peek(2)[:2]
        require_text(raw.peek(8), str(file))
        if encoding_of(raw.peek(64)) != "utf-8-sig":
            yield io.BytesIO(text_of(raw.read(), str(file)).encode())
        else:
            is_packed = head == b"\x1f\x8b"
            yield Unpacked(raw, os.fstat(raw.fileno()).st_size, str(file)) if is_packed else raw


def _unreadable(error: Exception, where: str) -> UnreadableFile:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    is_file = not isinstance(error, (FileNotFoundError, IsADirectoryError))
    fix = "Its first line names columns." if is_file else "Check the name."
    return UnreadableFile(f"not a readable log: {text.splitlines()[0]}", where=where, fix=fix)


def _text(column: Any) -> Any:
    if pa.types.is_duration(column.type):
        seconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return pa.array([None if one is None else f"{one / 1e6}s" for one in seconds.to_pylist()])
    return column.cast(pa.string())


def _parquet_cells(file: Any, where: str) -> Iterator[dict[str, Any]]:
    """Read columns of a Parquet file as text, a batch at a time. Raises UnreadableFile."""
    try:
        is_path = isinstance(file, (str, os.PathLike))
        require_regular(where)
        size = os.stat(file).st_size if is_path else file.seek(0, 2)
        table = parquet_file(where, file, size)
        for batch in table.iter_batches():
            texts = [_text(column) for column in batch.columns]
            yield dict(zip(batch.schema.names, texts, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error, where) from None
