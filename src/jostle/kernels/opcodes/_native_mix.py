"""The instructions a native program executes, by mnemonic: valgrind's callgrind with objdump.

Callgrind counts every instruction executed by its address, and what it reads and writes; objdump says what
stands there. The counts are exact; a program takes twenty to a hundred times as long meanwhile.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import BadData, NotPermitted, UnreadableFile

_PREFIXES = frozenset(
    ["rep", "repz", "repnz", "repe", "repne", "lock", "bnd", "notrack", "data16", "cs", "ds"]
)
_SECTIONS = tuple(
    f"--section={name}" for name in (".text", ".plt", ".plt.sec", ".plt.got", ".init", ".fini")
)
# x86-64 and aarch64 mnemonics by what they do, the first that fits.
_CLASSES: dict[str, str] = {
    "call": r"call|bl$|blr|svc|syscall",
    "branch": r"j|loop|b$|b\.|br$|cb|tb|ret",
    "string": r"(stos|lods|scas)[bwlq]?$|(movs|cmps)[bwlq]$",
    "vector": r"v?p(?!op|ush)\w|v\w|\w+p[sd]$|mov[au]p|movdq|ld\d|st\d|fml|[us]?addv",
    "float": r"\w+s[sd]$|f\w|cvt\w|[us]cvtf",
    "stack": r"push|pop(?!cnt)|enter|leave",
    "shift_multiply": r"i?mul|i?div|[us](mul|div)|[us]?m(add|sub)|mneg|s[ha][lr]|r[oc][lr]|ls[lr]|asr",
    "move": r"c?mov|lea|xchg|ld|st|adr|csel|bswap|cltq|cqto|cwt",
    "integer": r"add|adc|sub|sbb|inc|dec|neg|cmp|test|and|or|xor|not|bt|"
    r"set|eor|bic|cset|sxt|uxt|ubfx|sbfx|ubfm|sbfm|clz|lzcnt|tzcnt|popcnt",
}


@dataclass(frozen=True)
class NativeMix:
    """mnemonics: executions by name. unknown: of instructions that no file on disk holds. reads, writes:
    accesses to memory, the stack's included; None where callgrind was not asked to count them."""

    mnemonics: dict[str, int]
    unknown: int
    reads: int | None = None
    writes: int | None = None

    @property
    def instructions(self) -> int:
        """All that was executed."""
        return sum(self.mnemonics.values()) + self.unknown

    def columns(self) -> dict[str, int | None]:
        """int64 features, always the same: instructions by what they do, and accesses to memory."""
        classes = dict.fromkeys((*_CLASSES, "other"), 0)
        for name, count in self.mnemonics.items():
            classes[class_of(name)] += count
        classes["other"] += self.unknown
        values = (self.instructions, *classes.values(), self.reads, self.writes)
        return dict(zip(self.column_names(), values, strict=True))

    @staticmethod
    def column_names() -> list[str]:
        """The names in columns()."""
        names = ("instructions", *_CLASSES, "other", "memory_read", "memory_write")
        return [f"native_{name}" for name in names]


def class_of(mnemonic: str) -> str:
    """call, branch, string, vector, float, stack, shift_multiply, move, integer or other."""
    return next((kind for kind, fits in _CLASSES.items() if re.match(fits, mnemonic)), "other")


