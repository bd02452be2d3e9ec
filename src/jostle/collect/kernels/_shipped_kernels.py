"""The kernels that come with Jostle: C sources, their WebAssembly modules, and their sizes."""

from __future__ import annotations

from pathlib import Path

KERNEL_FOLDER = Path(__file__).parent / "modules"

# family: {kernel: ((setup argument, repeats) for s, m, l)}. Arguments are what the C source calls n.
_Sizes = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
SHIPPED: dict[str, dict[str, _Sizes]] = {
    "dense_linear_algebra": {
        "gemv": ((64, 64), (512, 8), (2048, 1)),
        "lu": ((48, 16), (112, 2), (176, 1)),
        "matmul": ((40, 8), (96, 1), (128, 1)),
    },
    "stencils_and_signals": {
        "fft": ((512, 40), (4096, 4), (32768, 1)),
        "heat": ((16, 64), (40, 12), (96, 1)),
        "stencil": ((64, 64), (256, 4), (768, 1)),
    },
    "sorting_graphs_strings": {
        "bfs": ((512, 128), (4096, 16), (65536, 1)),
        "edit": ((96, 32), (384, 2), (768, 1)),
        "lz": ((4096, 48), (32768, 12), (131072, 4)),
        "pagerank": ((512, 48), (8192, 8), (131072, 1)),
        "radix": ((2048, 48), (32768, 8), (524288, 1)),
        "sort": ((2048, 8), (8192, 2), (32768, 1)),
    },
    "cryptography_and_hashing": {
        "aes": ((16384, 5), (65536, 2), (262144, 1)),
        "crc32": ((16384, 20), (65536, 6), (1 << 20, 1)),
        "sha256": ((16384, 5), (65536, 2), (262144, 1)),
    },
    "vision": {
        "disparity": ((32, 4), (48, 1), (80, 1)),
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
