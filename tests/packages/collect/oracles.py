"""What some kernels must compute in one repetition, written again in Python."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable

import numpy as np


def mix(values: np.ndarray | range) -> np.ndarray:
    """The kernels' input hash (lowbias32) of unsigned 32-bit numbers."""
    x = np.asarray(values, dtype=np.uint32).copy()
    with np.errstate(over="ignore"):
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def unit(values: range) -> np.ndarray:
    return mix(values) * 2.0**-32


def matmul(n: int) -> bytes:
    a, b = (unit(range(k * n * n, (k + 1) * n * n)).reshape(n, n) for k in (0, 1))
    return (a @ b).tobytes()


def sort(n: int) -> bytes:
    return np.sort(mix(range(n))).tobytes()


def chase_line(n: int) -> int:
    """The line that 4096 steps through n bytes end on."""
    line = 0
    for _ in range(4096):
        line = (line * 0x9E3779B5 + 0x3C6EF35F) % (n // 64)
    return line


def stream(n: int) -> bytes:
    b, c = (np.tile(unit(range(start, start + 512)), n // 4096) for start in (0, 512))
    a = b + 3 * c
    a[16384:] = 0
    return a.tobytes()


def copy(n: int) -> bytes:
    source = np.tile(mix(range(1024)), n // 4096)
    source[131072 // 4 :] = 0
    return source.tobytes()


def gemv(n: int) -> bytes:
    a = unit(range(n * n)).reshape(n, n)
    return (a @ unit(range(n * n, n * n + n))).tobytes()


def message(n: int) -> bytes:
    return bytes(mix(range(n)).astype(np.uint8))


# kernel: (n, oracle, whether the result is doubles that may differ in the last bits)
ORACLES: dict[str, tuple[int, Callable[[int], bytes], bool]] = {
    "copy": (1 << 18, copy, False),
    "crc32": (1000, lambda n: np.uint32(zlib.crc32(message(n))).tobytes(), False),
    "gemv": (37, gemv, True),
    "matmul": (37, matmul, True),
    "radix": (3000, sort, False),
    "sha256": (1024, lambda n: hashlib.sha256(message(n)).digest(), False),
    "sort": (3000, sort, False),
    "stream": (1 << 18, stream, False),
}
