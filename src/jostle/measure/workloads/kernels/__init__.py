"""The kernels: C sources, and the WebAssembly modules that `benchmarks/build_kernels.py` builds of them."""

from pathlib import Path

KERNEL_FOLDER = Path(__file__).parent
