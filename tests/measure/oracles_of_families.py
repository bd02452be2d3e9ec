"""More of what kernels must compute in one repetition: linear algebra, signals, graphs, hashes, vision."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable

import numpy as np

from tests.measure.oracles import mix, unit


def cholesky(n: int) -> bytes:
    i, j = np.mgrid[0:n, 0:n]
    a = mix(np.minimum(i, j) * n + np.maximum(i, j)) * 2.0**-32 + n * np.eye(n)
    return np.linalg.cholesky(a).tobytes()


def qr(n: int) -> bytes:
    a = unit(range(n * n)).reshape(n, n) + n * np.eye(n)
    _, r = np.linalg.qr(a.T)
    return (r * np.sign(np.diag(r))[:, None]).tobytes()


def gemv(n: int) -> bytes:
    a = unit(range(n * n)).reshape(n, n)
    return (a @ unit(range(n * n, n * n + n))).tobytes()


def fir(n: int) -> bytes:
    signal = (mix(range(n + 32)) >> 16).astype(np.int64) - 32768
    tap = (mix(range(7, 39)) >> 24).astype(np.int64) - 128
    return np.correlate(signal, tap)[:n].astype(np.int32).tobytes()


def wavelet(n: int) -> bytes:
    now = (mix(range(n)) >> 20).astype(np.int32)
    for level in range(5):
        length = n >> level
        even, odd = now[:length:2].copy(), now[1:length:2].copy()
        high = odd - ((even + np.append(even[1:], even[-1])) >> 1)
        low = even + ((np.insert(high[:-1], 0, high[0]) + high + 2) >> 2)
        now[:length] = np.concatenate([low, high])
    return now.tobytes()


def heat(n: int) -> bytes:
    now = unit(range(n**3)).reshape(n, n, n)
    after, c = now.copy(), slice(1, -1)
    near = sum(np.roll(now, by, axis) for axis in range(3) for by in (-1, 1))
    after[c, c, c] = (0.4 * now + 0.1 * near)[c, c, c]
    return after.tobytes()


def dct(n: int) -> bytes:
    # The first half of each row of the H.265 core transform; rows are even and odd in turn.
    halves = [(64, 64, 64, 64), (89, 75, 50, 18), (83, 36, -36, -83), (75, -18, -89, -50)]
    halves += [(64, -64, -64, 64), (50, -89, 18, 75), (36, -83, 83, -36), (18, -50, 75, -89)]
    c = np.array([[*h, *((-1) ** k * np.array(h[::-1]))] for k, h in enumerate(halves)])
    blocks = mix(range(n * n)).astype(np.uint8).reshape(n // 8, 8, n // 8, 8).astype(np.int64)
    half = (np.einsum("uy,aybx->aubx", c, blocks) + 2) >> 2
    done = (np.einsum("vx,aubx->aubv", c, half) + 256) >> 9
    return done.astype(np.int32).tobytes()


def radix(n: int) -> bytes:
    return np.sort(mix(range(n))).tobytes()


def floyd(n: int) -> bytes:
    path = (mix(range(n * n)) >> 16).astype(np.int64).reshape(n, n) + 1
    np.fill_diagonal(path, 0)
    while True:  # squaring in (min, +) until nothing is shorter
        shorter = np.min(path[:, :, None] + path[None, :, :], axis=1)
        if np.array_equal(shorter, path):
            return path.astype(np.uint32).tobytes()
        path = shorter


def lz(n: int) -> bytes:
    i = np.arange(n)
    text = bytes((ord("a") + mix(mix(i // 8) % 64 * 8 + i % 8) % 26).astype(np.uint8))
    last: dict[int, int] = {}
    at = tokens = 0
    while at < n:
        length = 0
        if at + 4 <= n:
            key = int.from_bytes(text[at : at + 4], "little") * 2654435761 % 2**32 >> 20
            before = last.get(key)
            last[key] = at
            if before is not None and at - before < 65536:
                while (
                    length < 255 and at + length < n and text[before + length] == text[at + length]
                ):
                    length += 1
        at, tokens = at + (length if length >= 4 else 1), tokens + 1
    return np.uint32(tokens).tobytes() + text


def pagerank(n: int) -> bytes:
    step = np.zeros((n, n))
    np.add.at(step, (mix(range(8 * n)) % n, np.repeat(np.arange(n), 8)), 0.85 / 8)
    rank = np.full(n, 1 / n)
    for _ in range(4):
        rank = 0.15 / n + step @ rank
    return rank.tobytes()


def message(n: int) -> bytes:
    return bytes(mix(range(n)).astype(np.uint8))


def modexp(n: int) -> bytes:
    modulus, base = mix(range(n)), mix(range(n, 2 * n))
    modulus[0] |= 1
    modulus[-1] |= 0x80000000
    base[-1] &= 0x7FFFFFFF
    found = pow(
        int.from_bytes(base.tobytes(), "little"),
        65537,
        int.from_bytes(modulus.tobytes(), "little"),
    )
    return found.to_bytes(4 * n, "little")


def _blocks(n: int, side: int) -> np.ndarray:
    """A random number for each pixel of n x n, the same in blocks."""
    y, x = np.mgrid[0:n, 0:n]
    return mix(y // side * 512 + x // side)


def sift(n: int) -> bytes:
    noise = (mix(range(n * n)) >> 28).reshape(n, n).astype(np.int64)
    scales = [12 * (_blocks(n, 5) >> 28).astype(np.int64) + noise]
    for step in range(1, 5):
        p, w = np.pad(scales[-1], 2 * step, mode="edge"), (1, 4, 6, 4, 1)
        across = np.sum([w[k] * p[:, k * step : k * step + n] for k in range(5)], axis=0)
        down = [w[k] * across[k * step : k * step + n] for k in range(5)]
        scales.append(np.sum(down, axis=0) >> 8)
    apart = np.diff(np.array(scales), axis=0)
    count, histogram = 0, np.zeros((4, 4, 8), np.uint32)
    for s in (1, 2):
        for y in range(9, n - 9):
            for x in range(9, n - 9):
                near = apart[s - 1 : s + 2, y - 1 : y + 2, x - 1 : x + 2]
                value = apart[s, y, x]
                sign = -1 if value < 0 else 1
                if value * sign < 8 or np.count_nonzero(near * sign >= value * sign) > 1:
                    continue
                count += 1
                patch = scales[s][y - 9 : y + 9, x - 9 : x + 9]
                gx, gy = patch[1:-1, 2:] - patch[1:-1, :-2], patch[2:, 1:-1] - patch[:-2, 1:-1]
                ax, ay = np.abs(gx), np.abs(gy)
                octant = 4 * (gy < 0) + 2 * (gx < 0) + (ay > ax)
                v, u = np.mgrid[0:16, 0:16] // 4
                np.add.at(histogram, (v, u, octant), (ax + ay).astype(np.uint32))
    assert count > 0
    return np.uint32(count).tobytes() + histogram.tobytes()


def tracking(n: int) -> bytes:
    def smooth(y: np.ndarray, x: np.ndarray) -> np.ndarray:
        at, v, u = y // 8 * 4096 + x // 8, y % 8, x % 8
        a, b, c, d = (mix(at + k).astype(np.int64) >> 24 for k in (0, 1, 4096, 4097))
        return ((8 - v) * ((8 - u) * a + u * b) + v * ((8 - u) * c + u * d)) // 64

    y, x = np.mgrid[0:n, 0:n]
    before, after = smooth(y + 1, x + 1), smooth(y, x + 1)
    points, shifts = (n - 12) // 8, []
    for cy in range(6, 6 + 8 * points, 8):
        for cx in range(6, 6 + 8 * points, 8):
            p = before[cy - 6 : cy + 7, cx - 6 : cx + 7]
            gx, gy = (p[1:-1, 2:] - p[1:-1, :-2]).ravel(), (p[2:, 1:-1] - p[:-2, 1:-1]).ravel()
            t = (after[cy - 5 : cy + 6, cx - 5 : cx + 6] - p[1:-1, 1:-1]).ravel()
            slopes = np.stack([gx, gy], 1) / 2
            shifts.append(np.linalg.lstsq(slopes, -t.astype(float), rcond=None)[0])
    found = np.array(shifts)
    # The next image is the first one moved down by a pixel.
    assert np.abs(np.median(found, axis=0) - [0, 1]).max() < 0.2
    return found.tobytes()


def faces(n: int) -> bytes:
    image = (_blocks(n, 6) >> 25).astype(np.int64) + (mix(range(n * n)) >> 27).reshape(n, n)
    features = []
    for f in range(48):
        m = mix(range(8 * f, 8 * f + 5)).astype(int)
        height, width = 2 + m[0] % 8, 2 + m[1] % 8
        features.append(
            (m[3] % (24 - 2 * height), m[4] % (24 - 2 * width), height, width, m[2] & 1)
        )
    passed = np.zeros((n, n), np.uint8)
    for y in range(n - 23):
        for x in range(n - 23):
            window, stage = image[y : y + 24, x : x + 24], 0
            while stage < 12:
                score = 0
                for top, left, height, width, above in features[4 * stage : 4 * stage + 4]:
                    one = window[top : top + height, left : left + width].sum()
                    top, left = (top + height, left) if above else (top, left + width)
                    other = window[top : top + height, left : left + width].sum()
                    score += 1 if one > other else -1
                if score < 0:
                    break
                stage += 1
            passed[y, x] = stage
    assert len(np.unique(passed)) > 3
    return passed.tobytes()


def harris(n: int) -> bytes:
    image = (_blocks(n, 6) >> 25).astype(np.int64) + (mix(range(n * n)) >> 28).reshape(n, n)
    gx, gy = image[1:-1, 2:] - image[1:-1, :-2], image[2:, 1:-1] - image[:-2, 1:-1]
    sums = [
        np.lib.stride_tricks.sliding_window_view(product, (5, 5)).sum(axis=(2, 3))
        for product in (gx * gx, gx * gy, gy * gy)
    ]
    strength = np.zeros((n, n), np.int64)
    a, b, c = sums
    strength[3:-3, 3:-3] = a * c - b * b - ((a + c) ** 2 >> 4)
    return strength.tobytes()


# kernel: (n, oracle, whether the result is doubles that may differ in the last bits)
ORACLES_OF_FAMILIES: dict[str, tuple[int, Callable[[int], bytes], bool]] = {
    "blake2s": (1024, lambda n: hashlib.blake2s(message(n)).digest(), False),
    "cholesky": (33, cholesky, True),
    "crc32": (1000, lambda n: np.uint32(zlib.crc32(message(n))).tobytes(), False),
    "dct": (40, dct, False),
    "faces": (40, faces, False),
    "fir": (300, fir, False),
    "floyd": (30, floyd, False),
    "gemv": (37, gemv, True),
    "harris": (40, harris, False),
    "heat": (17, heat, True),
    "lz": (3000, lz, False),
    "modexp": (9, modexp, False),
    "pagerank": (300, pagerank, True),
    "qr": (33, qr, True),
    "radix": (3000, radix, False),
    "sha3": (136 * 7, lambda n: hashlib.sha3_256(message(n)).digest(), False),
    "sift": (64, sift, False),
    "tracking": (64, tracking, True),
    "wavelet": (512, wavelet, False),
}
