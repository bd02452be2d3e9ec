"""The kernels: C sources beside the WebAssembly modules that `benchmarks/build_kernels.py` builds from them."""

from pathlib import Path

KERNEL_FOLDER = Path(__file__).parent
