"""Lines of profilers' CSV files: cells by plain names of columns, numbers in SI units, located errors."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jostle.errors import BadRows, UnreadableFile

MOST_DIGITS = 18  # of a number: no stream, queue or count has more, and Python refuses thousands


def plain(name: str) -> str:
    """Rewrite a column's name so that `Grid_Size X` and `gridsizex` are the same."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def encoding_of(head: bytes) -> str:
    """Detect the encoding: by the byte-order mark, which some shells and editors write, or zeros beside each
    letter; UTF-8 without one."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = [at for at in (0, 1) if len(head) > 3 and head[at::2][:99].strip(b"\0") == b""]
    return ("utf-16-be", "utf-16-le")[zeros[0]] if len(zeros) == 1 else "utf-8-sig"


_PACKED = {
    b"BZh": ("packed by bzip2", "bunzip2 FILE"),
    b"\xfd7zXZ": ("packed by xz", "unxz FILE"),
    b"\x28\xb5\x2f\xfd": ("packed by zstd", "unzstd FILE"),
    b"PK\x03\x04": ("a spreadsheet or a zip", "unzip FILE; a spreadsheet is saved as CSV"),
}


def require_text(head: bytes, where: str) -> None:
    """Raises UnreadableFile for what begins as a file does that is packed otherwise than by gzip."""
    for magic, (what, command) in _PACKED.items():
        if head.startswith(magic):
            raise UnreadableFile(f"it is {what}", where=where, fix=f"Unpack it: {command}.")


def foreign_text(part: bytes) -> str:
    """Read bytes that are no UTF-8 as spreadsheets of Western languages write them."""
    try:
        return part.decode("cp1252")
    except UnicodeDecodeError:
        return part.decode("latin-1")


def csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, cells) without `==PID==` lines and empty ones."""
    try:
        with path.open("rb") as file:
            encoding = encoding_of(file.read(2))
        with path.open(newline="", encoding=encoding, errors="replace") as file:
            quotes, last = 0, "\n"

            def counted() -> Iterator[str]:
                nonlocal quotes, last
                for last in file:
                    quotes += last.count('"')
                    yield last

            reader = csv.reader(counted())
            for row in reader:
                if row and not row[0].startswith("==") and any(cell.strip() for cell in row):
                    yield reader.line_num, row
    except (OSError, UnicodeError, csv.Error) as error:
        text = f"cannot be read as CSV: {error}"
        raise UnreadableFile(text, where=str(path), fix="Record it again.") from None
    if quotes % 2 or not last.endswith(("\n", "\r")):
        inside = "a text in quotes" if quotes % 2 else "its last line, which has no end"
        raise UnreadableFile(f"cut off inside {inside}", where=str(path), fix="Record it again.")


def csv_table(path: Path) -> tuple[list[str], Iterator[Line]]:
    """Return (plain columns, lines) of a table whose first line is its header."""
    rows = csv_lines(path)
    _, columns = next(rows, (0, []))
    return list(map(plain, columns)), table_lines(rows, columns, str(path))


def table_lines(
    rows: Iterator[tuple[int, list[str]]],
    columns: Sequence[str],
    where: str,
    units: Mapping[str, str] | None = None,
) -> Iterator[Line]:
    """Yield the rows below a header. units: of plain columns. Raises BadRows for one of another width."""
    names = [plain(column) for column in columns]
    for number, cells in rows:
        if len(cells) != len(names):
            raise bad_line(
                number,
                f" has {len(cells)} columns, the header {len(names)}: cut off?",
                where,
                "Record or copy the file again.",
            )
        yield Line(dict(zip(names, cells, strict=True)), number, where, units or {})


@dataclass(frozen=True)
class Line:
    """A row of a log, its cells by plain names. cells: by plain names of columns, of which formats have
    several spellings. units: of columns."""

    cells: Mapping[str, str]
    number: int
    where: str
    units: Mapping[str, str] = field(default_factory=dict[str, str])

    def text(self, *columns: str) -> str | None:
        """Return the first cell of these columns that holds something; None if none does."""
        cells = (self.cells.get(column, "") for column in columns)
        return next((cell for cell in cells if cell.strip()), None)

    def value(self, *columns: str, scale: Mapping[str, float] | None = None) -> float | None:
        """Return a number, in SI units by `scale`, a percentage as a ratio; None without one. Raises
        BadRows."""
        cell = (self.text(*columns) or "-").strip()
        if cell == "-":
            return None
        unit = next((self.units[column] for column in columns if column in self.units), "")
        is_plain = cell.isascii() and "_" not in cell  # as `cells.float_of` has it
        digits = cell.removesuffix("%").replace(",", "") if is_plain else ""
        try:
            # Whole numbers stay whole: clocks count nanoseconds beyond what a float can.
            number = float(digits) if "." in digits or scale else int(digits)
            number = number / 100 if cell.endswith("%") else number
            number = number * scale[unit] if scale else number
        except (ValueError, KeyError, OverflowError):
            number = math.nan
        if not -1e300 < number < 1e300:
            raise self.bad(f": {columns[0]} is {cell[:40]!r}, no number in unit {unit[:20]!r}")
        return number

    def whole(self, *columns: str, scale: Mapping[str, float] | None = None) -> int | None:
        """Return the nearest whole number."""
        number = self.value(*columns, scale=scale)
        return None if number is None else round(number)

    def bad(self, problem: str) -> BadRows:
        return bad_line(self.number, problem, self.where, "Record or copy the file again.")


def bad_line(number: int, problem: str, where: str, fix: str | None = None) -> BadRows:
    """Return the error for a line that cannot be used. problem: continues "line 7"."""
    return BadRows(
        f"line {number}{problem}", rows=[(number, problem.strip(": "))], where=where, fix=fix
    )
