"""The kernels that come with Jostle: C sources, the WebAssembly modules that `benchmarks/build_kernels.py`
builds of them, and the sizes with which they make workloads and stressors."""

from __future__ import annotations

from pathlib import Path

KERNEL_FOLDER = Path(__file__).parent / "modules"

# family: {kernel: ((setup argument, repeats) for s, m, l)}. Arguments are what the C source calls n.
_Sizes = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
SHIPPED: dict[str, dict[str, _Sizes]] = {
    "dense_linear_algebra": {
        "cholesky": ((48, 36), (112, 8), (192, 2)),
        "gemv": ((64, 64), (512, 8), (2048, 1)),
        "lu": ((48, 16), (112, 2), (176, 1)),
        "matmul": ((40, 8), (96, 1), (128, 1)),
        "qr": ((40, 24), (96, 2), (144, 1)),
    },
    "stencils_and_signals": {
        "dct": ((64, 32), (160, 8), (320, 2)),
        "fft": ((512, 40), (4096, 4), (32768, 1)),
        "fir": ((2048, 20), (16384, 4), (131072, 1)),
        "heat": ((16, 64), (40, 12), (96, 1)),
        "stencil": ((64, 64), (256, 4), (768, 1)),
        "wavelet": ((2048, 64), (32768, 12), (1 << 20, 1)),
    },
    "sorting_graphs_strings": {
        "bfs": ((512, 128), (4096, 16), (65536, 1)),
        "edit": ((96, 32), (384, 2), (768, 1)),
        "floyd": ((32, 32), (80, 2), (144, 1)),
        "lz": ((4096, 48), (32768, 12), (131072, 4)),
        "pagerank": ((512, 48), (8192, 8), (131072, 1)),
        "radix": ((2048, 48), (32768, 8), (524288, 1)),
        "search": ((1 << 14, 4), (1 << 16, 1), (1 << 18, 1)),
        "sort": ((2048, 8), (8192, 2), (32768, 1)),
    },
    "cryptography_and_hashing": {
        "aes": ((16384, 5), (65536, 2), (262144, 1)),
        "blake2s": ((16384, 14), (65536, 4), (262144, 1)),
        "chacha": ((16384, 12), (131072, 2), (524288, 1)),
        "crc32": ((16384, 20), (65536, 6), (1 << 20, 1)),
        "modexp": ((8, 64), (24, 32), (64, 8)),
        "sha256": ((16384, 5), (65536, 2), (262144, 1)),
        "sha3": ((16320, 4), (65280, 1), (130560, 1)),
    },
    "vision": {
        "disparity": ((32, 4), (48, 1), (80, 1)),
        "faces": ((48, 24), (96, 4), (160, 1)),
        "harris": ((48, 20), (112, 4), (240, 1)),
        "sift": ((40, 24), (72, 8), (128, 2)),
        "sobel": ((96, 16), (256, 2), (640, 1)),
        "tracking": ((64, 48), (128, 16), (256, 4)),
    },
    # Beside the five families: memory alone, and scalar arithmetic alone.
    "memory": {
        # 32 KiB, 4 MiB, 64 MiB: inside the first cache, about a last private cache, past it.
        "chase": ((1 << 15, 40), (1 << 22, 2), (1 << 26, 1)),
        "copy": ((1 << 17, 160), (1 << 21, 64), (1 << 25, 32)),
        "stream": ((1 << 17, 32), (1 << 20, 24), (1 << 24, 16)),
    },
    "arithmetic": {
        "mandelbrot": ((32, 6), (64, 2), (128, 1)),
        "nbody": ((48, 48), (128, 8), (384, 1)),
        "sieve": ((1 << 15, 12), (1 << 18, 2), (1 << 20, 1)),
    },
}

# name: (kernel, setup's argument, repeats of one repetition), the milder first.
STRESSORS: dict[str, tuple[str, int, int]] = {
    "cache": ("stream", 1 << 21, 16),  # a triad through 6 MiB
    "copy": ("copy", 1 << 25, 32),  # 32 MiB to 32 MiB: half reads, half writes
    "scatter": ("radix", 1 << 21, 1),  # counts and moves 2 million keys
    "stream": ("stream", 1 << 25, 16),  # a triad through 96 MiB
    "core": ("matmul", 96, 8),  # multiplies and adds in private caches
}
