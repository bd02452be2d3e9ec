"""Reading and writing WebAssembly modules, as far as counting instructions needs it.

From the WebAssembly core specification 2.0, chapter 5 (binary format), with multiple memories,
64-bit memories, tail calls and exceptions. What is not covered (atomics, garbage collection, typed
function references, the old exceptions) is refused by name, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from jostle.collect.kernels.opcodes._opcodes import (
    MISC,
    PREFIX_ATOMIC,
    PREFIX_GC,
    PREFIX_MISC,
    PREFIX_SIMD,
    SINGLE,
    VECTOR,
    vector_shape,
)
from jostle.errors import BadData

MAGIC = b"\0asm\1\0\0\0"

CUSTOM, TYPE, IMPORT, FUNCTION, TABLE, MEMORY, GLOBAL, EXPORT = range(8)
START, ELEMENT, CODE, DATA, DATA_COUNT, TAG = range(8, 14)

# The order in which a module's sections must stand.
ORDER = (
    *(TYPE, IMPORT, FUNCTION, TABLE, MEMORY, TAG, GLOBAL, EXPORT),
    *(START, ELEMENT, DATA_COUNT, CODE, DATA),
)


class Reader:
    """A position in bytes. Raises BadData where the bytes end too soon."""

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def fail(self, what: str) -> NoReturn:
        """Raise BadData at this position."""
        raise BadData(f"not a module that can be counted: {what}", where=f"byte {self.at}")

    def byte(self) -> int:
        """Return the next byte."""
        if self.at >= self.end:
            self.fail("it ends too soon")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count: int) -> bytes:
        """Return the next count bytes."""
        if count > self.end - self.at:
            self.fail("it ends too soon")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self) -> int:
        """Return the next unsigned LEB128 number; for a signed one, only its length is right."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 70:
                self.fail("a number is too long")

    def name(self) -> str:
        """Return the next length-prefixed UTF-8 text."""
        return self.take(self.number()).decode("utf-8", "replace")


def unsigned(value: int) -> bytes:
    """Return the value in unsigned LEB128."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(frozen=True)
class Instruction:
    """A decoded WebAssembly instruction. name: as in the specification. start, end: the bytes it takes in the
    module."""

    name: str
    start: int
    end: int


def sections(module: bytes) -> list[tuple[int, int, int]]:
    """Return (section number, start, end of its content) in file order. Raises BadData."""
    reader = Reader(module)
    if module[:8] != MAGIC:
        reader.fail("it does not begin like a version 1 module")
    reader.at = 8
    places = []
    while reader.at < reader.end:
        number, size = reader.byte(), reader.number()
        start = reader.at
        reader.take(size)
        if number not in ORDER and number != CUSTOM:
            reader.fail(f"section {number} is unknown")
        places.append((number, start, start + size))
    return places


def imported_globals(module: bytes, start: int, end: int) -> int:
    """Return how many globals an import section brings: they come first in the numbering of globals."""
    reader, count = Reader(module, start, end), 0
    for _ in range(reader.number()):
        reader.name()
        reader.name()
        kind = reader.byte()
        if kind == 0:  # function: type
            reader.number()
        elif kind == 1:  # table: reference type, limits
            reader.byte()
            _limits(reader)
        elif kind == 2:
            _limits(reader)
        elif kind == 3:  # global: value type, mutability
            reader.take(2)
            count += 1
        elif kind == 4:  # tag: attribute, type
            reader.byte()
            reader.number()
        else:
            reader.fail(f"an import of kind {kind} is unknown")
    return count


def exported_functions(module: bytes, where: str) -> set[str]:
    """Return the names of the functions that a module exports. Raises BadData naming the file."""
    try:
        for number, start, end in sections(module):
            if number == EXPORT:
                reader, names = Reader(module, start, end), set()
                for _ in range(reader.number()):
                    name, kind = reader.name(), reader.byte()
                    reader.number()
                    if kind == 0:
                        names.add(name)
                return names
    except BadData as error:
        raise BadData(f"{error.what} at {error.where}", where=where) from None
    return set()


def function_bodies(module: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, start of the first instruction, end) of each function of a code section."""
    reader = Reader(module, start, end)
    for _ in range(reader.number()):
        size = reader.number()
        body = reader.at
        reader.take(size)
        local = Reader(module, body, body + size)
        for _ in range(local.number()):
            local.number()
            _value_type(local)
        yield body, local.at, body + size


def instructions(module: bytes, start: int, end: int) -> Iterator[Instruction]:
    """Yield the instructions between two positions. Raises BadData for those that are not covered."""
    reader = Reader(module, start, end)
    while reader.at < end:
        begin = reader.at
        name, shape = _opcode(reader)
        _skip(reader, shape)
        yield Instruction(name, begin, reader.at)


def _opcode(reader: Reader) -> tuple[str, str]:
    opcode = reader.byte()
    if opcode in SINGLE:
        return SINGLE[opcode]
    if opcode == PREFIX_MISC:
        number = reader.number()
        if number in MISC:
            return MISC[number]
        reader.fail(f"instruction 0xfc {number} is not covered")
    if opcode == PREFIX_SIMD:
        number = reader.number()
        shape = vector_shape(number)
        if shape is None:
            reader.fail(f"vector instruction {number} is not covered")
        return VECTOR, shape
    if opcode == PREFIX_ATOMIC:
        reader.fail("atomic instructions (threads) are not covered")
    if opcode == PREFIX_GC:
        reader.fail("garbage-collection instructions are not covered")
    return reader.fail(f"instruction 0x{opcode:02x} is not covered")


def _skip(reader: Reader, shape: str) -> None:
    """Pass over the operands of an instruction. shape: a number of bytes, or a letter for each operand."""
    if shape in ("4", "8", "16"):
        reader.take(int(shape))
        return
    for kind in shape:
        _OPERANDS[kind](reader)


def _memory_operand(reader: Reader) -> None:
    # Bit 6 of the alignment says that a memory's number follows.
    if reader.number() & 0x40:
        reader.number()
    reader.number()


def _branch_table(reader: Reader) -> None:
    for _ in range(reader.number() + 1):
        reader.number()


def _value_types(reader: Reader) -> None:
    for _ in range(reader.number()):
        _value_type(reader)


def _catch_clauses(reader: Reader) -> None:
    for _ in range(reader.number()):
        if reader.byte() < 2:
            reader.number()
        reader.number()


def _value_type(reader: Reader) -> None:
    if reader.byte() in (0x63, 0x64):
        reader.fail("typed references are not covered")


def _block_type(reader: Reader) -> None:
    if reader.data[reader.at : reader.at + 1] in (b"\x63", b"\x64"):
        reader.fail("typed references are not covered")
    reader.number()


_OPERANDS: dict[str, Callable[[Reader], object]] = {
    "i": lambda reader: reader.number(),
    "m": _memory_operand,
    "b": _block_type,
    "v": _branch_table,
    "t": _value_types,
    "c": _catch_clauses,
    "l": lambda reader: reader.byte(),
}


def _limits(reader: Reader) -> None:
    flags = reader.byte()
    reader.number()
    if flags & 1:
        reader.number()
    if flags & 8:  # custom page size
        reader.number()
