"""Files changed at random, so that most still look like what they were: bytes, text, JSON and tables."""

from __future__ import annotations

import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, "", " ", "x", "\0", "\x1b[31m", "\ud800", "é" * 3, "../../etc/passwd"),
    *(0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 1e308, -1e308, 5e-324, 0.1),
    *(float("nan"), float("inf"), float("-inf"), [], [[]], {}, {"": {}}, [None], "nan", "1e999"),
    *("9" * 5000, "<not counted>", "-", "1_000", "0x10", "null", "x" * 300, "a;b", "2024-13-45"),
)
_TOKENS: tuple[bytes, ...] = (
    *(b"", b"\0", b"\xff", b"\xed\xa0\x80", b'"', b'""', b",", b"\n", b"\r", b"\r\n", b";", b":"),
    *(b"{", b"}", b"[", b"]", b"-", b".", b"e9", b"nan", b"inf", b"-1", b"1e999", b"9" * 400),
    *(b"9" * 5000, b"\xc2\xb2", b"\xd9\xa3", b"==", b"\xef\xbb\xbf", b"[" * 5000, b"\x1b[0m", b" "),
)
_DEEP = 5000


def bytes_changed(rng: random.Random, content: bytes) -> bytes:
    """One to four changes: bits, bytes, tokens, pieces taken away, doubled, moved or cut off."""
    out = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        at, other = rng.randint(0, len(out)), rng.randint(0, len(out))
        low, high = min(at, other), max(at, other)
        match rng.randrange(8):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at % len(out)] = rng.randrange(256)
            case 2:
                out[at:at] = rng.choice(_TOKENS)
            case 3:
                out[at : at + rng.randint(1, 8)] = rng.choice(_TOKENS)
            case 4:
                del out[low : min(high, low + rng.choice((1, 4, 64, 10**9)))]
            case 5:
                out[low:low] = out[low : min(high, low + 200)]
            case 6:
                out = out[:at]
            case _:
                width = rng.choice((2, 4, 8))
                number = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1))
                out[at : at + width] = (number % 256**width).to_bytes(
                    width, rng.choice(("little", "big"))
                )
    return bytes(out)


def cells_changed(rng: random.Random, content: bytes, separator: str = ",") -> bytes:
    """A table of text in which cells became odd values, rows were doubled, or columns dropped."""
    rows = [line.split(separator) for line in content.decode().split("\n")]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice(rows)
        match rng.randrange(6):
            case 0:
                rows.append(list(rng.choice(rows)))
            case 1 if row:
                del row[rng.randrange(len(row))]
            case 2:
                at = rng.randrange(max(1, *map(len, rows)))
                rows = [[cell for place, cell in enumerate(one) if place != at] for one in rows]
            case _ if row:
                row[rng.randrange(len(row))] = _as_text(rng.choice(ODD))
    return "\n".join(map(separator.join, rows)).encode("utf-8", "surrogatepass")


def _as_text(value: Any) -> str:
    try:
        return value if isinstance(value, str) else str(value)
    except ValueError:  # a number of thousands of digits
        return "9" * 5000


def json_changed(rng: random.Random, value: Any) -> Any:
    """A document in which one to three values became odd ones, or keys were lost or moved."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _one_changed(rng, value)
    return value


def json_text(value: Any) -> bytes:
    """As a file has it; also what is no JSON by the book, as Python's own writer gives it."""
    return json.dumps(value).replace('"@deep"', "[" * _DEEP + "]" * _DEEP).encode()


def _one_changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        match rng.randrange(12):
            case 0:
                return {k: v for k, v in value.items() if k != key}
            case 1:
                return {
                    rng.choice(("", "\0", "null", "\ud800")) if k == key else k: v
                    for k, v in value.items()
                }
            case _:
                return {**value, key: _one_changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.randrange(10) == 0:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _one_changed(rng, value[at]), *value[at + 1 :]]
    return "@deep" if rng.randrange(40) == 0 else _small(rng.choice(ODD))


def _small(value: Any) -> Any:
    """Python writes no integers of thousands of digits."""
    return 10**300 if isinstance(value, int) and value > 10**300 else value
