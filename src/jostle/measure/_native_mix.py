"""The instructions a native program executes, by mnemonic: valgrind's callgrind with objdump.

Callgrind counts every instruction executed by its address; objdump says what stands there. The
counts are exact; a program takes ten to sixty times as long meanwhile.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jostle.errors import BadData, NotPermitted, UnreadableFile

_PREFIXES = (
    "rep",
    "repz",
    "repnz",
    "repe",
    "repne",
    "lock",
    "bnd",
    "notrack",
    "data16",
    "cs",
    "ds",
)
_SECTIONS = tuple(
    f"--section={name}" for name in (".text", ".plt", ".plt.sec", ".plt.got", ".init", ".fini")
)
# x86-64 and aarch64 mnemonics by what they do, the first that fits.
_CLASSES: dict[str, str] = {
    "call": r"call|bl$|blr|svc|syscall",
    "branch": r"j|loop|b$|b\.|br$|cb|tb|ret",
    "vector": r"v?p(?!op|ush)\w|v\w|\w+p[sd]$|mov[au]p|movdq|ld\d|st\d|fml|[us]?addv",
    "float": r"\w+s[sd]$|f\w|cvt\w|[us]cvtf",
    "move": r"c?mov|lea|push|pop|xchg|ld|st|adr|csel|bswap|cltq|cqto|cwt",
    "integer": r"add|adc|sub|sbb|i?mul|i?div|inc|dec|neg|cmp|test|and|or|xor|not|sh|sa|ro|rc|bt|"
    r"set|lsl|lsr|asr|eor|orr|bic|mad|msub|cset|sxt|uxt|ubfx|sbfx|ubfm|sbfm|clz|lzcnt|tzcnt|popcnt",
}


@dataclass(frozen=True)
class NativeMix:
    """mnemonics: executions by name. unknown: of instructions that no file on disk holds."""

    mnemonics: dict[str, int]
    unknown: int

    @property
    def instructions(self) -> int:
        """All that was executed."""
        return sum(self.mnemonics.values()) + self.unknown

    def columns(self) -> dict[str, int]:
        """int64 features, always the same: instructions by what they do."""
        found = dict.fromkeys(self.column_names(), 0)
        found["native_instructions"] = self.instructions
        for name, count in self.mnemonics.items():
            found[f"native_{class_of(name)}"] += count
        found["native_other"] += self.unknown
        return found

    @staticmethod
    def column_names() -> list[str]:
        """The names in columns()."""
        return ["native_instructions", *(f"native_{name}" for name in (*_CLASSES, "other"))]


def class_of(mnemonic: str) -> str:
    """call, branch, vector, float, move, integer or other."""
    return next((kind for kind, fits in _CLASSES.items() if re.match(fits, mnemonic)), "other")


def native_mix(words: Sequence[str], *, timeout_seconds: float = 300.0) -> NativeMix:
    """What one run of a command line executes, its children not counted.

    Raises NotPermitted where valgrind or objdump is missing, UnreadableFile for an unknown program,
    BadData where the command fails or takes too long.
    """
    for tool, package in (("valgrind", "valgrind"), ("objdump", "binutils")):
        if shutil.which(tool) is None:
            raise NotPermitted(
                f"this needs {tool}, which is not installed", fix=f"Debian: apt install {package}."
            )
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UnreadableFile("no such program, or not executable", where=" ".join(words))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--dump-instr=yes",
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
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise BadData(
                f"it ended with exit code {done.returncode}: {said[-1] if said else ''}",
                where=" ".join(words),
            )
        executed, total = parse_callgrind(out.read_text(encoding="utf-8", errors="replace"))
    found: Counter[str] = Counter()
    unknown = 0
    for path, counts in executed.items():
        names = _mnemonics(path)
        for address, count in counts.items():
            if address in names:
                found[names[address]] += count
            else:
                unknown += count
    mix = NativeMix(dict(sorted(found.items())), unknown)
    if mix.instructions != total:
        raise BadData(f"callgrind counted {total}, of which {mix.instructions} were found")
    return mix


def parse_callgrind(text: str) -> tuple[dict[str, Counter[int]], int]:
    """({object file: {address: executions}}, all) of an output with positions `instr line`."""
    executed: dict[str, Counter[int]] = {}
    names: dict[str, str] = {}
    objects, address, total, skip = "???", 0, None, False
    for line in text.splitlines():
        if line.startswith("ob="):
            objects = _name(line[3:], names)
        elif line.startswith("cob="):
            _name(line[4:], names)
        elif line.startswith(("summary:", "totals:")):
            total = int(line.split()[1])
        elif line.startswith("calls="):
            skip = True  # the next line is what the call cost, counted where it is executed
        elif line[:1] in "+-*0123456789" and line:
            position, *_, cost = line.split()
            if position != "*":
                number = int(position.lstrip("+-"), 16 if "0x" in position else 10)
                sign = {"+": 1, "-": -1}.get(position[0])
                address = number if sign is None else address + sign * number
            if skip:
                skip = False
                continue
            if len(line.split()) > 2:
                executed.setdefault(objects, Counter())[address] += int(cost)
    if total is None:
        raise BadData("not an output of callgrind")
    return executed, total


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