def native_mix(words: Sequence[str], *, timeout_seconds: float = 300.0) -> NativeMix:
    """What one run of a command line executes, its children not counted.

    Raises NotPermitted where valgrind or objdump is missing, UnreadableFile for an unknown program,
    BadData where the command fails or takes too long.
    """
    _require("valgrind", "valgrind")
    _require("objdump", "binutils")
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UnreadableFile("no such program, or not executable", where=" ".join(words))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--dump-instr=yes",
            "--cache-sim=yes",  # for its counts of reads and writes
            f"--callgrind-out-file={out}",
        ]
        try:
            done = subprocess.run(
                [*command, program, *words[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BadData(
                f"it takes more than {timeout_seconds:g} s under callgrind", where=words[0]
            ) from None
        if done.returncode or not out.exists():
            _, _, last = done.stderr.decode(errors="replace").strip().rpartition("\n")
            raise BadData(
                f"it ended with exit code {done.returncode}: {last}",
                where=" ".join(words),
            )
        return read_callgrind(out)


def _require(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        raise NotPermitted(
            f"this needs {tool}, which is not installed", fix=f"Debian: apt install {package}."
        )


def read_callgrind(path: str | os.PathLike[str]) -> NativeMix:
    """The mix in an output of `valgrind --tool=callgrind --dump-instr=yes --cache-sim=yes`, whose programs
    and libraries must still lie where they ran. Raises UnreadableFile, BadData, and NotPermitted without
    objdump."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None
    try:
        counted = parse_callgrind(text)
    except BadData as error:
        raise BadData(error.what, where=str(path), fix=error.fix) from None
    _require("objdump", "binutils")
    mnemonics: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for program, counts in counted.executed.items():
        names = _mnemonics(program)
        for address, count in counts.items():
            if address in names:
                mnemonics[names[address]] += count
            else:
                unknown[program] += count
    if unknown.total() > mnemonics.total():
        raise BadData(
            f"most instructions are of {unknown.most_common(1)[0][0]!r}, which cannot be read here",
            where=str(path),
            fix="Read it on the machine where it was recorded.",
        )
    totals = counted.totals
    mix = NativeMix(
        dict(sorted(mnemonics.items())), unknown.total(), totals.get("Dr"), totals.get("Dw")
    )
    if mix.instructions != totals["Ir"]:
        raise BadData(
            f"callgrind counted {totals['Ir']} instructions, of which {mix.instructions} were found",
            where=str(path),
        )
    return mix


@dataclass(frozen=True)
class Counted:
    """executed: {object file: {address: executions}}. totals: {event: count} of the whole run; `Ir` are
    instructions, `Dr` and `Dw` reads and writes."""

    executed: dict[str, Counter[int]]
    totals: dict[str, int]


def parse_callgrind(text: str) -> Counted:
    """An output with positions `instr line`. Raises BadData naming the line."""
    executed: dict[str, Counter[int]] = {}
    names: dict[str, str] = {}
    events: list[str] = []
    totals: list[int] = []
    objects, address, skip = "???", 0, False
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            if line.startswith("ob="):
                objects = _name(line[3:], names)
            elif line.startswith("cob="):
                _name(line[4:], names)
            elif line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith("positions:") and line.split()[1:] != ["instr", "line"]:
                raise BadData("addresses are not there", fix="Run callgrind with --dump-instr=yes.")
            elif line.startswith(("summary:", "totals:")):
                totals = [int(cell) for cell in line.split()[1:]]
            elif line.startswith("calls="):
                skip = True  # the next line is what the call cost, counted where it is executed
            elif line[:1] in "+-*0123456789" and line:
                position, _, *costs = line.split()
                if position != "*":
                    offset = int(position.lstrip("+-"), 16 if "0x" in position else 10)
                    sign = {"+": 1, "-": -1}.get(position[0])
                    address = offset if sign is None else address + sign * offset
                if costs and not skip:
                    executed.setdefault(objects, Counter())[address] += int(costs[0])
                skip = False
        except ValueError:
            raise BadData(f"line {number}: not a line of callgrind's: {line[:60]!r}") from None
    if not totals or events[:1] != ["Ir"]:
        raise BadData("not a whole output of callgrind")
    # Events that never happened at the end of a line are left out of it.
    padded = [*totals, *[0] * (len(events) - len(totals))]
    return Counted(executed, dict(zip(events, padded, strict=False)))


def _name(text: str, names: dict[str, str]) -> str:
    """`(3) /usr/bin/x` the first time, `(3)` later."""
    number, _, name = text.partition(" ")
    if name:
        names[number] = name
    return names.get(number, number)


def _mnemonics(path: str) -> dict[int, str]:
    if not Path(path).is_file():
        return {}
    done = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", *_SECTIONS, path],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return dict(_listing(done.stdout.splitlines()))


def _listing(lines: Iterable[str]) -> Iterable[tuple[int, str]]:
    for line in lines:
        place, colon, rest = line.partition(":")
        words = rest.split()
        if not colon or not words or not re.fullmatch(r"\s*[0-9a-f]+", place):
            continue
        plain = [word for word in words if word.rstrip(",") not in _PREFIXES]
        yield int(place, 16), plain[0] if plain else words[0]
