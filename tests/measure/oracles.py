"""What kernels must compute in one repetition, written again in Python."""

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


def lu(n: int) -> bytes:
    a = unit(range(n * n)).reshape(n, n) + n * np.eye(n)
    for k in range(n):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a.tobytes()


def stencil(n: int) -> bytes:
    now = unit(range(n * n)).reshape(n, n)
    after = now.copy()
    inside = now[1:-1, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] + now[:-2, 1:-1] + now[2:, 1:-1]
    after[1:-1, 1:-1] = 0.2 * inside
    return after.tobytes()


def fft(n: int) -> bytes:
    source = unit(range(2 * n)) - 0.5
    found = np.fft.fft(source[:n] + 1j * source[n:])
    return np.concatenate([found.real, found.imag]).tobytes()


def sort(n: int) -> bytes:
    return np.sort(mix(range(n))).tobytes()


def bfs(n: int) -> bytes:
    edges = (mix(range(8 * n)) % n).reshape(n, 8).tolist()
    level, queue = {0: 0}, [0]
    for node in queue:
        for other in edges[node]:
            if other not in level:
                level[other] = level[node] + 1
                queue.append(other)
    return np.array([level.get(node, 2**32 - 1) for node in range(n)], np.uint32).tobytes()


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


def mandelbrot(n: int) -> bytes:
    b, a = np.mgrid[0:n, 0:n]
    a, b = -2 + 2.5 * a / n, -1.25 + 2.5 * b / n
    x, y, escape = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n), np.uint16)
    for _ in range(100):
        inside = x * x + y * y <= 4
        escape += inside
        x, y = np.where(inside, x * x - y * y + a, x), np.where(inside, 2 * x * y + b, y)
    return escape.tobytes()


def edit(n: int) -> bytes:
    first, second = ((mix(range(k * n, (k + 1) * n)) & 7).tolist() for k in (0, 1))
    row = list(range(n + 1))
    for i, letter in enumerate(first, start=1):
        corner, row[0] = row[0], i
        for j in range(1, n + 1):
            best = min(row[j] + 1, row[j - 1] + 1, corner + (letter != second[j - 1]))
            corner, row[j] = row[j], best
    return np.array(row, np.uint32).tobytes()


def gemv(n: int) -> bytes:
    a = unit(range(n * n)).reshape(n, n)
    return (a @ unit(range(n * n, n * n + n))).tobytes()


def heat(n: int) -> bytes:
    now = unit(range(n**3)).reshape(n, n, n)
    after, c = now.copy(), slice(1, -1)
    near = sum(np.roll(now, by, axis) for axis in range(3) for by in (-1, 1))
    after[c, c, c] = (0.4 * now + 0.1 * near)[c, c, c]
    return after.tobytes()


def pagerank(n: int) -> bytes:
    step = np.zeros((n, n))
    np.add.at(step, (mix(range(8 * n)) % n, np.repeat(np.arange(n), 8)), 0.85 / 8)
    rank = np.full(n, 1 / n)
    for _ in range(4):
        rank = 0.15 / n + step @ rank
    return rank.tobytes()


def message(n: int) -> bytes:
    return bytes(mix(range(n)).astype(np.uint8))


# kernel: (n, oracle, whether the result is doubles that may differ in the last bits)
ORACLES: dict[str, tuple[int, Callable[[int], bytes], bool]] = {
    "bfs": (300, bfs, False),
    "copy": (1 << 18, copy, False),
    "crc32": (1000, lambda n: np.uint32(zlib.crc32(message(n))).tobytes(), False),
    "edit": (70, edit, False),
    "fft": (1024, fft, True),
    "gemv": (37, gemv, True),
    "heat": (17, heat, True),
    "lu": (33, lu, True),
    "mandelbrot": (40, mandelbrot, False),
    "matmul": (37, matmul, True),
    "pagerank": (300, pagerank, True),
    "radix": (3000, sort, False),
    "sha256": (1024, lambda n: hashlib.sha256(message(n)).digest(), False),
    "sort": (3000, sort, False),
    "stencil": (40, stencil, True),
    "stream": (1 << 18, stream, False),
}
