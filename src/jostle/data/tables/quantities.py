"""Texts of foreign tables as quantities: numbers, durations, sizes, shares, states; one rule a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.errors import BadData

_SPELLINGS = {
    1e-9: "ns nsec nsecond nanosecond nanoseconds",
    1e-6: "us µs μs usec usecond microsecond microseconds",
    1e-3: "ms msec msecond millisecond milliseconds",
    1.0: "s sec secs second seconds",
    60.0: "m min mins minute minutes",
    3600.0: "h hr hrs hour hours",
    86400.0: "d day days",
}
SECONDS = {name: factor for factor, names in _SPELLINGS.items() for name in names.split()}
_UNITS_BY_FACTOR = {SECONDS[name]: name for name in ("s", "ms", "us", "ns", "min", "h")}
_POWERS = {letter: power for power, letter in enumerate("kmgtpe", 1)}
NOTHING = {""} | set(
    "- -- -/- n/a #n/a n.a. na nan nat none <none> null (null) nil undefined unknown".split()  # noqa: SIM905
)
_TOLD_WHY = re.compile(r"\[[a-z/ ]+\]")  # as nvidia-smi: [N/A], [Not Supported], [Unknown Error]
_NOBODY = NOTHING - {"unknown", "undefined"}
_NOBODY |= {"alone", "solo", "nobody", "nothing", "idle", "isolated"}
_NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_COMMA = re.compile(r"[-+]?(?:[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]*),[0-9]+(?:[eE][-+]?[0-9]+)?")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_CLOCK = re.compile(
    r"(?:([0-9]+)-|([0-9]+) days?,? *)?(?:([0-9]+):)?([0-9]{1,4}):([0-9][0-9](?:\.[0-9]+)?)",
    re.IGNORECASE,
)
_ISO = re.compile(  # PT1H2M3.5S
    r"P(?=[0-9T])(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9.]+)S)?)?", re.IGNORECASE
)
_IN_THREES = re.compile("(?<=[0-9])[ '\u2019\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
# Of `1,5 GiB` or `26,1s`; `1,234 MB` may be either number.
_DECIMAL = re.compile(r"(?<![0-9.,])([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9.,])")
_COMMA_UNIT = re.compile(r"(?<![0-9.,])([0-9]+),([0-9]+)(?=\s*[a-zA-Z%×])")
_PART = re.compile(rf"({_NUMBER})\s*([a-zA-Zµμ]+)")
_SIZE = re.compile(rf"({_NUMBER})\s*([kmgtpe]?)(i?)(b|bytes?)?", re.IGNORECASE)
_RATE = re.compile(
    r"(?:[A-Za-z ]*(?:/| per )(s|sec|second|min|minute|h|hour)|[qrtfbi]p([smh])|[A-Za-z]*ops|hz)",
    re.IGNORECASE,
)


def unit_in_name(name: str) -> str | None:
    """Read the unit of time that a name ends in, such as `ms` of "Runtime (ms)"; None without one."""
    words = re.findall(r"[a-zµμ]+", name.lower())
    return _UNITS_BY_FACTOR.get(SECONDS.get(words[-1], 0.0)) if words else None


def bytes_in_name(name: str, *, base: int = 1000) -> float | None:
    """Read the bytes of the unit of memory that a name ends in, such as 1e6 of "Memory (MB)"; None without
    one. base: as of size_of."""
    words = re.findall(r"[a-z]+", name.lower())
    if not words or not re.fullmatch(r"[kmgt]i?b|bytes?", words[-1]):
        return None
    return size_of(f"1 {words[-1]}", base=base)


def without_unit(name: str) -> str:
    """Spell a name of a column in small letters, words joined by `_`, without the unit that it ends in."""
    words = re.findall(r"[a-z0-9µμ]+", name.lower())
    if len(words) > 1 and (bytes_in_name(words[-1]) or words[-1] in SECONDS):
        words.pop()
    return "_".join(words)


def is_nothing(cell: str) -> bool:
    """Return whether a cell says that nothing is known."""
    text = cell.strip().lower()
    return text in NOTHING or _TOLD_WHY.fullmatch(text) is not None


def is_nobody(name: str) -> bool:
    """Return whether a name of a co-runner says that there was none."""
    return name.strip().lower() in _NOBODY


def rate_seconds(unit: str) -> float:
    """Read the time of a unit of throughput: 1 s of steps/s, qps or Hz, 60 s of req/min; 0 of others."""
    match = _RATE.fullmatch(unit)
    return SECONDS[(match[1] or match[2] or "s").lower()] if match else 0.0


def number_of(text: str) -> float:
    """Read a plain number. Raises ValueError."""
    if re.fullmatch(_NUMBER, text) is None:
        raise ValueError(f"{text[:60]!r} is not a number")
    return float(text)


def duration_of(text: str) -> float:
    """Read seconds of `27m 24s`, `1-02:03:04`, `1 day, 2:03:04`, `PT1H2M` or `20 ms`. Raises ValueError."""
    text = _DECIMAL.sub(r"\1.\2", text)
    if match := _ISO.fullmatch(text.strip()):
        parts = zip(match.groups(), (86400, 3600, 60, 1), strict=True)
        return sum(number_of(part) * unit for part, unit in parts if part)
    if match := _CLOCK.fullmatch(text.strip()):
        days, more, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return 86400 * (days + more) + 3600 * hours + 60 * minutes + seconds
    parts = _PART.findall(text)
    rest = re.sub(r"[\s,]|\band\b", "", _PART.sub(" ", text))
    units = [SECONDS.get(unit, SECONDS.get(unit.lower())) for _, unit in parts]
    if not parts or rest or None in units:
        raise ValueError(f"{text[:60]!r} is no duration such as 20ms, 27m 24s or 1-02:03:04")
    return sum(
        float(number) * (unit or 0.0) for (number, _), unit in zip(parts, units, strict=True)
    )


def size_of(text: str, *, base: int = 1000) -> float:
    """Read bytes of `2.51 GiB`, `12.5 GB` or `4G`. base: of KB and its like; letters alone, as Slurm writes
    them, and KiB are of 1024. Raises ValueError."""
    match = _SIZE.fullmatch(_DECIMAL.sub(r"\1.\2", text.strip()))
    if match is None or not (match[2] or match[4]) or (match[3] and not match[2]):
        raise ValueError(f"{text[:60]!r} is no size such as 2.5 GiB or 12 GB")
    binary = match[3] or not match[4]
    return float(match[1]) * (1024 if binary else base) ** _POWERS.get(match[2].lower(), 0)


def share_of(text: str) -> float:
    """Read a share such as 30.93%, as a ratio. Raises ValueError."""
    if not text.endswith("%"):
        raise ValueError(f"{text[:60]!r} is no percentage")
    return number_of(_DECIMAL.sub(r"\1.\2", text[:-1].strip())) / 100


def factor_of(text: str) -> float:
    """Read a factor such as 1.32x. Raises ValueError."""
    if text[-1:] not in ("x", "X", "×"):
        raise ValueError(f"{text[:60]!r} is no factor such as 1.32x")
    return number_of(_DECIMAL.sub(r"\1.\2", text[:-1].strip()))


def _comma_of(text: str) -> float:
    if _COMMA.fullmatch(text) is None and re.fullmatch(r"[-+]?[0-9]+", text) is None:
        raise ValueError(f"{text[:60]!r} is not a number with a decimal comma")
    return float(text.replace(".", "").replace(",", "."))


def _grouped_of(text: str) -> float:
    if _GROUPED.fullmatch(text) is None:
        return number_of(text)
    return float(text.replace(",", ""))


GROUPED = "numbers, parted by commas in threes"
# In this order; the first that reads all cells is the rule of the column.
_RULES: tuple[tuple[str, Callable[[str], float]], ...] = (
    ("numbers", number_of),
    (GROUPED, _grouped_of),
    ("numbers with a decimal comma", _comma_of),
    ("percentages", share_of),
    ("factors", factor_of),
    ("durations", duration_of),
    ("sizes", size_of),
)
KINDS = {"durations": "seconds", "sizes": "bytes", "percentages": "ratio", "factors": "ratio"}


@dataclass(frozen=True)
class ColumnOfNumbers:
    """Numbers of a column, with their unit. values: (n,) float64 in SI base units, NaN where nothing is
    known. rule: by which they were read. unit: seconds, bytes or ratio where the cells say it, else empty.
    odd: cells that did not fit the rule."""

    values: np.ndarray
    rule: str
    unit: str = ""
    odd: tuple[str, ...] = ()


def numbers_in(
    cells: Sequence[str | None],
    *,
    base: int = 1000,
    only: Sequence[str] = (),
    share: float = 1.0,
    comma: bool = False,
) -> ColumnOfNumbers | tuple[int, str, float]:
    """Read a column by the one rule that fits all its cells; of two quantities (`1.9GiB / 12GiB`) the first.

    base: of KB and its like. only: rules that may be. share: of the different cells, which has to fit: what
    does not is NaN. comma: whether 1,234 has a decimal one, as in tables parted by semicolons. Where no rule
    fits so many, gives (row, why, share): the first cell that does not fit the rule of most of them, and
    which share of the different cells does.
    """
    texts = [(cell or "").strip() for cell in cells]
    known = [text for text in dict.fromkeys(texts) if not is_nothing(text)]
    best: tuple[dict[str, float], str, str] | None = None
    for rule, read in _RULES:
        if only and rule not in only:
            continue
        values: dict[str, float] = {}
        wrong = ""
        for text in known:
            first = _IN_THREES.sub("", text.partition(" / ")[0].strip())
            first = _COMMA_UNIT.sub(r"\1.\2", first) if comma else first
            try:
                value = size_of(first, base=base) if read is size_of else read(first)
                values[text] = value if math.isfinite(value) else math.nan
            except ValueError:
                if read in (size_of, duration_of) and first in ("0", "0.0"):
                    values[text] = 0.0
                else:
                    wrong = wrong or text
        if not wrong:
            array = np.array([values.get(text, math.nan) for text in texts], np.float64)
            is_ambiguous = all(text.count(",") <= 1 for text in known)  # each may be a decimal one
            if rule == GROUPED and "." not in "".join(known) and is_ambiguous:
                if comma:
                    continue
                row = texts.index(next(t for t in known if "," in t))
                return row, "1,234 may be 1.234 or 1234", 1.0
            return ColumnOfNumbers(array, rule, KINDS.get(rule, ""))
        if best is None or len(values) > len(best[0]):
            best = values, wrong, rule
    fits, wrong, rule = best or ({}, texts[0] if texts else "", "numbers")
    if fits and len(fits) >= share * len(known):
        array = np.array([fits.get(text, math.nan) for text in texts], np.float64)
        odd = tuple(text for text in known if text not in fits)
        return ColumnOfNumbers(array, rule, KINDS.get(rule, ""), odd)
    row = texts.index(wrong) if wrong in texts else 0
    return (
        row,
        f"{wrong[:60]!r} is not one of {rule}, as {len(fits)} are",
        len(fits) / len(known or [""]),
    )


MOST = 0.8  # of different cells: where so many are numbers, the others are none that are known


def covariate_in(
    cells: Sequence[str | None], *, base: int = 1000
) -> tuple[ColumnOfNumbers | None, str]:
    """Read what is known of runs before they start. Returns (numbers, None for labels; how it was read)."""
    read = numbers_in(cells, base=base, share=MOST)
    if not isinstance(read, ColumnOfNumbers) or np.isnan(read.values).all():
        return None, "labels"
    odd = f"; not known where it is {', '.join(map(repr, read.odd[:3]))}" if read.odd else ""
    return read, read.rule + odd


def require_numbers(
    cells: Sequence[str | None], what: str, row_name: Callable[[int], str], where: str
) -> ColumnOfNumbers:
    """Return the same. Raises BadData that names column and row of a cell that does not fit."""
    read = numbers_in(cells)
    if isinstance(read, tuple):
        fix = "Write all cells of a column in one way, and leave one empty where nothing is known."
        raise BadData(f"{row_name(read[0])}: {what} {read[1]}", where=where, fix=fix)
    return read


OK, FAILED, TIMEOUT, RUNNING, OUT_OF_MEMORY, PENDING, CACHED = range(7)
_WORDS = {
    OK: "completed complete succeeded success successful done finished ok cd passed cached true yes",
    TIMEOUT: "timeout timed_out to deadline walltime deadlineexceeded",
    RUNNING: "running suspended completing stopped signaling stage_out resizing r cg s started active",
    OUT_OF_MEMORY: "out_of_memory oom oomkilled outofmemory out_of_memory_error oome",
    PENDING: "pending queued scheduled submitted skipped new pd up_for_reschedule deferred",
}
# Of a run, by outcome.
STATUS_OF = ("ok", "failed", "timeout", "failed", "out_of_memory", "failed", "ok")
OUTCOMES = {word: outcome for outcome, words in _WORDS.items() for word in words.split()}


def outcome_of(state: str) -> int:
    """Return what a word of state says; what is none of those that are known failed in one way or another."""
    text = state.strip().lower()
    match = re.match(r"[a-z_]+", text.replace("-", "_"))
    word = match[0] if match else ""
    if text == f"{word}+" and len(word) > 3:  # cut off, as a column of fixed width does
        return next((OUTCOMES[one] for one in OUTCOMES if one.startswith(word)), FAILED)
    return OUTCOMES.get(word, FAILED) if text else OK
