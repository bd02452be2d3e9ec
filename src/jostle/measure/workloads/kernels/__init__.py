"""The kernels: C sources beside the WebAssembly modules built from them (see `build.py`)."""

from pathlib import Path

KERNEL_FOLDER = Path(__file__).parent
