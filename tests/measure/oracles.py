"""What every kernel must compute in one repetition, written again in Python."""

from __future__ import annotations

import hashlib
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


def search(n: int) -> bytes:
    text = bytes((ord("a") + (mix(range(n)) & 3)).astype(np.uint8))
    patterns = [text[p * (n // 4) :][:8] for p in range(4)]
    # Horspool finds overlapping occurrences too.
    counts = [sum(text.startswith(pattern, at) for at in range(n)) for pattern in patterns]
    return np.array(counts, np.uint32).tobytes()


def sha256(n: int) -> bytes:
    return hashlib.sha256(bytes(mix(range(n)).astype(np.uint8))).digest()


def chacha(n: int) -> bytes:
    key = np.frombuffer(bytes(range(32)), np.uint32)
    nonce = np.frombuffer(bytes(range(12)), np.uint32)
    constants = np.frombuffer(b"expand 32-byte k", np.uint32)
    blocks = []
    for counter in range(1, n // 64 + 1):
        state = np.concatenate([constants, key, [np.uint32(counter)], nonce]).astype(np.uint32)
        x = state.copy()

        def turn(a: int, b: int, c: int, d: int, x: np.ndarray = x) -> None:
            for one, two, three, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[one] += x[two]
                x[three] ^= x[one]
                x[three] = x[three] << np.uint32(by) | x[three] >> np.uint32(32 - by)

        with np.errstate(over="ignore"):
            for _ in range(10):
                for column in range(4):
                    turn(column, column + 4, column + 8, column + 12)
                for column in range(4):
                    turn(column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
            blocks.append(x + state)
    return (np.concatenate(blocks) ^ mix(range(n // 4))).tobytes()


def _aes_box() -> list[int]:
    def times(a: int, b: int) -> int:
        product = 0
        while b:
            product ^= a * (b & 1)
            a, b = a << 1 ^ (a >> 7) * 0x11B, b >> 1
        return product

    box = []
    for value in range(256):
        inverse = next((x for x in range(256) if times(value, x) == 1), 0)
        turned = [(inverse << k | inverse >> (8 - k)) & 255 for k in range(5)]
        box.append(turned[0] ^ turned[1] ^ turned[2] ^ turned[3] ^ turned[4] ^ 0x63)
    return box


def aes_encrypt(key: bytes, plain: bytes) -> bytes:
    """AES-128, block by block, straight from FIPS 197."""
    box = _aes_box()
    words, constant = [list(key[i : i + 4]) for i in range(0, 16, 4)], 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = [box[b] for b in [*word[1:], word[0]]]
            word[0] ^= constant
            constant = constant << 1 ^ (constant >> 7) * 0x11B
        words.append([a ^ b for a, b in zip(words[i - 4], word, strict=True)])
    keys = [[b for word in words[4 * r : 4 * r + 4] for b in word] for r in range(11)]

    def double(b: int) -> int:
        return (b << 1 ^ (b >> 7) * 0x11B) & 255

    out = bytearray()
    for at in range(0, len(plain), 16):
        s = [a ^ b for a, b in zip(plain[at : at + 16], keys[0], strict=True)]
        for r in range(1, 11):
            s = [box[s[(i + 4 * (i % 4)) % 16]] for i in range(16)]
            if r < 10:
                mixed = []
                for c in range(0, 16, 4):
                    every = s[c] ^ s[c + 1] ^ s[c + 2] ^ s[c + 3]
                    mixed += [
                        s[c + i] ^ every ^ double(s[c + i] ^ s[c + (i + 1) % 4]) for i in range(4)
                    ]
                s = mixed
            s = [a ^ b for a, b in zip(s, keys[r], strict=True)]
        out += bytes(s)
    return bytes(out)


def aes(n: int) -> bytes:
    return aes_encrypt(bytes(range(16)), bytes(mix(range(n)).astype(np.uint8)))


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


def sieve(n: int) -> bytes:
    prime = np.ones(n, np.uint8)
    prime[:2] = 0
    for i in range(2, int(n**0.5) + 1):
        prime[i * i :: i] = 0
    return prime.tobytes()


def mandelbrot(n: int) -> bytes:
    b, a = np.mgrid[0:n, 0:n]
    a, b = -2 + 2.5 * a / n, -1.25 + 2.5 * b / n
    x, y, escape = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n), np.uint16)
    for _ in range(100):
        inside = x * x + y * y <= 4
        escape += inside
        x, y = np.where(inside, x * x - y * y + a, x), np.where(inside, 2 * x * y + b, y)
    return escape.tobytes()


def nbody(n: int) -> bytes:
    position, mass = unit(range(3 * n)).reshape(3, n) - 0.5, unit(range(3 * n, 4 * n)) / n
    apart = position[:, None, :] - position[:, :, None]
    square = (apart**2).sum(0) + 1e-2
    velocity = 1e-4 * (mass / (square * np.sqrt(square)) * apart).sum(2)
    return np.concatenate([position + 1e-4 * velocity, velocity]).tobytes()


def edit(n: int) -> bytes:
    first, second = ((mix(range(k * n, (k + 1) * n)) & 7).tolist() for k in (0, 1))
    row = list(range(n + 1))
    for i, letter in enumerate(first, start=1):
        corner, row[0] = row[0], i
        for j in range(1, n + 1):
            best = min(row[j] + 1, row[j - 1] + 1, corner + (letter != second[j - 1]))
            corner, row[j] = row[j], best
    return np.array(row, np.uint32).tobytes()


def disparity(n: int) -> bytes:
    y, x = np.mgrid[0:n, 0:n]
    shift = (mix(y // 8 * 1024 + x // 8) % 16).astype(int)
    left = mix(range(n * n)).astype(np.uint8).reshape(n, n).astype(int)
    right = mix(y * n + (x + shift) % n).astype(np.uint8).astype(int)
    found = np.zeros((n, n), np.uint8)
    for row in range(2, n - 2):
        for column in range(2, n - 2 - 16):
            here = right[row - 2 : row + 3, column - 2 : column + 3]
            costs = [
                np.abs(left[row - 2 : row + 3, column - 2 + d : column + 3 + d] - here).sum()
                for d in range(16)
            ]
            found[row, column] = int(np.argmin(costs))
    return found.tobytes()


def sobel(n: int) -> bytes:
    p = (mix(range(n * n)) >> 28).reshape(n, n).astype(int)
    smooth, slope = (1, 2, 1), (-1, 0, 1)
    gx, gy = np.zeros((n - 2, n - 2), int), np.zeros((n - 2, n - 2), int)
    for v in range(3):
        for u in range(3):
            part = p[v : v + n - 2, u : u + n - 2]
            gx += smooth[v] * slope[u] * part
            gy += slope[v] * smooth[u] * part
    edge = np.zeros((n, n), np.uint8)
    edge[1:-1, 1:-1] = np.minimum(np.abs(gx) + np.abs(gy), 255)
    return edge.tobytes()


# kernel: (n, oracle, whether the result is doubles that may differ in the last bits)
ORACLES: dict[str, tuple[int, Callable[[int], bytes], bool]] = {
    "aes": (256, aes, False),
    "bfs": (300, bfs, False),
    "chacha": (256, chacha, False),
    "copy": (1 << 18, copy, False),
    "disparity": (40, disparity, False),
    "edit": (70, edit, False),
    "fft": (1024, fft, True),
    "lu": (33, lu, True),
    "mandelbrot": (40, mandelbrot, False),
    "matmul": (37, matmul, True),
    "nbody": (30, nbody, True),
    "search": (5000, search, False),
    "sha256": (1024, sha256, False),
    "sieve": (5000, sieve, False),
    "sobel": (50, sobel, False),
    "sort": (3000, sort, False),
    "stencil": (40, stencil, True),
    "stream": (1 << 18, stream, False),
}
